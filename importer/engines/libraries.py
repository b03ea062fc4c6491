"""Libraries of the system that wheels leave out: brought into an engine's environment, without root's rights.

Debian and its like have what packages hold checked by apt against the signed index of the release in use.
What was unpacked is loaded whenever the environment's Python starts, so no variable is needed, and workers
find it too: a library that is loaded is found by its name.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from importer import launcher
from importer.launcher import Purpose, isolated

FOLDER = "libraries"  # beside the virtual environment
LOADED_AT_START = "importer-libraries.pth"  # in its site-packages; Python runs its one line
ASK = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
ASK_PLACE = "import sysconfig; print(sysconfig.get_path('purelib'))"
SECONDS = 120.0


def missing(python: Path, system: Mapping[str, str]) -> dict[str, str]:
    """Those of ``system``, library to Debian's package, that cannot be loaded from the environment."""
    return {library: package for library, package in system.items() if not _loads(python, library)}


def bring(root: Path, python: Path, system: Mapping[str, str], tell: Callable[[str], None]) -> list[str]:
    """Unpack what is missing into ``root``; the packages' files, by name and version.

    Where that is not possible it says so: the engine may do without, and the doctor knows the remedy.
    """
    lacking = missing(python, system)
    folder = root / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    if not lacking:
        return []
    packages = sorted({*lacking.values()})
    tell(f"fetching {', '.join(packages)}: the system lacks {', '.join(lacking)}")
    try:
        files = _unpacked(packages, folder)
        _load_at_start(python, [path for name in lacking for path in sorted(folder.rglob(name))[:1]])
    except OSError as error:
        tell(f"{', '.join(packages)} could not be fetched: {error}")
        return []
    for name in missing(python, lacking):
        tell(f"{name} cannot be loaded all the same")
    return files


def _unpacked(packages: list[str], folder: Path) -> list[str]:
    """What apt fetched for this release of the system; nothing of it is installed or run."""
    with tempfile.TemporaryDirectory() as place:
        _run(["apt-get", "download", *packages], Purpose.PACKAGES, Path(place))
        files = sorted(Path(place).glob("*.deb"))
        for file in files:
            _run(["dpkg-deb", "--extract", str(file), str(folder)], Purpose.SYSTEM, Path(place))
        return [file.name for file in files]


def _load_at_start(python: Path, paths: list[Path]) -> None:
    folder = _run(isolated("-c", ASK_PLACE, python=python), Purpose.QUESTION)
    calls = "; ".join(f"ctypes.CDLL({str(path)!r}, ctypes.RTLD_GLOBAL)" for path in paths)
    Path(folder.strip(), LOADED_AT_START).write_text(f"import ctypes; {calls}\n", encoding="utf-8")


def _loads(python: Path, library: str) -> bool:
    try:
        _run(isolated("-c", ASK, library, python=python), Purpose.QUESTION)
    except OSError:
        return False
    return True


def _run(command: list[str], purpose: Purpose, folder: Path = Path("/")) -> str:
    """What a command prints. Raises OSError, ChildProcessError where it fails."""
    done = launcher.run(command, purpose, seconds=SECONDS, folder=folder, extra={"LC_ALL": "C"})
    if done.code != 0:
        raise ChildProcessError(f"{command[0]} ended with {done.code}")
    return done.output
