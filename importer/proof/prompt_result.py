"""Results of comparing prompts: per frontend and form of contents, and the form that loses the least."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from importer.decisions.decision import PromptVerdict
from importer.engines.deaths import Accident, ParserFailure
from importer.frozen import frozen
from importer.reasons import Fields, Reason, ReasonKind, Text
from importer.sentences import render

AUTO = "auto"


class PromptCase(StrEnum):
    """The conversations."""

    PLAIN = "plain"
    SYSTEM = "system"
    TURNS = "turns"
    USER_PARTS = "user-parts"
    SYSTEM_PARTS = "system-parts"
    TOOLS = "tools"
    CALL = "call"
    RESULT_PARTS = "result-parts"
    RESULTS = "results"
    NESTED = "nested"
    REASONING = "reasoning"
    IMAGE = "image"


def _excerpts(what: str) -> Text:
    def text(fields: Fields) -> str:
        where = f"case {fields['case']}: {what.format(**fields)}"
        if fields.get("ours") is None:
            return where
        return f"{where}; expected {fields['ours']!r}, rendered {fields['theirs']!r}"

    text.__doc__ = "case {case}: " + what + "; expected {ours}, rendered {theirs}"
    return text


class PromptDifference(ReasonKind):
    """How an engine's prompt differs from that of transformers, the gravest first.

    Each has ``case`` and ``place``; most have excerpts from the first different character: ``ours`` and
    ``theirs``.
    """

    REFUSED = "refused", "case {case}: refused with {words}"
    DROPPED = "dropped", _excerpts("{place} is absent from the prompt")
    PARTS_PRINTED = "parts-printed", _excerpts("the parts of {place} are printed as data")
    MOVED = "moved", _excerpts("the image does not stand between the texts of {place}")
    OTHER = "other", _excerpts("the prompt differs at {place}")
    VALUE_FORM = "value-form", _excerpts("a value at {place} is printed in another form")
    SWITCHED = "switched", "case {case}: the engine sets {variable} to {value} by itself"
    KEY_ORDER = "key-order", _excerpts("keys at {place} stand in another order")
    WHITESPACE = "whitespace", _excerpts("white space differs at {place}")
    ONLY_ENGINE = "only-engine", "case {case}: transformers refuses the conversation, the engine renders it"


KINDS: Mapping[str, type[ReasonKind]] = {
    kinds.__name__: kinds for kinds in (PromptDifference, PromptVerdict, ParserFailure, Accident)
}
LOSSES = (
    PromptDifference.REFUSED, PromptDifference.DROPPED, PromptDifference.PARTS_PRINTED,
    PromptDifference.MOVED,
)  # fmt: skip


@frozen
class FormatOutcome:
    """One form of contents: ``of`` conversations, and a finding for each that differs.

    ``applied`` is the form that the engine resolved, where it reports one.
    """

    of: int
    findings: tuple[Reason, ...] = ()
    applied: str | None = None

    @property
    def equal(self) -> int:
        """Return the number of conversations with equal prompts."""
        return self.of - len(self.findings)

    @property
    def losses(self) -> tuple[Reason, ...]:
        """Return the findings in which something is lost."""
        return tuple(f for f in self.findings if f.kind in LOSSES)

    @property
    def weight(self) -> tuple[int, int]:
        """Return the sort key: losses, then all differences."""
        return len(self.losses), len(self.findings)

    def to_json(self) -> dict[str, object]:
        """Return the outcome as receipts hold it."""
        findings = [f.to_json() | {"message": render(f)} for f in self.findings]
        return {"of": self.of, "equal": self.equal, "applied": self.applied, "findings": findings}


@frozen
class FrontendPrompts:
    """The prompts of one frontend; ``outcomes`` by form of contents, the engine's default first.

    ``failed`` is the reason why the frontend rendered nothing. ``unseen`` is whether the template shows
    images and the frontend was asked without them: then another form than its own may lose the images.
    """

    frontend: str
    version: str
    outcomes: Mapping[str, FormatOutcome] = field(default_factory=dict)
    failed: Reason | None = None
    unseen: bool = False

    @property
    def best(self) -> str:
        """Return the form that loses the least; the default where none is better."""
        forms = [*self.outcomes][:1] if self.unseen else [*self.outcomes]
        return min(forms, key=lambda form: self.outcomes[form].weight, default=AUTO)

    @property
    def chosen(self) -> FormatOutcome:
        """Return the outcome of the best form."""
        return self.outcomes.get(self.best, FormatOutcome(0))

    def to_json(self) -> dict[str, object]:
        """Return the result as receipts hold it."""
        return {
            "frontend": self.frontend,
            "version": self.version,
            "best": self.best,
            "formats": {form: outcome.to_json() for form, outcome in self.outcomes.items()},
            "failed": None if self.failed is None else self.failed.to_json(),
            "unseen": self.unseen,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FrontendPrompts:
        """Return the result from ``to_json``; raises KeyError and ValueError for another form."""
        outcomes = {
            form: FormatOutcome(one["of"], tuple(map(_reason, one["findings"])), one["applied"])
            for form, one in data["formats"].items()
        }
        return cls(data["frontend"], data["version"], outcomes, _reason(data["failed"]), bool(data["unseen"]))

    def explain(self) -> Iterator[str]:
        """Yield the outcome of each form of contents, and its findings, as lines of text."""
        for form, outcome in self.outcomes.items():
            mark = ", chosen" if form == self.best and len(self.outcomes) > 1 else ""
            yield (
                f"  prompts of {self.frontend} {self.version}, contents {form}{mark}: "
                f"{outcome.equal} of {outcome.of} equal"
            )
            yield from (f"    {render(finding)}" for finding in outcome.findings)
        if self.failed is not None:
            yield f"  prompts of {self.frontend} {self.version}: {render(self.failed)}"


def _reason(data: Any) -> Any:
    """Return the reason of its JSON; raises ValueError for an unknown kind."""
    if isinstance(data, list):
        return tuple(map(_reason, data))
    if not isinstance(data, Mapping):
        return data
    name, _, kind = str(data["kind"]).partition(".")
    fields = {k: _reason(v) for k, v in data.items() if k not in ("kind", "message")}
    return Reason(KINDS[name](kind), **fields)
