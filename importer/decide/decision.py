"""Decisions as types: chosen, known to be none, or abstained; each carries its reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["user", "proved", "claimed", "vendor", "table", "engine-default"]


@dataclass(frozen=True, slots=True)
class Overruled:
    """A value that was on offer and lost, who offered it, and why it lost."""

    value: Any
    source: str
    why: str

    def to_json(self) -> dict[str, Any]:
        """As it stands in reports and receipts."""
        return {"value": self.value, "source": self.source, "why": self.why}


@dataclass(frozen=True, slots=True)
class Chosen:
    """A value, and how well it is founded."""

    value: Any
    status: Status
    why: tuple[str, ...]
    overruled: tuple[Overruled, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownNone:
    """It is known that there is none."""

    why: tuple[str, ...]
    overruled: tuple[Overruled, ...] = ()
    value: None = None
    status: Literal["none"] = "none"


@dataclass(frozen=True, slots=True)
class Abstained:
    """Nothing is known, and no guess is made; ``why`` says what would be needed."""

    why: tuple[str, ...]
    overruled: tuple[Overruled, ...] = ()
    value: None = None
    status: Literal["abstained"] = "abstained"


Decision = Chosen | KnownNone | Abstained
Decisions = Mapping[str, Decision]


def to_json(decision: Decision) -> dict[str, Any]:
    """The frozen form: value, status, why, overruled."""
    return {
        "value": decision.value,
        "status": decision.status,
        "why": list(decision.why),
        "overruled": [o.to_json() for o in decision.overruled],
    }
