"""What a check comes to: fine, a trouble with its remedy, or not applicable with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from importer.engines.deaths import ENVIRONMENT, Attribution
from importer.errors import ImporterError
from importer.messages import render
from importer.reasons import Reason

if TYPE_CHECKING:
    from importer.engines.doctor.case import Case

About = Literal["machine", "engine", "document"]


class TroubleSeverity(StrEnum):
    """What a trouble does to a run."""

    STOPS = "stops"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Fine:
    """Nothing is in the way; ``reason`` is what was found."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something is in the way.

    ``severity``  whether a run would die of it, or be wrong without a word.
    ``part``      what is at fault, as a validation names it.
    ``error``     the failure that a run would meet, where it has a row of its own in the table of errors.
    """

    reason: Reason
    remedy: Reason
    severity: TroubleSeverity = TroubleSeverity.STOPS
    part: Attribution = ENVIRONMENT
    error: ImporterError | None = None

    @property
    def stops(self) -> bool:
        """Whether a run would not come to its end."""
        return self.severity is TroubleSeverity.STOPS


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """Nothing to look at, or nothing that can be told."""

    reason: Reason


Result = Fine | Trouble | NotApplicable
VERDICTS = {Fine: "fine", Trouble: "trouble", NotApplicable: "not-applicable"}


@dataclass(frozen=True, slots=True)
class Check:
    """One trap: its name, who is caught by it, what helps, and the function that looks.

    ``before``  whether a validation looks first; such a check imports no engine and asks no network.
    """

    name: str
    about: About
    trap: str
    helps: str
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

    def to_json(self, word: Callable[[Reason], str] = render) -> dict[str, Any]:
        """One row of a report; ``word`` renders reasons as a front end does."""
        found = self.result
        row = {
            "check": self.check,
            "subject": self.subject,
            "verdict": VERDICTS[type(found)],
            "says": word(found.reason),
        }
        if not isinstance(found, Trouble):
            return {**row, "remedy": "", "stops": False, "part": None}
        return {**row, "remedy": word(found.remedy), "stops": self.stops, "part": found.part}
