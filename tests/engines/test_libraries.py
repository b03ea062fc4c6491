"""A library that the system lacks, planted: fetched as apt would, unpacked, and loaded by the environment."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from importer.engines import system_libraries
from importer.engines.vllm import LIBRARIES, VllmCpu, VllmCuda

LACKING = {"libqq.so.2": "libplanted"}
linux = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("dpkg-deb") is None, reason="Debian's packages"
)


def planted() -> bytes:
    """A library of the C library's own, under a name of the same length that no system has."""
    maps = Path("/proc/self/maps").read_text()
    libc = next(line.split()[-1] for line in maps.splitlines() if line.endswith("libc.so.6"))
    return Path(libc).with_name("libdl.so.2").read_bytes().replace(b"libdl.so.2", b"libqq.so.2")


@pytest.fixture
def python(tmp_path: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    return tmp_path / "venv" / "bin" / "python"


def apt(folder: Path, monkeypatch: pytest.MonkeyPatch, fails: bool = False) -> None:
    """An apt that has one package; it is made and unpacked by the real dpkg-deb."""
    tree = folder / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    control = (
        "Package: libplanted\nVersion: 1.0\nArchitecture: all\nMaintainer: a <a@b.c>\nDescription: one\n"
    )
    (tree / "DEBIAN" / "control").write_text(control)
    place = tree / "usr" / "lib" / "somewhere"
    place.mkdir(parents=True)
    (place / "libqq.so.2.0").write_bytes(planted())
    (place / "libqq.so.2").symlink_to("libqq.so.2.0")
    package = folder / "libplanted_1.0_all.deb"
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", str(tree), str(package)], check=True)
    programs = folder / "programs"
    programs.mkdir()
    script = "exit 100" if fails else f'[ "$*" = "download libplanted" ] && cp {package} .'
    (programs / "apt-get").write_text(f"#!/bin/sh\n{script}\n")
    (programs / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")


@pytest.mark.slow
@linux
def test_what_the_system_lacks_is_unpacked_and_loaded(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt(tmp_path, monkeypatch)
    assert system_libraries.missing(python, LACKING | {"libc.so.6": "libc6"}) == LACKING
    told: list[str] = []
    assert system_libraries.bring(tmp_path, python, LACKING, told.append) == ["libplanted_1.0_all.deb"]
    assert told == ["fetching libplanted: the system lacks libqq.so.2"]
    assert system_libraries.missing(python, LACKING) == {}
    alone = [str(python), "-I", "-c", system_libraries.LOAD, "libqq.so.2"]
    assert subprocess.run(alone, check=False).returncode == 0, "also for a worker"


@linux
def test_what_cannot_be_fetched_is_said_and_stops_nothing(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt(tmp_path, monkeypatch, fails=True)
    told: list[str] = []
    assert system_libraries.bring(tmp_path, python, LACKING, told.append) == []
    assert told[-1] == "libplanted could not be fetched: apt-get ended with 100"
    assert not (tmp_path / system_libraries.FOLDER).exists()


@linux
def test_nothing_is_fetched_where_nothing_is_missing(python: Path, tmp_path: Path) -> None:
    told: list[str] = []
    assert system_libraries.bring(tmp_path, python, {"libc.so.6": "libc6"}, told.append) == []
    assert told == []


def test_only_the_build_for_processors_needs_some() -> None:
    assert VllmCpu().system == (LIBRARIES if sys.platform == "linux" else ())
    assert VllmCuda().system == ()
