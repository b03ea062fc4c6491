"""The probe of cut reasoning: a thought that the limit of tokens cuts stays a thought."""

from __future__ import annotations

from functools import partial

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context, ask_both_ways
from importer.validation.expectations import CommonReason, no_reasoning
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, Outcome, Pass
from importer.validation.prompts import SUM_THINKING
from importer.validation.remedy import CUT_THOUGHT, Remedy
from importer.validation.reply import Reply
from importer.validation.tool_markup import thinking_markup


class ReasoningCutReason(ReasonKind):
    """The reasons of ``reasoning-cut``."""

    NO_THOUGHT_NOW = "no-thought-now", "the model answers without a thought this time"
    IN_CONTENT = "in-content", "the cut thought is in the content: {content!r}"
    IN_BOTH = "in-both", "the cut thought is in the content, too"
    CUT = "cut", "thought {reasoning!r}, no content, finish_reason 'length'"
    NOT_SAID = "not-said", "the thought was cut, and finish_reason is {finish_reason!r}, not 'length'"


NAME = "reasoning-cut"
LESSON = "A block that never closed came out as the answer, or not at all, and nothing said that it was cut."
LIMIT = 4  # tokens; thoughts are longer
needs = no_reasoning


def run(ctx: Context) -> Outcome:
    """Cut a few tokens into the thought that begins a whole answer."""
    full = ctx.first(SUM_THINKING)
    if not full.reasoning.strip():
        return NotApplicable(Reason(CommonReason.NO_THOUGHT))
    return ask_both_ways(ctx, SUM_THINKING, partial(judge, full=full), max_tokens=LIMIT)


def judge(reply: Reply, full: Reply) -> Outcome:
    """Judge an answer that was cut inside its thought; ``full`` is a whole one."""
    content, thought = reply.content.strip(), full.reasoning.strip()
    if marker := thinking_markup(content):
        return Fail(
            Reason(CommonReason.THINKING_MARKER, marker=marker, place="content"), "configuration", CUT_THOUGHT
        )
    if content and not reply.reasoning.strip():
        if full.content.strip().startswith(content) and not thought.startswith(content):
            return Inconclusive(Reason(ReasoningCutReason.NO_THOUGHT_NOW), "model")
        return Fail(Reason(ReasoningCutReason.IN_CONTENT, content=content[:60]), "engine",
                    Reason(Remedy.ALLOW_OR_OTHER_PARSER))  # fmt: skip
    if content and content == reply.reasoning.strip():
        return Fail(Reason(ReasoningCutReason.IN_BOTH), "engine")
    if reply.finish_reason == "length":
        return Pass(Reason(ReasoningCutReason.CUT, reasoning=reply.reasoning.strip()[:40]))
    if content:
        return Inconclusive(Reason(CommonReason.DONE_BEFORE), "model")
    return Fail(Reason(ReasoningCutReason.NOT_SAID, finish_reason=reply.finish_reason), "engine")
