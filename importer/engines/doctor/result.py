"""What a check comes to: fine, a trouble with its remedy, or not applicable with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from importer.errors import ImporterError

if TYPE_CHECKING:
    from importer.engines.doctor.case import Case

Part = Literal["configuration", "model", "engine", "environment"]
About = Literal["machine", "engine", "document"]
Hint = Callable[[ImporterError], str]


@dataclass(frozen=True, slots=True)
class Fine:
    """Nothing is in the way; ``says`` is what was found."""

    says: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something is in the way.

    ``stops``  whether a run would die of it, or be wrong without a word; else it is a warning.
    ``part``   what is at fault, as a validation names it.
    ``error``  the failure that a run would meet, where it has a kind of its own; its next step is the remedy.
    """

    says: str
    remedy: str
    stops: bool = True
    part: Part = "environment"
    error: ImporterError | None = None

    @classmethod
    def of(cls, error: ImporterError, part: Part = "environment") -> Trouble:
        """A failure as a trouble."""
        return cls(error.message, "", part=part, error=error)

    def step(self, hint: Hint) -> str:
        """The remedy; of a failure the next step, as a front end's ``hint`` words it."""
        return self.remedy if self.error is None else hint(self.error)


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """Nothing to look at, or nothing that can be told."""

    reason: str


Result = Fine | Trouble | NotApplicable


@dataclass(frozen=True, slots=True)
class Check:
    """One trap: its name, who is caught by it, what helps, and the function that looks.

    ``before``  whether a validation looks first; such a check imports no engine and asks no network.
    """

    name: str
    about: About
    trap: str
    remedy: str
    look: Callable[[Case], Result]
    before: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found, and about what: this machine, an engine, or a document."""

    check: str
    subject: str
    result: Result

    @property
    def stops(self) -> bool:
        """Whether a run would not come to its end."""
        return isinstance(self.result, Trouble) and self.result.stops

    def to_json(self, hint: Hint) -> dict[str, Any]:
        """As JSON; ``hint`` words the next step of a failure."""
        told, common = self.result, {"check": self.check, "subject": self.subject}
        nothing = {"remedy": "", "stops": False, "part": None}
        if isinstance(told, Fine):
            return {**common, "verdict": "fine", "says": told.says, **nothing}
        if isinstance(told, NotApplicable):
            return {**common, "verdict": "not-applicable", "says": told.reason, **nothing}
        tail = {"remedy": told.step(hint), "stops": told.stops, "part": told.part}
        return {**common, "verdict": "trouble", "says": told.says, **tail}
