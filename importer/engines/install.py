"""The environments of engines: installed under ``IMPORTER_HOME``, or found on this machine.

A managed environment is a folder with a virtual environment and, once it is complete, a stamp. Without the
right stamp it does not count, so an interrupted install is repeated and a new pin is installed anew.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from importer import config, launcher
from importer.engines.base import Environment, Pip, Step
from importer.errors import DocumentError, EngineError
from importer.frozen import frozen
from importer.launcher import Purpose, isolated
from importer.progress import Progress, silent
from importer.reasons import Reason, ReasonKind
from importer.wheels import PIP

Origin = Literal["managed", "variable", "current", "parsers"]
LAYOUT = 1  # of the folder; a change makes every environment new
STAMP = "installed.json"
SOURCES = "importer-parser-sources"  # beside the environment of parsers without their engine
LOG = "install.log"
QUESTION_SECONDS = 30.0
ASK_VERSION = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
ASK_PATH = "import sys; print(*sys.path, sep='\\n')"
INSTALL_SECONDS = 4 * 3600.0  # of an engine: 3.2 GB at 230 kB a second
LONGEST = threading.TIMEOUT_MAX


class InstallReason(ReasonKind):
    """Why an install failed, where pip reports no error."""

    COMMAND_ENDED = "'{command}' ended with {status}"
    TOO_SLOW = "the package index is too slow, or the line to it"
    PACKAGE_ABSENT = "the package is not there afterwards"


@frozen
class Installed:
    """An installed engine. ``root`` is its managed folder, ``None`` for other environments."""

    engine: str
    version: str
    python: Path
    origin: Origin
    root: Path | None = None


def root_of(engine: Environment) -> Path:
    """Return the folder of the managed environment."""
    return config.home() / "engines" / engine.name


def find(engine: Environment) -> Installed | None:
    """Return the engine: in the Python of the user's variable, the managed folder, or this interpreter.

    Raises EngineError("engine-python") where the variable names a Python without it.
    """
    variable = f"IMPORTER_{engine.name.upper().replace('-', '_')}_PYTHON"
    named = os.environ.get(variable)
    if named:
        python = Path(named).expanduser().absolute()
        version = _version(python, engine.distributions)
        if version is None:
            packages = " or ".join(engine.distributions)
            raise EngineError(
                "engine-python", variable=variable, path=python, name=engine.name, packages=packages
            )
        return Installed(engine.name, version, python, "variable")
    return managed(engine) or _current(engine)


def need(engine: Environment) -> Installed:
    """Return the engine; raises EngineError("engine-missing") where it is not installed."""
    installed = find(engine)
    if installed is None:
        raise EngineError("engine-missing", name=engine.name)
    return installed


def install(
    engine: Environment, progress: Progress | None = None, *, seconds: float = INSTALL_SECONDS
) -> Installed:
    """Make the managed environment with the caller's pip and its settings, unless it is complete.

    ``seconds`` are all that it may take. Raises EngineError("install-failed"), DocumentError("cannot-write").
    """
    report = progress or silent
    installed = managed(engine)
    if installed is not None:
        return installed
    root = root_of(engine)
    try:
        with folder_locked(root, report):
            return managed(engine) or _make(engine, root, report, time.monotonic() + seconds)
    except OSError as error:
        raise DocumentError("cannot-write", path=root, problem=error.strerror or str(error)) from None


def remove(engine: Environment) -> bool:
    """Remove the managed environment; returns whether there was one."""
    root = root_of(engine)
    if not root.exists():
        return False
    try:
        with folder_locked(root, silent):
            (root / STAMP).unlink(missing_ok=True)
            shutil.rmtree(root)
    except OSError as error:
        raise DocumentError("cannot-write", path=root, problem=error.strerror or str(error)) from None
    return True


@cache
def search_path(python: Path) -> tuple[Path, ...]:
    """Return the folders that a Python imports from; none where it fails to start."""
    answer = _ask(python, ASK_PATH) or ""
    return tuple(Path(line) for line in answer.splitlines() if line)


def places(python: Path) -> tuple[Path, ...]:
    """Return the folders of an environment that its Python imports packages from."""
    root = python.parent.parent
    own = (
        sorted(root.glob("lib*/python*/site-packages")) if root.name == "venv" else []
    )  # as install makes it
    return tuple(own) or search_path(python)


def environment(python: Path) -> str:
    """Return the place and the time of the last change of each folder with packages of a Python."""
    found = ((place, place.stat().st_mtime_ns) for place in places(python) if place.is_dir())
    return " ".join(f"{place} {changed}" for place, changed in found)


def digest(engine: Environment) -> str:
    """Return the sha256 over everything that decides the content of an environment, constraint files
    included.
    """
    plan = [(*step.pip, *(step.otherwise or ()), step.unless or "") for step in engine.plan()]
    files = {
        word: Path(word).read_text(encoding="utf-8")
        for step in plan
        for word in step
        if word.endswith(".txt")
    }
    # The place of a constraints file is no part of the environment, its text is.
    words = [[files.get(word, word) for word in step] for step in plan]
    return hashlib.sha256(json.dumps([LAYOUT, words]).encode()).hexdigest()


def managed(engine: Environment) -> Installed | None:
    """Return the managed environment, where it is complete and made by the present plan."""
    root = root_of(engine)
    stamp = stamped(root)
    if stamp.get("digest") != digest(engine):
        return None
    python = python_of(root)
    return Installed(engine.name, str(stamp["version"]), python, "managed", root)


def _current(engine: Environment) -> Installed | None:
    listed = _present()
    present = [name for name in engine.distributions if distribution_name(name) in listed]
    if not present:
        return None
    from importlib.metadata import PackageNotFoundError, version  # longer to load than a look at the folders

    for distribution in present:
        try:
            return Installed(engine.name, version(distribution), Path(sys.executable), "current")
        except PackageNotFoundError:
            continue
    return None


def _present() -> set[str]:
    """Return the plain names of the distributions in the folders that this interpreter imports from."""
    found = (path for folder in sys.path for path in Path(folder or ".").glob("*.*-info"))
    return {distribution_name(path.stem.partition("-")[0]) for path in found}


def distribution_name(name: str) -> str:
    """Return a distribution's name in the one spelling that the index compares."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _make(engine: Environment, root: Path, report: Progress, deadline: float) -> Installed:
    venv, log = root / "venv", root / LOG
    root.mkdir(exist_ok=True)
    (root / STAMP).unlink(missing_ok=True)
    if venv.exists():
        report("removing what an earlier install left")
        shutil.rmtree(venv)
    log.write_bytes(b"")
    complete = False
    try:
        report("making an environment")
        bare = ["--without-pip"] if _has_pip() else []
        run(engine.name, isolated("-m", "venv", *bare, str(venv)), log, report)
        for step in engine.plan():
            _perform(engine, step, root, report, deadline)
        version = _version(python_of(root), engine.distributions)
        if version is None:
            absent = Reason(InstallReason.PACKAGE_ABSENT)
            raise EngineError("install-failed", name=engine.name, problem=absent, log=log)
        installed = Installed(engine.name, version, python_of(root), "managed", root)
        stamp = {"digest": digest(engine), "engine": engine.name, "version": version, "python": sys.version}
        write_stamp(root, stamp)
        complete = True
        return installed
    finally:
        if not complete:
            shutil.rmtree(venv, ignore_errors=True)


def _perform(engine: Environment, step: Step, root: Path, report: Progress, deadline: float) -> None:
    python, log = str(python_of(root)), root / LOG
    if step.unless is not None:
        try:
            run(engine.name, isolated("-c", step.unless, python=python), log, silent)
        except EngineError:
            report(f"{step.pip[0]}ing what does not run: {' '.join(step.pip[1:])[:80]}")
        else:
            return
    try:
        _pip(engine, python, step.pip, log, report, deadline)
    except EngineError:
        if step.otherwise is None:
            raise
        report("that did not work; trying the other way")
        _pip(engine, python, step.otherwise, log, report, deadline)


def _pip(engine: Environment, python: str, words: Pip, log: Path, report: Progress, deadline: float) -> None:
    # The caller's pip serves other environments too: it is newer than the one a new environment would bring.
    pip = [*PIP, "--python", python] if _has_pip() else isolated("-m", "pip", python=python)
    # Compiling all of it would take half the time of an install; Python compiles what it comes to use.
    options = ["--no-input", "--no-compile", "--progress-bar", "off"] if words[0] == "install" else []
    command = [*pip, "--disable-pip-version-check", words[0], *options, *words[1:]]
    run(engine.name, command, log, report, deadline)


def _has_pip() -> bool:
    return find_spec("pip") is not None


def run(
    name: str, command: Sequence[str], log: Path, report: Progress = silent, deadline: float = math.inf
) -> None:
    """Run a command that ends with this process, its output into the log, its steps to ``report``.

    Raises EngineError("install-failed") where it fails, or is not done by ``deadline``.
    """
    from importer.engines.process import SUPERVISOR, lifeline

    with log.open("ab", buffering=0) as written, lifeline() as watched:
        process = launcher.start(
            isolated(str(SUPERVISOR), str(watched), "0", *command), Purpose.INSTALL,
            stdout=launcher.PIPE, stderr=launcher.STDOUT, keep=(watched,),
        )  # fmt: skip
        late = threading.Event()
        timer = threading.Timer(min(deadline - time.monotonic(), LONGEST), partial(_end, process, late))
        timer.daemon = True
        timer.start()
        last_error = ""
        try:
            for line in process.stdout or ():
                written.write(line)
                text = line.decode(errors="replace").strip()
                if text.startswith("ERROR"):
                    last_error = text.removeprefix("ERROR").lstrip(": ")
                elif text.startswith(("Collecting", "Downloading", "Installing", "Building", "Uninstalling")):
                    report(text[:100])
            status = process.wait()
        finally:  # after Ctrl-C pip must not go on behind the user's back
            timer.cancel()
            launcher.end(process)
    if status != 0:
        ended = Reason(InstallReason.COMMAND_ENDED, command=" ".join(command[1:4]), status=status)
        problem = Reason(InstallReason.TOO_SLOW) if late.is_set() else last_error or ended
        raise EngineError("install-failed", name=name, problem=problem, log=log)


def _end(process: launcher.Process, late: threading.Event) -> None:
    late.set()
    launcher.send(process.pid, signal.SIGKILL)


def sources_of(python: Path) -> Path | None:
    """Return the sources of parsers beside an environment's Python, as ``parser_worker`` looks for them;
    ``None`` for an engine.
    """
    sources = python.parent.parent.parent / SOURCES
    return sources if sources.is_dir() else None


def stamped(root: Path) -> Mapping[str, object]:
    """Return the stamp of a folder; an empty one where it is not complete, or its Python was removed."""
    try:
        stamp = json.loads((root / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    whole = isinstance(stamp, dict) and "version" in stamp and python_of(root).exists()
    return stamp if whole else {}


def write_stamp(root: Path, stamp: Mapping[str, str]) -> None:
    """Mark a folder as complete."""
    partial = root / f".{STAMP}"
    partial.write_text(json.dumps(stamp, indent=2) + "\n", encoding="utf-8")
    partial.replace(root / STAMP)


def _version(python: Path, distributions: Sequence[str]) -> str | None:
    """Return the version of the first distribution that is installed; by its folder, else by its Python."""
    return _beside(python, distributions) or _answered(python, distributions)


def _beside(python: Path, distributions: Sequence[str]) -> str | None:
    """Return the version out of the folder of a virtual environment; it may have packages elsewhere, too."""
    from importlib import metadata

    root = python.parent.parent
    if not (root / "pyvenv.cfg").is_file() or not os.access(python, os.X_OK):
        return None
    folders = [str(folder) for folder in root.glob("lib/python3*/site-packages")]
    found = (one for name in distributions for one in metadata.distributions(name=name, path=folders))
    return next((one.version for one in found), None)


def _answered(python: Path, distributions: Sequence[str]) -> str | None:
    answers = (_ask(python, ASK_VERSION, distribution) for distribution in distributions)
    return next((answer.strip() for answer in answers if answer is not None), None)


def _ask(python: Path, code: str, *words: str) -> str | None:
    """Return the output of an interpreter; ``None`` where it fails."""
    try:
        done = launcher.run([str(python), "-c", code, *words], Purpose.QUESTION, seconds=QUESTION_SECONDS)
    except OSError:
        return None
    return done.output if done.code == 0 else None


def python_of(root: Path) -> Path:
    """Return the Python of the environment in a managed folder."""
    return root / "venv" / "bin" / "python"


@contextmanager
def folder_locked(root: Path, report: Progress) -> Iterator[None]:
    """Hold the lock of the folder; the system drops the lock of a process that ends."""
    root.parent.mkdir(parents=True, exist_ok=True)
    with (root.parent / f".{root.name}.lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another installer")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
