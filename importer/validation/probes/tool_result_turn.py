"""The probe of tool results: the tool's result reaches the prompt, and the answer uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.diagnosis import results_unseen, swallowed
from importer.validation.errors import ExchangeError
from importer.validation.expectations import CommonReason, no_tools
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass
from importer.validation.prompts import BOTH_ANSWERED, TWO_CITIES, WEATHER_ANSWERED
from importer.validation.remedy import TRAINED_WEIGHTS, Remedy
from importer.validation.reply import Reply
from importer.validation.tool_markup import outside


class ToolResultReason(ReasonKind):
    """The reasons of ``tool-result-turn``."""

    OTHER_ORDER = (
        "other-order",
        "of two results the engine's answer tells {here}, and the model {there} by its template",
    )
    ONE_OF_TWO = "one-of-two", "of the results of two calls only one reaches the prompt"
    CALLS_AGAIN = "calls-again", "the model calls the tool again"
    NOT_USED = "not-used", "the answer does not use the result: {text!r}"


NAME = "tool-result-turn"
LESSON = "Templates that drop the result, or its id on the way, break multi-turn tool use in silence."
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Send the result; judge its place in the prompt and the answer to it."""
    both = judge_rendered(ctx.rendered(BOTH_ANSWERED))
    answered = results_unseen(ctx) or both or ctx.judged(WEATHER_ANSWERED, judge)
    return (_in_another_order(ctx) if isinstance(answered, Pass) else None) or answered


def _in_another_order(ctx: Context) -> Fail | None:
    """Return the fault of two results in another order than the template renders them; confirmed by a second
    try.
    """
    failure = None
    ways: tuple[dict[str, Any], ...] = (
        {},
        {"max_tokens": ctx.promise.limit(BOTH_ANSWERED.tokens, tools=True)},
    )
    for sent in ways:
        alone = ctx.raw(BOTH_ANSWERED, **sent)
        if alone is None:
            return None
        try:
            answer = ctx.ask(BOTH_ANSWERED, **sent).content
        except ExchangeError:
            return None
        failure = judge_order(answer, outside(alone))
        if failure is None:
            return None
    return failure


def judge_order(answer: str, alone: str) -> Fail | None:
    """Judge an answer over two results, beside the completion of the same rendered prompt."""
    words, cities = BOTH_ANSWERED.expects, TWO_CITIES.expects
    served, completed = (_order(text, words) for text in (answer, alone))
    if (
        len(served) != len(completed)
        or served == completed
        or _order(answer, cities) != _order(alone, cities)
    ):
        return None
    reason = Reason(ToolResultReason.OTHER_ORDER, here=served[0], there=completed[0])
    remedy = Reason(Remedy.OTHER_VERSION_ORDER)
    return Fail(reason, "engine", remedy, trials=2)


def _order(text: str, words: Sequence[str]) -> list[str]:
    """Return those of the words that ``text`` holds, in its order."""
    plain = text.casefold()
    return sorted((word for word in words if word in plain), key=plain.find)


def judge_rendered(text: str | None) -> Fail | None:
    """Judge two results as the template renders them; ``None`` without a fault or a rendered prompt."""
    lost = [word for word in BOTH_ANSWERED.expects if text and word not in text]
    if not lost or len(lost) == len(BOTH_ANSWERED.expects):
        return None
    return Fail(
        Reason(ToolResultReason.ONE_OF_TWO),
        "configuration",
        Reason(Remedy.RENDER_EVERY_RESULT),
    )


def judge(reply: Reply) -> Outcome:
    """Judge an answer after the result of the tool."""
    text = reply.content.strip()
    if any(word in text.casefold() for word in WEATHER_ANSWERED.expects):
        return Pass(Reason(CommonReason.ANSWERED, content=text[:80]))
    if reply.tool_calls:
        return Inconclusive(Reason(ToolResultReason.CALLS_AGAIN), "model", TRAINED_WEIGHTS)
    if swallowed(reply):
        return Fail(Reason(CommonReason.NOTHING_ARRIVED, tokens=reply.usage.completion), "configuration")
    return Inconclusive(Reason(ToolResultReason.NOT_USED, text=text[:120]), "model", TRAINED_WEIGHTS)
