"""The effect of request coverage: a tool parser without tools in the prompt is not proved, or off.

A name that tables, files or the repository give stays in the document, with their status: with another
template it is the right one. A name that only the rendering gives goes: nothing shows that the model was
trained to call tools that its template never shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from importer.chat_template.request_coverage.findings import (
    KEY,
    VARIABLES,
    CoverageFinding,
    CoverageKind,
    CoverageSeverity,
)
from importer.decisions.decision import (
    Chosen,
    Decision,
    RejectedCandidate,
    Target,
    Undecided,
    ranked,
    status_of,
)
from importer.decisions.parsers import SHOWN_BY_TEMPLATE, ForeignReason, speaks_for
from importer.reasons import Fields, Reason, ReasonKind
from importer.signals.evidence import Evidence, Rule, Source, warning

TOOLS = "tool_parser"
REASONING = "reasoning_parser"
# Findings on all tools at once: their effect is on the tool parser, and its warning has them.
ON_TOOLS = frozenset(
    {
        CoverageKind.TOOLS_LOST, CoverageKind.TOOLS_REFUSED, CoverageKind.NO_TOOLS,
        CoverageKind.TOOLS_ONLY_WITH_SYSTEM, CoverageKind.TOOLS_ONLY_WITHOUT_SYSTEM,
    }
)  # fmt: skip
KINDS_OF_TOOLS = frozenset({CoverageKind.TOOLS_LOST_AFTER_RESULT, CoverageKind.TOOLS_LOST_LATER})


HIDDEN_TEXTS = {
    "lost": "the chat template never shows the tools to the model",
    "refused": "the chat template refuses requests with tools",
    "broken": "no request can be rendered with the chat template",
    "none": "the chat template has no place for tools",
}


def _hidden(fields: Fields) -> str:
    """{tools}, so {parser} has no call to read."""
    return f"{HIDDEN_TEXTS[fields['tools']]}, so {fields['parser']} has no call to read"


def _sometimes(fields: Fields) -> str:
    """The chat template shows the tools only with or without a system turn ({with_system})."""
    beside = "with" if fields["with_system"] else "without"
    return f"the chat template shows the tools only in requests {beside} a system turn"


def _offer(fields: Fields) -> str:
    """Return the names of {templates}."""
    return f"{' or '.join(f'the template {name}' for name in fields['templates'])} would show them"


class CoverageEffect(ReasonKind):
    """Reasons for a tool parser whose tools do not reach the prompt."""

    TOOLS_HIDDEN = (_hidden,)
    TOOLS_SOMETIMES = (_sometimes,)
    TOOLS_OFF = "the chat template never shows tools, and nothing else names {parser}, so tools are off"
    TEMPLATE_OFFERED = (_offer,)
    LOSES = "in the chat template {problem}"


class SwitchReason(ReasonKind):
    """Reasons about variables of a request that turn reasoning on and off."""

    UNHEARD = (
        "the parser {parser} listens to the switch {switch}, and the chat template has none: a client "
        "that sets {switch} to false gets the reasoning as content"
    )
    HEEDS = "the parser {parser} listens to {names:and}"


def switches(decisions: Mapping[str, Decision], facts: Sequence[Evidence]) -> dict[str, Decision]:
    """Return the decisions; the reasoning parser with the variables that it listens to."""
    parser = decisions[REASONING]
    proofs = (e.value for e in facts if e.key == REASONING and e.rule is Rule.PROOF)
    heard = next((proof.heeds.get(parser.value, ()) for proof in proofs), ())
    if not heard:
        return dict(decisions)
    own: Mapping[str, Any] = next((e.value for e in facts if e.key == VARIABLES), {})
    notes = [Reason(SwitchReason.HEEDS, parser=parser.value, names=tuple(heard))]
    if not any(name in own for name in heard):
        unheard = Reason(SwitchReason.UNHEARD, parser=parser.value, switch=heard[0])
        notes.append(warning(unheard) if own else unheard)  # who may switch something tries this, too
    return {**decisions, REASONING: replace(parser, why=(*parser.why, *notes))}


def needs_tools(finding: CoverageFinding) -> bool:
    """Return whether only requests with tools meet a finding."""
    return finding.group not in (None, "turn", "rare") or finding.kind in KINDS_OF_TOOLS


def apply(
    decisions: Mapping[str, Decision], facts: Sequence[Evidence], target: Target
) -> dict[str, Decision]:
    """Return the decisions, the tool parser and request coverage with what the template hides and loses."""
    fact = next((e for e in facts if e.key == KEY), None)
    if fact is None or KEY not in decisions:
        return dict(decisions)
    changed = {**decisions, TOOLS: _tool_parser(decisions[TOOLS], fact.value, facts, target)}
    thinks = changed.get(REASONING)
    if fact.value["tools"] == "broken" and isinstance(thinks, Chosen) and thinks.status == "proved":
        changed[REASONING] = replace(
            thinks, status="declared"
        )  # the warning on request coverage has the cause
    kind = decisions["kind"].value if "kind" in decisions else "chat"
    if kind != "base":
        losses = tuple(_losses(fact.value, changed[TOOLS]))
        changed[KEY] = replace(decisions[KEY], why=(*decisions[KEY].why, *losses))
    return changed


def _tool_parser(
    decision: Decision, request_coverage: Mapping[str, Any], facts: Sequence[Evidence], target: Target
) -> Decision:
    """Return the decision on the tool parser by whether the tools reach the prompt."""
    if request_coverage["tools"] == "shown" or not isinstance(decision, Chosen):
        offers = _offers(request_coverage, target) if isinstance(decision, Undecided) else ()
        named = tuple(offer for offer in offers if offer.kind is CoverageEffect.TEMPLATE_OFFERED)
        return replace(decision, why=(*decision.why, *named)) if named else decision
    findings = [CoverageFinding.from_json(data) for data in request_coverage["findings"]]
    shown = next((f for f in findings if f.kind in ON_TOOLS), None)
    offers = _offers(request_coverage, target)
    if request_coverage["tools"] == "sometimes":
        system = shown is not None and shown.kind is CoverageKind.TOOLS_ONLY_WITH_SYSTEM
        note = warning(Reason(CoverageEffect.TOOLS_SOMETIMES, with_system=system))
    else:
        note = warning(
            Reason(CoverageEffect.TOOLS_HIDDEN, parser=decision.value, tools=request_coverage["tools"])
        )
    if decision.status == "user":
        return replace(decision, why=(*decision.why, note, *offers))
    names = [e for e in facts if e.key == TOOLS and e.rule.names_parsers and e.value is not None]
    claims = ranked(e for e in names if e.rule not in SHOWN_BY_TEMPLATE)
    claim = next((e for e in claims if speaks_for(TOOLS, str(e.value), str(decision.value), target)), None)
    if claim is not None:
        rest = tuple(reason for reason in decision.why if reason != claim.reason)
        return replace(decision, status=status_of(claim.rule), why=(claim.reason, *rest, note, *offers))
    if request_coverage["tools"] == "sometimes":
        return replace(decision, status="table", why=(*decision.why, note, *offers))
    if request_coverage["tools"] == "broken":
        return replace(decision, status="declared", why=(*decision.why, note))
    off = Reason(CoverageEffect.TOOLS_OFF, parser=decision.value)
    lost = RejectedCandidate(decision.value, Source.PROOF, off)
    return Undecided((off, *offers), (*decision.overruled, lost))


def _offers(request_coverage: Mapping[str, Any], target: Target) -> tuple[Reason, ...]:
    """Return the templates with which the tools reach the prompt: the repository's, then ours."""
    if request_coverage["tools"] == "broken":
        return ()  # a template that wraps a broken one is broken too
    ours = tuple(request_coverage.get("offers", ()))
    if not ours:
        # Without calls in the template, calls of ours are left.
        return (Reason(ForeignReason.WOULD_OFFER, templates=target.templates),) if target.templates else ()
    return (Reason(CoverageEffect.TEMPLATE_OFFERED, templates=ours),)


def _losses(request_coverage: Mapping[str, Any], tools: Decision) -> Iterator[Reason]:
    """Yield one reason for each kind of loss, with its fields; losses of tools where there is a parser.

    What ordinary requests lose is marked as a warning; the rest are notes.
    """
    by_kind: dict[tuple[bool, CoverageKind, object], list[CoverageFinding]] = {}
    for data in request_coverage["findings"]:
        finding = CoverageFinding.from_json(data)
        of_tools = needs_tools(finding)
        told = finding.severity is not CoverageSeverity.NOTICE and finding.kind not in ON_TOOLS
        if told and (tools.value is not None or not of_tools):
            # Different losses have different causes; that requests fail is one sentence.
            grave = finding.severity is CoverageSeverity.ERROR
            hurt = finding.words if finding.kind is CoverageKind.REFUSED else finding.group == "schema"
            by_kind.setdefault((grave, finding.kind, hurt), []).append(finding)
    for (grave, kind, _), found in by_kind.items():
        within = tuple(f.conversation for f in found)
        fields = tuple(f.field for f in found if f.field is not None)
        words = next((f.words for f in found if f.words), "")
        loss = Reason(CoverageEffect.LOSES, problem=Reason(kind, field=fields, words=words, within=within))
        yield warning(loss) if grave else loss
