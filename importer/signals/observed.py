"""What a validation saw of a model's own calls, as evidence for the next import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

from importer.frozen import frozen
from importer.reasons import Fields, Reason, ReasonKind
from importer.signals.evidence import Evidence, Rule, Source, warning

GOOD = 0.5  # the share of right calls from which a form is proposed, and counts as the model's


@frozen
class CallForm:
    """How the calls of the live model arrive in one form: ``right`` whole and right ones of ``asked``.

    ``template``  of ours by its name; empty for the document's own. ``digest``  of the template's text.
    ``parser``    that reads them; ``None`` where none reads any.
    ``choice``    of the requests: ``auto`` or ``required``.
    ``spelling``  the marks of the document's template, with those that the model writes in their place.
    """

    parser: str | None
    right: int
    asked: int
    template: str = ""
    digest: str = ""
    choice: Literal["auto", "required"] = "auto"
    spelling: tuple[tuple[str, str], ...] = ()

    @property
    def share(self) -> float:
        """Return the share of right calls."""
        return self.right / self.asked if self.asked else 0.0

    def to_json(self) -> dict[str, object]:
        """Return the form as a receipt has it."""
        return {**asdict(self), "spelling": dict(self.spelling)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CallForm:
        """Return the form that ``to_json`` gave."""
        return cls(**{**data, "spelling": tuple(data["spelling"].items())})


def proposed(forms: Sequence[CallForm]) -> CallForm:
    """Return the form to serve with: calls by the model itself before required ones, if enough arrive."""
    ranked = sorted(forms, key=lambda form: (form.choice == "auto", form.share), reverse=True)
    return next((form for form in ranked if form.share >= GOOD), max(forms, key=lambda form: form.share))


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
        "of {asked} answers of the model itself {parser} read {right} as whole, right calls",
        "{right}/{asked} calls",
    )
    UNREAD = (_unread,)


def of_calls(records: Sequence[Mapping[str, Any]], digest: str) -> list[Evidence]:
    """Return what the observed forms of calls say of the template with this digest.

    A parser that read enough of the model's calls, or ``None`` as the value where none did.
    """
    forms = [CallForm.from_json(one) for one in records]
    own = next((form for form in forms if form.digest == digest and form.choice == "auto"), None)
    if own is None:
        return []
    if own.parser is not None and own.share >= GOOD:
        reason = Reason(ObservedReason.CALLED, parser=own.parser, right=own.right, asked=own.asked)
        return [Evidence(Rule.OBSERVED, "tool_parser", own.parser, Source.VALIDATION, reason)]
    best = proposed(forms)
    reason = Reason(
        ObservedReason.UNREAD, right=own.right, asked=own.asked, template=best.template, choice=best.choice,
        better=0 if best is own else best.right, tried=best.asked,
    )  # fmt: skip
    return [Evidence(Rule.OBSERVED, "tool_parser", None, Source.VALIDATION, warning(reason))]
