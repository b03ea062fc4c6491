"""The probe of the served chat template: every nonce of a request reaches the prompt, as the proof asks."""

from __future__ import annotations

from collections.abc import Iterable

from importer.chat_template.markers import SHAPE
from importer.chat_template.request_coverage.findings import (
    WayInField,
    WayInFinding,
    WayInKind,
    WayInSeverity,
)
from importer.chat_template.study import TemplateAnalysis
from importer.decisions.request_coverage import ON_TOOLS, needs_tools
from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.expectations import CommonReason, Expectations, no_chat, no_tools
from importer.validation.fact import Rung
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.remedy import Remedy


class TemplateWholeReason(ReasonKind):
    """The reasons of ``template-whole``."""

    DEFECT = "defect", "in the chat template {problem}"
    WHOLE = "whole", "{checked} nonces reach the prompt unaltered and in order"


NAME = "template-whole"
LESSON = "Templates dropped the system beside tools, cut results, or escaped quotes: no fixed text showed it."
MOST = 6  # findings that a row lists
PARTS = frozenset(
    {WayInField.SYSTEM_PART, WayInField.USER_PART, WayInField.ANSWER_PART, WayInField.RESULT_PART}
)
OF_TOOLS = frozenset(
    {
        WayInField.TOOL_NAME, WayInField.TOOL_DESCRIPTION, WayInField.PARAMETER,
        WayInField.PARAMETER_DESCRIPTION, WayInField.ENUM, WayInField.NESTED_PARAMETER,
        WayInField.NESTED_DESCRIPTION, WayInField.REQUIRED, WayInField.TYPE,
    }
)  # fmt: skip
# What templates of vendors do, whose models are trained so.
BY_DESIGN = frozenset(
    {
        (WayInKind.REPR, WayInField.BOOLEAN),
        (WayInKind.REPR, WayInField.NULL),
        (WayInKind.OUT_OF_ORDER, WayInField.WORDS_BESIDE_CALL),
    }
)
ALL_TOOLS = 5  # the last number of the tools in the conversations
BROKEN = (WayInKind.FAILS, WayInKind.NEEDS_FIELD, WayInKind.SYNTAX, WayInKind.TOO_COSTLY)
REMEDIES = {
    WayInKind.ESCAPED: Remedy.NO_ESCAPING,
    WayInKind.ASCII: Remedy.NO_ESCAPING,
    WayInKind.TEXT_ARGUMENTS: Remedy.WRITE_ARGUMENTS,
    WayInKind.TOOLS_AFTER_RESULT: Remedy.SHOW_TOOLS,
    WayInKind.TOOLS_LATER: Remedy.SHOW_TOOLS,
    **dict.fromkeys(BROKEN, Remedy.OTHER_TEMPLATE),
    **dict.fromkeys(ON_TOOLS, Remedy.RENDER_TOOLS),
}
LOSSES = (WayInKind.EVERYTHING_LOST, WayInKind.LOST, WayInKind.CUT, WayInKind.OUT_OF_ORDER)
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Judge the way in of the template beside the weights; no request is sent."""
    analysis = None if ctx.render is None else ctx.render.analysis
    if analysis is None or analysis.way_in is None:
        return NotApplicable(Reason(CommonReason.NOT_RENDERED))
    return judge(analysis, ctx.promise)


def judge(analysis: TemplateAnalysis, promise: Expectations) -> Outcome:
    """Judge the findings on a template, the gravest first; those by design are notes of a pass."""
    way_in = analysis.way_in
    findings = [f for f in (way_in.findings if way_in else ()) if _concerns(f, promise)]
    meant = [f for f in findings if by_design(f, calls_end_turns=calls_end_turns(analysis))]
    defects = [f for f in findings if f not in meant]
    if not defects:
        checked = way_in.checked if way_in else 0
        return Pass(Reason(TemplateWholeReason.WHOLE, checked=checked), notes=tuple(_facts(meant)))
    first, *rest = _facts(defects)
    within = (defects[0].conversation,) if defects[0].conversation else ()
    return Fail(first, "configuration", remedy(defects[0]), notes=tuple(rest), within=within)


def _concerns(finding: WayInFinding, promise: Expectations) -> bool:
    """Return whether a finding is a defect of a request that the document promises to serve."""
    if finding.severity is WayInSeverity.NOTICE:
        return False
    if finding.field in PARTS or finding.field is WayInField.IMAGE:
        return promise.images > 0  # engines join the parts of a text for all other models
    of_tools = needs_tools(finding) or finding.kind in ON_TOOLS
    return not of_tools or no_tools(promise) is None


def by_design(finding: WayInFinding, *, calls_end_turns: bool) -> bool:
    """Return whether vendors' templates do the same.

    The names and schemas of tools may stand without descriptions, but not those of some tools alone.
    """
    if finding.shape:
        return finding.severity is not WayInSeverity.ERROR  # vendors' templates demand what may be left out
    if finding.field is WayInField.LATER_SYSTEM or (finding.kind, finding.field) in BY_DESIGN:
        return True
    lost = finding.kind is WayInKind.LOST
    if lost and finding.field is WayInField.TOOL_DESCRIPTION:
        return {1, ALL_TOOLS} <= set(finding.numbers)
    return lost and finding.field is WayInField.WORDS_BESIDE_CALL and calls_end_turns


def calls_end_turns(analysis: TemplateAnalysis) -> bool:
    """Return whether no marker closes a call: in such a format a turn is either words or calls."""
    call = next((s.completion.rstrip() for s in analysis.samples if s.case == "one-call"), "")
    return bool(call) and not any(marker.end() == len(call) for marker in SHAPE.finditer(call))


def _facts(findings: Iterable[WayInFinding]) -> list[Reason]:
    return [
        Reason(
            TemplateWholeReason.DEFECT, rung=Rung.TEMPLATE, conversation=f.conversation, kept=f.kept,
            problem=f.reason,
        )
        for f in list(findings)[:MOST]
    ]  # fmt: skip


def remedy(finding: WayInFinding) -> Reason:
    """Return the change for a finding: always another template."""
    if finding.kind is WayInKind.DOUBLED and finding.field is WayInField.SYSTEM:
        return Reason(Remedy.SYSTEM_ONCE)
    if finding.kind in LOSSES:
        tools = finding.field in OF_TOOLS
        told = {"tools": tools, "where": finding.conversation, "problem": finding.reason}
        return Reason(Remedy.RENDER_EVERYTHING, **told)
    return Reason(REMEDIES.get(finding.kind, Remedy.RENDER_UNALTERED))
