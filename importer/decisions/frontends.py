"""Parsers and the frontends of vLLM: a name of one may be missing in the other, and mean other code there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from importer.decisions.decision import (
    PYTHON,
    RUST,
    Chosen,
    Decision,
    KnownNone,
    RejectedCandidate,
    Target,
    Undecided,
)
from importer.reasons import Fields, Reason, ReasonKind
from importer.signals.evidence import Source, warning

TOOL, REASONING = "tool_parser", "reasoning_parser"


NOUNS = {"tool_parser": ("tool parser", "call tools"), "reasoning_parser": ("reasoning parser", "reason")}


def _elsewhere(fields: Fields) -> str:
    noun = NOUNS[fields["field"]][0]
    return (
        f"the {fields['frontend'].title()} frontend of {fields['engine']} has no {noun} {fields['parser']}; "
        f"the {fields['other'].title()} frontend has it"
    )


class FrontendReason(ReasonKind):
    """Reasons for parsers that follow from the frontend, and from the version that proved them."""

    BUILT_IN = (
        "built-in",
        "the Rust frontend of {engine} reads this model by code of its own, and rejects every parser",
        "{engine}",
    )
    ELSEWHERE = "elsewhere", _elsewhere
    GUESSED = (
        "guessed",
        (
            "the Rust frontend of {engine} takes {parser} by the model's name; vllm serve drops the option "
            "against it"
        ),
    )
    ONE_FOR_BOTH = (
        "one-for-both",
        "{parser} reads calls and reasoning in one, and {engine} starts with it for both",
        "both kinds",
    )
    NOT_ONE_FOR_BOTH = (
        "not-one-for-both",
        "{parser} reads calls and reasoning in one, and {tool_parser} reads the calls",
        "both kinds",
    )
    OTHER_VERSION = "other-version", "proved by the parsers of {proved}; the document is for {version}"


def elsewhere(target: Target, key: str, name: str) -> Reason | None:
    """Return the reason for a parser that only the other frontend has, or ``None``."""
    if target.frontend is None or target.has(key, name) or name not in target.elsewhere.get(key, {}):
        return None
    other = RUST if target.frontend == PYTHON else PYTHON
    return Reason(
        FrontendReason.ELSEWHERE,
        engine=target.engine, field=key, parser=name,
        frontend=target.frontend, other=other,
    )  # fmt: skip


def settle(decisions: Mapping[str, Decision], target: Target) -> dict[str, Decision]:
    """Return the decisions on both parsers as the frontend starts with them.

    A parser that reads calls and reasoning in one is named for both. A key without a parser warns of a parser
    that the other frontend has. A proof by another version is noted.
    """
    if target.built_in:
        return {key: _built_in(decision, target) for key, decision in decisions.items()}
    settled = dict(decisions)
    if target.joint:
        settled |= _together(settled[TOOL], settled[REASONING], target)
    noted = {key: _noted(decision, target) for key, decision in settled.items()}
    if target.guessed is not None and noted[REASONING].value is None:
        guessed = Reason(FrontendReason.GUESSED, engine=target.engine, parser=target.guessed)
        noted[REASONING] = replace(noted[REASONING], why=(*noted[REASONING].why, warning(guessed)))
    return noted


def _built_in(decision: Decision, target: Target) -> Decision:
    """Return no parser, with those that were chosen or rejected; the user's own stays, with a warning."""
    reason = Reason(FrontendReason.BUILT_IN, engine=target.engine)
    if decision.status == "user":
        return replace(decision, why=(*decision.why, warning(reason)))
    lost = () if decision.value is None else (RejectedCandidate(decision.value, Source.PROOF, reason),)
    return KnownNone((reason,), (*lost, *decision.overruled))


def _together(tool: Decision, reasoning: Decision, target: Target) -> dict[str, Decision]:
    if tool.value == reasoning.value or not {tool.value, reasoning.value} & target.joint:
        return {}
    if tool.value in target.joint:
        return {REASONING: _joined(reasoning, tool, target)}
    if tool.value is None:
        return {TOOL: _joined(tool, reasoning, target)}
    problem = Reason(FrontendReason.NOT_ONE_FOR_BOTH, parser=reasoning.value, tool_parser=tool.value)
    if reasoning.status == "user":
        return {REASONING: replace(reasoning, why=(*reasoning.why, warning(problem)))}
    lost = (RejectedCandidate(reasoning.value, Source.PROOF, problem), *reasoning.overruled)
    return {REASONING: Undecided((problem,), lost)}


def _joined(own: Decision, other: Decision, target: Target) -> Decision:
    """Return the other kind's parser for this kind, too; a user's own value stays, with a warning."""
    reason = Reason(FrontendReason.ONE_FOR_BOTH, parser=other.value, engine=target.engine)
    if own.status == "user":
        return replace(own, why=(*own.why, warning(reason)))
    status = "declared" if other.status == "user" else other.status
    lost = () if own.value is None else (RejectedCandidate(own.value, Source.PROOF, reason),)
    return Chosen(other.value, status, (reason, *own.why), (*lost, *own.overruled))  # type: ignore[arg-type]


def _noted(decision: Decision, target: Target) -> Decision:
    return replace(decision, why=(*decision.why, *_notes(decision, target)))


def _notes(decision: Decision, target: Target) -> Iterator[Reason]:
    if decision.value is None:
        reasons = (lost.why for lost in decision.overruled)
        yield from (warning(r) for r in [*reasons][:1] if r.kind is FrontendReason.ELSEWHERE)
    elif decision.status == "proved" and target.proved_by is not None:
        yield Reason(FrontendReason.OTHER_VERSION, proved=target.proved_by, version=target.version)
