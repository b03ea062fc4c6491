"""The parsers of an engine without the engine: their sources, from its released wheel, and light packages.

The packages are an environment, ``IMPORTER_HOME/engines/parsers-DIGEST``: another importer with other
packages has its own. Each version is a folder in it: the ``sources`` of its parsers, with the wheel's
license, and an environment that imports both. A worker started there takes every other module of the engine
for a stand-in (``parser_worker.stand_ins``).

The members are read from the wheel by ranges and compared with its list; all of them have one digest, which
the registry of the version holds: an index that lies is found by it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeVar

from importer import config, wheels
from importer.engines import registries
from importer.engines.base import Plan, locked
from importer.engines.install import (
    LOG,
    SOURCES,
    Installed,
    digest,
    folder_locked,
    install,
    places,
    python_of,
    run,
    stamped,
    write_stamp,
)
from importer.engines.install import remove as remove_environment
from importer.engines.install import root_of as environment_root
from importer.engines.machine import has_gpu
from importer.errors import DocumentError, EngineError, Setting, UsageError
from importer.frozen import frozen
from importer.launcher import isolated
from importer.progress import Progress, silent
from importer.reasons import Reason, ReasonKind

SUFFIX = "-parsers"  # of a name for 'importer engine'
VARIABLE = "IMPORTER_PARSERS"
AUTO, INSTALLED, OFF = config.PROVE
LOCK = Path(__file__).with_name("constraints") / "parsers.txt"
SECONDS = 120.0  # for the sources, however an index answers
INSTALL_SECONDS = 900.0  # for the packages, 61 MB
PAUSE = 3600.0  # seconds in which no other import tries what failed; 'importer engine install' does
PATHS = "importer-parsers.pth"  # in its site-packages: more folders to import from
SETTING = "prove"  # in importer.toml
Answer = TypeVar("Answer")


class SourcesReason(ReasonKind):
    """Why an engine's parsers are not fetched."""

    NOT_KNOWN = "of {engine} only the sources of {known} are known"
    NO_MODE = "{word!r} is none of {known}"
    CHANGED = "the index gives other sources than those that importer knows"
    SLOW = "the index did not give them within {seconds:g} s"


@frozen
class Packages:
    """The packages that the parsers of all engines import, as an environment to install."""

    name: str = ""
    distributions: tuple[str, ...] = ("transformers",)

    def plan(self) -> Plan:
        """Return the install of the lock file."""
        return (locked(LOCK),)


@cache
def packages() -> Packages:
    """Return the packages of this importer, named by their lock."""
    return Packages(f"parsers-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:8]}")


@cache
def _digest_of_packages() -> str:
    return digest(packages())


def mode() -> str:
    """Return whether parsers are fetched (``auto``, the default), used where they are, or not used.

    Raises UsageError("bad-value") for another word in ``IMPORTER_PARSERS``.
    """
    named = os.environ.get(VARIABLE, "").strip().lower() or config.PROJECT.get().get(SETTING, AUTO)
    if named not in config.PROVE:
        problem = Reason(SourcesReason.NO_MODE, word=named, known=config.PROVE)
        raise UsageError("bad-value", setting=Setting.PARSERS, value=named, problem=problem)
    return named


def versions(backend: str) -> tuple[str, ...]:
    """Return the versions whose sources are known, the oldest first."""
    known = (registries.load(backend, version) for version in registries.versions(backend))
    return tuple(registry.version for registry in known if registry.parts)


def parse(name: str) -> tuple[str, str] | None:
    """Return backend and version of ``vllm-parsers`` or ``vllm-parsers==0.32.0``, by default the version
    that an import here is for; ``None`` for other names.
    """
    found = re.fullmatch(rf"(\w+){SUFFIX}(?:==([\w.]+))?", name)
    known = versions(found[1]) if found else ()
    if found is None or not known:
        return None
    build = "vllm-cuda" if found[1] == "vllm" and has_gpu() else found[1]
    return found[1], found[2] or registries.PINNED[build]


def every() -> Iterator[Installed]:
    """Yield the parsers on this disk."""
    from importer.engines.parser_worker.parts import PARTS

    for backend in PARTS:
        for version in versions(backend):
            if (found := find(backend, version)) is not None:
                yield found


def root_of(backend: str, version: str) -> Path:
    """Return the folder of a version."""
    return environment_root(packages()) / f"{backend}-{version}"


def find(backend: str, version: str) -> Installed | None:
    """Return the parsers of a version, where they are on this disk, whole and unchanged."""
    if version not in registries.versions(backend):
        return None
    root, registry = root_of(backend, version), registries.load(backend, version)
    if not registry.parts or stamped(root).get("digest") != _digest(registry):
        return None
    if stamped(root.parent).get("digest") != _digest_of_packages():
        return None
    if _of_sources(backend, root / SOURCES, _states(root / SOURCES)) != registry.parts:
        return None
    return Installed(f"{backend}{SUFFIX}", version, python_of(root), "parsers", root)


def _states(sources: Path) -> tuple[tuple[str, int, int, int], ...]:
    """Return name, size and times of each file: one that was written to has another time of its change."""
    states = ((str(path), path.stat()) for path in sources.rglob("*.py"))
    return tuple(sorted((path, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for path, one in states))


@lru_cache(maxsize=16)
def _of_sources(backend: str, sources: Path, states: tuple[tuple[str, int, int, int], ...]) -> str:
    """Return the digest over the sources on this disk, read once while none of them changes."""
    from importer.engines.parser_worker.parts import PARTS

    named = ((Path(path).relative_to(sources).as_posix(), Path(path)) for path, *_ in states)
    return wheels.digest_of((name, path.read_bytes()) for name, path in named if PARTS[backend].wants(name))


def failed_lately(backend: str, version: str) -> str | None:
    """Return why the parsers of a version could not be fetched within the last hour."""
    mark = _mark(backend, version)
    try:
        return (mark.read_text("utf-8") or None) if time.time() - mark.stat().st_mtime < PAUSE else None
    except (OSError, ValueError):
        return None


def note_failure(backend: str, version: str, why: str) -> None:
    """Keep why the parsers of a version could not be fetched: a machine without a network waits once."""
    mark = _mark(backend, version)
    with suppress(OSError):
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text(why, "utf-8")


def _mark(backend: str, version: str) -> Path:
    return config.cache() / f"not-fetched-{backend}-{version}"


def fetch(backend: str, version: str, progress: Progress = silent) -> Installed:
    """Return the parsers of a version, fetched from the package index where they are not here.

    Raises EngineError("parsers-not-fetched", "install-failed") and DocumentError("cannot-write").
    """
    name = f"{backend} {version}"
    if version not in versions(backend):
        reason = Reason(SourcesReason.NOT_KNOWN, engine=backend, known=versions(backend))
        raise EngineError("parsers-not-fetched", name=name, problem=reason)
    if (known := find(backend, version)) is not None:
        return known
    root, registry = root_of(backend, version), registries.load(backend, version)
    progress(f"fetching the parsers of {name}")
    texts = _within(SECONDS, name, lambda: read(backend, registry))  # first: without a network it ends here
    environment = install(packages(), progress, seconds=INSTALL_SECONDS)
    try:
        with folder_locked(root, progress):
            made = find(backend, version) or _make(backend, registry, root, environment, texts)
    except OSError as error:
        raise DocumentError("cannot-write", path=root, problem=error.strerror or str(error)) from None
    _mark(backend, version).unlink(missing_ok=True)
    return made


def _within(seconds: float, name: str, work: Callable[[], Answer]) -> Answer:
    """Return the answer of ``work``; raises EngineError where it is not there in time, as from an index that
    sends one byte after another.
    """
    answers: list[Answer] = []
    faults: list[BaseException] = []

    def attempt() -> None:
        try:
            answers.append(work())
        except BaseException as error:  # raised again below
            faults.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(seconds)
    for fault in faults:
        raise fault
    if not answers:
        reason = Reason(SourcesReason.SLOW, seconds=seconds)
        raise EngineError("parsers-not-fetched", name=name, problem=reason)
    return answers[0]


def remove(backend: str, version: str) -> bool:
    """Remove the parsers of a version; returns whether there were any. The packages go with the last."""
    root = root_of(backend, version)
    if not root.exists():
        return False
    try:
        with folder_locked(root, silent):
            shutil.rmtree(root)
        if not [*every()]:
            remove_environment(packages())
    except OSError as error:
        raise DocumentError("cannot-write", path=root, problem=error.strerror or str(error)) from None
    return True


def _digest(registry: registries.Registry) -> str:
    return f"{registry.parts} {_digest_of_packages()}"


def _make(
    backend: str, registry: registries.Registry, root: Path, packages: Installed, texts: Mapping[str, str]
) -> Installed:
    sources, name = root / SOURCES, f"{backend}{SUFFIX}"
    shutil.rmtree(root, ignore_errors=True)
    try:
        for path, text in texts.items():
            place = sources / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        bare = isolated("-m", "venv", "--without-pip", str(root / "venv"), python=str(packages.python))
        run(name, bare, root / LOG)
        python = python_of(root)
        own = places(python)[0]  # relative to it: the home may move
        paths = "".join(f"{os.path.relpath(place, own)}\n" for place in (*places(packages.python), sources))
        (own / PATHS).write_text(paths, encoding="utf-8")
        write_stamp(root, {"digest": _digest(registry), "engine": name, "version": registry.version})
    except OSError:
        shutil.rmtree(root, ignore_errors=True)
        raise
    return Installed(name, registry.version, python, "parsers", root)


def read(backend: str, registry: registries.Registry) -> Mapping[str, str]:
    """Return the sources of the parsers, by path in the wheel, and its metadata and licenses.

    Raises EngineError("parsers-not-fetched") where they have another digest than the registry's.
    """
    from importer.engines.parser_worker.parts import PARTS
    from importer.wheels.archive import IndexFailure
    from importer.wheels.index import Index

    parts, package = PARTS[backend], registry.source["package"]
    about = f"{package}-{registry.version}.dist-info/"
    name = f"{backend} {registry.version}"
    try:
        index = Index()
        release = next(one for one in index.files(package) if one.file == registry.source["file"])
        read = index.part(release, lambda path: parts.wants(path) or _is_about(path, about))
    except StopIteration:
        reason = Reason(SourcesReason.CHANGED)
        raise EngineError("parsers-not-fetched", name=name, problem=reason) from None
    except (IndexFailure, OSError) as error:
        raise EngineError("parsers-not-fetched", name=name, problem=str(error)) from None
    if read.only(parts.wants).digest != registry.parts:
        raise EngineError("parsers-not-fetched", name=name, problem=Reason(SourcesReason.CHANGED))
    return read.texts


def _is_about(path: str, folder: str) -> bool:
    return path.startswith(folder) and ("LICENSE" in path or path.endswith("/METADATA"))
