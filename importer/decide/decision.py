"""Decisions as types: chosen, known to be none, or abstained; each carries its reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from importer.evidence.rule import Status
from importer.reasons import Reason

__all__ = ["Abstained", "Chosen", "Decision", "Decisions", "KnownNone", "Overruled", "Status"]


@dataclass(frozen=True, slots=True)
class Overruled:
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
    overruled: tuple[Overruled, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownNone:
    """It is known that there is none."""

    why: tuple[Reason, ...]
    overruled: tuple[Overruled, ...] = ()
    value: None = None
    status: Literal["none"] = "none"


@dataclass(frozen=True, slots=True)
class Abstained:
    """Nothing is known, and no guess is made; ``why`` says what would be needed."""

    why: tuple[Reason, ...]
    overruled: tuple[Overruled, ...] = ()
    value: None = None
    status: Literal["abstained"] = "abstained"


Decision = Chosen | KnownNone | Abstained
Decisions = Mapping[str, Decision]
