"""The engine a document is written for: which version, which parsers, and whether it can be asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from importer.decide.target import Target
from importer.engines import registries


@dataclass(frozen=True, slots=True)
class Bound:
    """A target, and the Python of the environment whose parsers can be asked for it, if there is one."""

    target: Target
    python: Path | None = None


def bind(backend: str, version: str | None = None, *, ask: bool = True) -> Bound:
    """``version`` if given, else the installed engine's, else the pinned one.

    An engine is only asked when it is the version that the document is written for, and ``ask`` says so.
    Raises UsageError("bad-option") for a version without a registry.
    """
    from importer.engines import environment, get, runs

    known = registries.versions(backend)
    if not known:
        return Bound(Target(backend, version))
    installed = environment.find(get(backend)) if runs(backend) else None
    if version is None and installed is not None and installed.version in known:
        version = installed.version
    registry = registries.load(backend, version)
    asked = installed if ask and installed is not None and installed.version == registry.version else None
    parsers = {"tool_parser": registry.classes("tool"), "reasoning_parser": registry.classes("reasoning")}
    target = Target(backend, registry.version, parsers, proves=asked is not None, runs=runs(backend))
    return Bound(target, None if asked is None else asked.python)
