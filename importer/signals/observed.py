"""What a validation saw of a model's own calls, as evidence for the next import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from importer.reasons import Fields, Reason, ReasonKind
from importer.signals.evidence import Evidence, Rule, Source, warning

ENOUGH = 0.5  # the share of right calls from which a form counts as the model's


def _unread(fields: Fields) -> str:
    seen = f"of {fields['asked']} answers of the model itself {fields['right']} were calls that a parser read"
    template, choice, right, asked = (fields[key] for key in ("template", "choice", "better", "tried"))
    how = f"the template {template}" if template else f"tool_choice {choice}"
    return (
        f"{seen}; with {how} {right} of {asked} arrive" if right else f"{seen}, and no form tried did better"
    )


class ObservedReason(ReasonKind):
    """What the answers of the live model showed."""

    CALLED = (
        "called",
        "of {asked} answers of the model itself {parser} read {right} as whole, right calls",
        "{right}/{asked} calls",
    )
    UNREAD = "unread", _unread


def of_calls(forms: Sequence[Mapping[str, Any]], digest: str) -> list[Evidence]:
    """Return what the observed forms of calls say of the template with this digest.

    A parser that read enough of the model's calls, or ``None`` as the value where none did.
    """
    own = next((f for f in forms if f["digest"] == digest and f["choice"] == "auto"), None)
    if own is None:
        return []
    if own["parser"] is not None and own["right"] >= ENOUGH * own["asked"]:
        reason = Reason(ObservedReason.CALLED, parser=own["parser"], right=own["right"], asked=own["asked"])
        return [Evidence(Rule.OBSERVED, "tool_parser", own["parser"], Source.VALIDATION, reason)]
    best = max((f for f in forms if f is not own), key=lambda f: f["right"] / (f["asked"] or 1), default=own)
    better = best["right"] if best is not own else 0
    reason = Reason(
        ObservedReason.UNREAD, right=own["right"], asked=own["asked"], template=best["template"],
        choice=best["choice"], better=better, tried=best["asked"],
    )  # fmt: skip
    return [Evidence(Rule.OBSERVED, "tool_parser", None, Source.VALIDATION, warning(reason))]
