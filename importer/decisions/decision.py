"""Decisions as types: chosen, known to be none, or undecided; each carries its reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from importer.reasons import Reason
from importer.signals.engine_capabilities import UNKNOWN, Abilities
from importer.signals.evidence import Status


@dataclass(frozen=True, slots=True)
class RejectedCandidate:
    """A value that was on offer and lost, who offered it, and why it lost."""

    value: Any
    source: str
    why: Reason


@dataclass(frozen=True, slots=True)
class Chosen:
    """A value, and how well it is founded."""

    value: Any
    status: Status
    why: tuple[Reason, ...]
    overruled: tuple[RejectedCandidate, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownNone:
    """It is known that there is none."""

    why: tuple[Reason, ...]
    overruled: tuple[RejectedCandidate, ...] = ()
    value: None = None
    status: Literal["none"] = "none"


@dataclass(frozen=True, slots=True)
class Undecided:
    """Nothing is known, and no guess is made; ``why`` says what would be needed."""

    why: tuple[Reason, ...]
    overruled: tuple[RejectedCandidate, ...] = ()
    value: None = None
    status: Literal["unknown"] = "unknown"


Decision = Chosen | KnownNone | Undecided
Decisions = Mapping[str, Decision]


@dataclass(frozen=True, slots=True)
class Target:
    """An engine to write for.

    ``backend``   one of ``backends.NAMES``.
    ``version``   the engine version whose registry is used; ``None`` when no registry is known.
    ``parsers``   field (``tool_parser``, ``reasoning_parser``) to its registered names and their classes;
                  a field that is absent has no registry to check against.
    ``proves``    the engine is installed, so its parsers were asked.
    ``runs``      the importer can install and start it.
    ``able``      what this version can load and does by itself.
    ``plugin``    a file with a parser of ours, which the engine is started with.
    ``templates`` those of ours that give tools to a model whose own has none, and that it can read.
    """

    backend: str
    version: str | None = None
    parsers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    proves: bool = False
    runs: bool = True
    able: Abilities = UNKNOWN
    plugin: str | None = None
    templates: tuple[str, ...] = ()

    def has(self, key: str, name: str) -> bool:
        """Return whether this engine version can load the parser."""
        return key not in self.parsers or name in self.parsers[key]

    def same_class(self, key: str, one: str, other: str) -> bool:
        """Return whether two names load one class, and so are interchangeable."""
        names = self.parsers.get(key, {})
        return one == other or (one in names and names.get(one) == names.get(other))


@dataclass(frozen=True, slots=True)
class Preferences:
    """What the user said: decision name or dotted YAML path to value. It wins over everything.

    ``unset`` are names and paths whose earlier values no longer count; ``template`` is the name of the chat
    template that stands in for the model's own: ours, or ``file``.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    unset: frozenset[str] = frozenset()
    template: str | None = None
