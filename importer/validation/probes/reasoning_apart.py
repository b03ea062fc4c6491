"""The probe of reasoning: some of it arrives apart from the answer, none in the content, and the content is
whole.
"""

from __future__ import annotations

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.diagnosis import unread
from importer.validation.expectations import CommonReason, no_chat, no_reasoning
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, Outcome, Pass
from importer.validation.probes.reasoning_off import silent, turned_round
from importer.validation.prompts import SUM, SUM_THINKING
from importer.validation.remedy import ALLOW_TOKENS, OTHER_REASONING_PARSER, TRAINED_WEIGHTS, Remedy
from importer.validation.rendering import only_streamed, streaming_fault
from importer.validation.reply import Reply
from importer.validation.tool_markup import thinking_markup, thinks


class ReasoningApartReason(ReasonKind):
    """The reasons of ``reasoning-apart``."""

    SWITCHED_OFF = "switched-off", "the document switches thinking off"
    IN_CONTENT = "in-content", "the model thinks, and its thoughts are in the content"
    OTHER_FIELD = "other-field", "no thought arrives as reasoning, and {field!r} holds a text"
    NOT_APART = "not-apart", "the model thinks, and no thought arrives as reasoning"
    ANSWER_INSIDE = "answer-inside", "the answer is inside the reasoning, content is empty"
    APART = "apart", "thought {reasoning!r}, answered {content!r}"


NAME = "reasoning-apart"
LESSON = (
    "Models whose template opens the block themselves leaked it; models that never think lost their answer."
)
# Fields of the API's messages, and the two fields that clients read reasoning from.
FIELDS = {
    "role", "content", "refusal", "tool_calls", "function_call", "audio", "annotations", "name",
    "reasoning", "reasoning_content",
}  # fmt: skip
KNOWN_FIELDS = Reason(Remedy.OTHER_VERSION_FIELDS)
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Judge a whole answer, then a streamed one.

    Without a reasoning parser, no reasoning may be in the content.
    """
    none = no_reasoning(ctx.promise)
    if none is not None:
        return _none_missing(ctx, none)
    whole = ctx.judged(SUM, judge)
    if isinstance(whole, Inconclusive):  # some models think only with the switch on
        turned = turned_round(ctx)
        if turned is not None:
            return turned
        switched = ctx.judged(SUM_THINKING, judge)
        no_switch = ctx.promise.lacks("switches")
        if isinstance(switched, Inconclusive) and no_switch is not None and silent(ctx):
            return NotApplicable(Reason(ReasoningApartReason.SWITCHED_OFF), notes=(no_switch,))
        return whole if isinstance(switched, Inconclusive) else switched
    if not isinstance(whole, Pass):
        return whole
    streamed = ctx.judged(SUM, judge, stream=True)
    if isinstance(streamed, Fail):
        return streaming_fault(ctx, SUM, only_streamed(streamed))
    return streamed


def _none_missing(ctx: Context, none: Reason) -> Outcome:
    seen = ctx.look(SUM)
    if seen is not None and unread(seen, SUM) is not None:
        return Fail(Reason(ReasoningApartReason.IN_CONTENT), "configuration", OTHER_REASONING_PARSER)
    return NotApplicable(none)


def unknown_field(reply: Reply) -> str | None:
    """Return a field of the message, or of its pieces, that holds words and is unknown to clients."""
    texts: dict[str, str] = {}
    for data in reply.raw:
        for choice in data.get("choices") or ():
            part = choice.get("message") or choice.get("delta") or {}
            for key in part.keys() - FIELDS:
                texts[key] = texts.get(key, "") + (part[key] if isinstance(part[key], str) else "")
    return next((key for key, text in texts.items() if len(text.split()) > 1), None)


def judge(reply: Reply) -> Outcome:
    """Judge an answer to a question worth a thought."""
    for place, text in (("content", reply.content), ("reasoning", reply.reasoning)):
        marker = thinking_markup(text)
        if marker is not None:
            return Fail(
                Reason(CommonReason.THINKING_MARKER, marker=marker, place=place),
                "configuration",
                OTHER_REASONING_PARSER,
            )
    if not reply.reasoning.strip():
        if (field := unknown_field(reply)) is not None:
            return Fail(Reason(ReasoningApartReason.OTHER_FIELD, field=field), "engine", KNOWN_FIELDS)
        if thinks(reply.written):
            return Fail(
                Reason(ReasoningApartReason.NOT_APART),
                "configuration",
                OTHER_REASONING_PARSER,
            )
        return Inconclusive(Reason(CommonReason.NO_THOUGHT), "model", TRAINED_WEIGHTS)
    if not reply.content.strip():
        if reply.finish_reason == "length":
            return Inconclusive(Reason(CommonReason.STILL_THINKING), "model", ALLOW_TOKENS)
        return Fail(Reason(ReasoningApartReason.ANSWER_INSIDE), "configuration", OTHER_REASONING_PARSER)
    if reply.content.strip() == reply.reasoning.strip():
        return Fail(Reason(CommonReason.GIVEN_TWICE), "configuration", OTHER_REASONING_PARSER)
    return Pass(
        Reason(
            ReasoningApartReason.APART,
            reasoning=reply.reasoning.strip()[:60],
            content=reply.content.strip()[:60],
        )
    )
