"""The probe of invented tools: a tool that the request does not offer is never called."""

from __future__ import annotations

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.expectations import no_tools
from importer.validation.outcome import Fail, Outcome, Pass
from importer.validation.prompts import NOT_OFFERED
from importer.validation.remedy import Remedy
from importer.validation.reply import Reply


class InventedToolReason(ReasonKind):
    """The reasons of ``invented-tool``."""

    NONE = "none", "no call of a tool that was not offered"
    NOT_WRITTEN = "not-written", "{name!r} was called; nobody offered it and the model did not write it"
    WRITTEN = "written", "{name!r} was called and nobody offered it"


NAME = "invented-tool"
LESSON = (
    "The request's tools were not given to the parser, so names that the model made up came out as calls."
)
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Send a question that no tool on offer answers."""
    return ctx.noted(NOT_OFFERED, judge, judge(ctx.look(NOT_OFFERED) or ctx.first(NOT_OFFERED)))


def judge(reply: Reply) -> Outcome:
    """Judge an answer to a question that no tool on offer fits."""
    offered = {tool["function"]["name"] for tool in NOT_OFFERED.tools}
    made_up = [call.name for call in reply.tool_calls if call.name not in offered]
    if not made_up:
        return Pass(Reason(InventedToolReason.NONE))
    if reply.written and made_up[0] not in reply.written:
        return Fail(Reason(InventedToolReason.NOT_WRITTEN, name=made_up[0]), "engine")
    remedy = Reason(Remedy.REFUSE_NAMES)
    return Fail(Reason(InventedToolReason.WRITTEN, name=made_up[0]), "model", remedy)
