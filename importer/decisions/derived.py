"""The parser ``hf`` with a derived response template: what it stands beside, and what it rejects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from importer.decisions.decision import Chosen, Decision, RejectedCandidate, Target, Undecided
from importer.reasons import Reason, ReasonKind
from importer.signals.evidence import Evidence, Rule, Source, Status, warning

HF = "hf"
TOOL, REASONING = "tool_parser", "reasoning_parser"


HF_LIMITS = (
    "the parser hf rejects strict tools, a required or named tool choice and parallel_tool_calls=false"
)


class DerivedReason(ReasonKind):
    """Reasons for the parser ``hf``, and its limits."""

    DERIVED = (
        "derived",
        "a response template derived from the chat template makes hf read every case; the document holds it",
        "derived template",
    )
    LIMITS = "limits", HF_LIMITS


class PairReason(ReasonKind):
    """Reasons that follow from ``hf`` for calls and reasoning, or for neither."""

    WITH_TOOLS = "with-tools", "{engine} starts with hf for calls and reasoning, or for neither", "both kinds"
    NOT_BESIDE = "not-beside", "{engine} refuses hf beside another parser, and {parser} is set", "both kinds"


def settle(
    decisions: Mapping[str, Decision], evidence: Sequence[Evidence], target: Target
) -> dict[str, Decision]:
    """Return the decisions on both parsers with reasons for a derived template; unchanged without one.

    vLLM starts with ``hf`` for calls and reasoning, or for neither. Calls decide: the reasoning parser
    becomes ``hf`` where the template reads reasoning too, else the calls stay without a parser.
    """
    served = next((e.value.get("derived") for e in evidence if e.rule is Rule.PROOF), None) or ()
    tool, reasoning = decisions[TOOL], decisions[REASONING]
    if not served or HF not in (tool.value, reasoning.value):
        return dict(decisions)
    if tool.value == HF and reasoning.value not in (None, HF):
        if reasoning.status == "user" or REASONING not in served:
            tool = _dropped(tool, reasoning, target)
        else:
            reasoning = _joined(reasoning, target)
    elif reasoning.value == HF and tool.value not in (None, HF):
        reasoning = _dropped(reasoning, tool, target)
    settled = {TOOL: tool, REASONING: reasoning}
    return {key: _noted(key, decision, served) for key, decision in settled.items()}


def _noted(key: str, decision: Decision, served: Sequence[str]) -> Decision:
    """Return the decision; on a derived template with its reason, and for tools with its limits."""
    if decision.value != HF or key not in served:
        return decision
    limits = (warning(Reason(DerivedReason.LIMITS)),) if key == TOOL else ()
    return replace(decision, why=(*decision.why, Reason(DerivedReason.DERIVED), *limits))


def _joined(reasoning: Decision, target: Target) -> Decision:
    """Return ``hf`` for the reasoning, too, in place of another parser."""
    reason = Reason(PairReason.WITH_TOOLS, engine=target.engine)
    lost = RejectedCandidate(reasoning.value, Source.PROOF, reason)
    status: Status = "declared" if reasoning.status == "declared" else "proved"
    return Chosen(HF, status, (reason,), (lost, *reasoning.overruled))


def _dropped(own: Decision, other: Decision, target: Target) -> Decision:
    """Return no parser in place of ``hf`` beside another parser; the user's own stays, with a warning."""
    reason = Reason(PairReason.NOT_BESIDE, engine=target.engine, parser=other.value)
    if own.status == "user":
        return replace(own, why=(*own.why, warning(reason)))
    return Undecided((reason,), (RejectedCandidate(HF, Source.PROOF, reason), *own.overruled))
