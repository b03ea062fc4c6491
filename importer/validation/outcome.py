"""What a probe found: pass, fail, not applicable or inconclusive, each with its reason."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Attribution = Literal["configuration", "model", "engine", "environment"]
Evidence = tuple[Mapping[str, Any], ...]  # raw exchanges, as ``client.Exchange.to_json`` gives them
Z = 1.959964  # the normal distribution's quantile for 95 %, both sides


def wilson(agreed: int, trials: int) -> tuple[float, float] | None:
    """The 95 % score interval for a share, ``agreed`` of ``trials`` having been seen; ``None`` without any.

    Wilson, *Probable inference, the law of succession, and statistical inference*, JASA 22 (1927).
    """
    if trials < 1:
        return None
    share, spread = agreed / trials, Z * Z / trials
    centre = (share + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * math.sqrt(share * (1 - share) / trials + spread / (4 * trials))
    return max(0.0, centre - half), min(1.0, centre + half)


class _Counted:
    """What all outcomes share: of ``trials``, ``agreed`` said the same as the outcome; all, unless given."""

    __slots__ = ()
    trials: int
    agreed: int | None

    @property
    def agreeing(self) -> int:
        """How many trials said the same."""
        return self.trials if self.agreed is None else self.agreed

    @property
    def interval(self) -> tuple[float, float] | None:
        """Between what shares of all answers those lie that say the same, at 95 %."""
        return wilson(self.agreeing, self.trials)


@dataclass(frozen=True, slots=True)
class Pass(_Counted):
    """What was served is what the document says."""

    reason: str
    trials: int = 1
    evidence: Evidence = ()
    attribution: None = None
    mend: str = ""
    agreed: int | None = None
    outcome: Literal["pass"] = "pass"


@dataclass(frozen=True, slots=True)
class Fail(_Counted):
    """It is not; ``attribution`` names the part at fault, ``mend`` the change that would help."""

    reason: str
    attribution: Attribution
    mend: str = ""
    trials: int = 1
    evidence: Evidence = ()
    agreed: int | None = None
    outcome: Literal["fail"] = "fail"


@dataclass(frozen=True, slots=True)
class NotApplicable(_Counted):
    """The document does not promise what this probe looks for."""

    reason: str
    trials: int = 0
    evidence: Evidence = ()
    attribution: None = None
    mend: str = ""
    agreed: int | None = None
    outcome: Literal["not-applicable"] = "not-applicable"


@dataclass(frozen=True, slots=True)
class Inconclusive(_Counted):
    """It could not be told; ``attribution`` names the part that kept it from being told."""

    reason: str
    attribution: Attribution
    mend: str = ""
    trials: int = 1
    evidence: Evidence = ()
    agreed: int | None = None
    outcome: Literal["inconclusive"] = "inconclusive"


Outcome = Pass | Fail | NotApplicable | Inconclusive


def counts_as_passed(outcome: Outcome) -> bool:
    """Strict: an inconclusive probe has proved nothing."""
    return isinstance(outcome, Pass | NotApplicable)
