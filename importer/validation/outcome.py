"""What a probe found: pass, fail, not applicable or inconclusive, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Attribution = Literal["configuration", "model", "engine", "environment"]
Evidence = tuple[Mapping[str, Any], ...]  # raw exchanges, as ``client.Exchange.to_json`` gives them


@dataclass(frozen=True, slots=True)
class Pass:
    """What was served is what the document says."""

    reason: str
    trials: int = 1
    evidence: Evidence = ()
    attribution: None = None
    mend: str = ""
    outcome: Literal["pass"] = "pass"


@dataclass(frozen=True, slots=True)
class Fail:
    """It is not; ``attribution`` names the part at fault, ``mend`` the change that would help."""

    reason: str
    attribution: Attribution
    mend: str = ""
    trials: int = 1
    evidence: Evidence = ()
    outcome: Literal["fail"] = "fail"


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """The document does not promise what this probe looks for."""

    reason: str
    trials: int = 0
    evidence: Evidence = ()
    attribution: None = None
    mend: str = ""
    outcome: Literal["not-applicable"] = "not-applicable"


@dataclass(frozen=True, slots=True)
class Inconclusive:
    """It could not be told; ``attribution`` names the part that kept it from being told."""

    reason: str
    attribution: Attribution
    mend: str = ""
    trials: int = 1
    evidence: Evidence = ()
    outcome: Literal["inconclusive"] = "inconclusive"


Outcome = Pass | Fail | NotApplicable | Inconclusive


def counts_as_passed(outcome: Outcome) -> bool:
    """Strict: an inconclusive probe has proved nothing."""
    return isinstance(outcome, Pass | NotApplicable)
