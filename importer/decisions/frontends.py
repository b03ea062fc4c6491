"""Both parsers as a server starts with them.

vLLM has two frontends: a name of one may be missing in the other, and mean other code there. A parser that
reads calls and reasoning in one, as ``hf`` by a derived template does, stands for both or for neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from importer.signals.evidence import Evidence, Rule, Source, Status, warning

TOOL, REASONING = "tool_parser", "reasoning_parser"
HF = "hf"  # reads by a response template
NOUNS = {"tool_parser": ("tool parser", "call tools"), "reasoning_parser": ("reasoning parser", "reason")}


def _elsewhere(fields: Fields) -> str:
    noun = NOUNS[fields["field"]][0]
    return (
        f"the {fields['frontend'].title()} frontend of {fields['engine']} has no {noun} {fields['parser']}; "
        f"the {fields['other'].title()} frontend has it"
    )


class FrontendReason(ReasonKind):
    """Reasons for parsers that follow from the frontend."""

    BUILT_IN = (
        "the Rust frontend of {engine} reads this model by code of its own, and rejects every parser",
        "{engine}",
    )
    ELSEWHERE = (_elsewhere,)
    GUESSED = (
        "the Rust frontend of {engine} takes {parser} by the model's name; vllm serve drops the option "
        "against it"
    )
    ONE_FOR_BOTH = (
        "{parser} reads calls and reasoning in one, and {engine} starts with it for both",
        "both kinds",
    )
    NOT_ONE_FOR_BOTH = "{parser} reads calls and reasoning in one, and {other} is set beside it", "both kinds"


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
    that the other frontend has.
    """
    if target.built_in:
        return {key: _built_in(decision, target) for key, decision in decisions.items()}
    settled = dict(decisions)
    if target.joint:
        settled |= _together(settled[TOOL], settled[REASONING], target)
    noted = {key: _noted(decision) for key, decision in settled.items()}
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
    return {REASONING: _dropped(reasoning, tool)}


def _dropped(own: Decision, other: Decision) -> Decision:
    """Return no parser beside one that it does not go with; the user's own stays, with a warning."""
    reason = Reason(FrontendReason.NOT_ONE_FOR_BOTH, parser=own.value, other=other.value)
    if own.status == "user":
        return replace(own, why=(*own.why, warning(reason)))
    return Undecided((reason,), (RejectedCandidate(own.value, Source.PROOF, reason), *own.overruled))


def _joined(own: Decision, other: Decision, target: Target) -> Decision:
    """Return the other kind's parser for this kind, too; a user's own value stays, with a warning."""
    reason = Reason(FrontendReason.ONE_FOR_BOTH, parser=other.value, engine=target.engine)
    if own.status == "user":
        return replace(own, why=(*own.why, warning(reason)))
    status = "declared" if other.status == "user" else other.status
    lost = () if own.value is None else (RejectedCandidate(own.value, Source.PROOF, reason),)
    return Chosen(other.value, status, (reason, *own.why), (*lost, *own.overruled))  # type: ignore[arg-type]


def _noted(decision: Decision) -> Decision:
    """Return the decision; without a parser, with a warning of one that the other frontend has."""
    first = next((lost.why for lost in decision.overruled), None)
    if decision.value is not None or first is None or first.kind is not FrontendReason.ELSEWHERE:
        return decision
    return replace(decision, why=(*decision.why, warning(first)))


class DerivedReason(ReasonKind):
    """Reasons for the parser ``hf``, and its limits."""

    DERIVED = (
        "a response template derived from the chat template makes hf read every case; the document holds it",
        "derived template",
    )
    LIMITS = (
        "the parser hf rejects strict tools, a required or named tool choice and parallel_tool_calls=false"
    )


def settle_derived(
    decisions: Mapping[str, Decision], evidence: Sequence[Evidence], target: Target
) -> dict[str, Decision]:
    """Return the decisions on both parsers with reasons for a derived template; unchanged without one.

    vLLM starts with ``hf`` for calls and reasoning, or for neither. Calls decide: the reasoning parser
    becomes ``hf`` where the template reads reasoning too, else the calls stay without a parser.
    """
    served = next((e.value.derived for e in evidence if e.rule is Rule.PROOF), ())
    tool, reasoning = decisions[TOOL], decisions[REASONING]
    if not served or HF not in (tool.value, reasoning.value):
        return dict(decisions)
    if tool.value == HF and reasoning.value not in (None, HF):
        if reasoning.status == "user" or REASONING not in served:
            tool = _dropped(tool, reasoning)
        else:
            status: Status = "declared" if reasoning.status == "declared" else "proved"
            joined = _joined(reasoning, tool, target)
            reasoning = Chosen(
                HF, status, joined.why[:1], joined.overruled
            )  # without the reasons for another
    elif reasoning.value == HF and tool.value not in (None, HF):
        reasoning = _dropped(reasoning, tool)
    settled = {TOOL: tool, REASONING: reasoning}
    for key in (key for key in served if settled[key].value == HF):
        limits = (Reason(DerivedReason.LIMITS),) if key == TOOL else ()
        why = (*settled[key].why, Reason(DerivedReason.DERIVED), *limits)
        settled[key] = replace(settled[key], why=why)
    return settled
