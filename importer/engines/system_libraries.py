"""System libraries that an engine's wheels leave out: fetched where the system lacks them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from importer import launcher
from importer.launcher import Purpose, isolated

FOLDER = "libraries"  # beside the virtual environment
LOADED_AT_START = "importer-libraries.pth"  # in its site-packages; Python runs its one line
LOAD = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
ASK_FOLDER = "import sysconfig; print(sysconfig.get_path('purelib'))"
SECONDS = 120.0


def missing(python: Path, system: Mapping[str, str]) -> dict[str, str]:
    """Return those of ``system``, library to package of Debian, that the environment cannot load."""
    return {library: package for library, package in system.items() if not _loads(python, library)}


def bring(root: Path, python: Path, system: Mapping[str, str], report: Callable[[str], None]) -> list[str]:
    """Unpack missing libraries into ``root``; returns the files of their packages, by name and version.

    A failure is reported to ``report`` and is no error: the engine may do without, and the doctor has the
    remedy.
    """
    lacking = missing(python, system)
    folder = root / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    if not lacking:
        return []
    packages = sorted({*lacking.values()})
    report(f"fetching {', '.join(packages)}: the system lacks {', '.join(lacking)}")
    try:
        files = _unpacked(packages, folder)
        _load_at_start(python, [path for name in lacking for path in sorted(folder.rglob(name))[:1]])
    except OSError as error:
        report(f"{', '.join(packages)} could not be fetched: {error}")
        return []
    for name in missing(python, lacking):
        report(f"{name} cannot be loaded all the same")
    return files


def _unpacked(packages: list[str], folder: Path) -> list[str]:
    """Unpack packages of apt for this release of the system; returns their files.

    Nothing is installed or run.
    """
    with tempfile.TemporaryDirectory() as place:
        _output_of(["apt-get", "download", *packages], Purpose.PACKAGES, Path(place))
        files = sorted(Path(place).glob("*.deb"))
        for file in files:
            _output_of(["dpkg-deb", "--extract", str(file), str(folder)], Purpose.SYSTEM, Path(place))
        return [file.name for file in files]


def _load_at_start(python: Path, paths: list[Path]) -> None:
    folder = _output_of(isolated("-c", ASK_FOLDER, python=python), Purpose.QUESTION)
    calls = "; ".join(f"ctypes.CDLL({str(path)!r}, ctypes.RTLD_GLOBAL)" for path in paths)
    Path(folder.strip(), LOADED_AT_START).write_text(f"import ctypes; {calls}\n", encoding="utf-8")


def _loads(python: Path, library: str) -> bool:
    try:
        _output_of(isolated("-c", LOAD, library, python=python), Purpose.QUESTION)
    except OSError:
        return False
    return True


def _output_of(command: list[str], purpose: Purpose, folder: Path = Path("/")) -> str:
    """Return the output of a command; raises OSError, ChildProcessError where it fails."""
    done = launcher.run(command, purpose, seconds=SECONDS, folder=folder, extra={"LC_ALL": "C"})
    if done.code != 0:
        raise ChildProcessError(f"{command[0]} ended with {done.code}")
    return done.output
