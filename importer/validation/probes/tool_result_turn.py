"""The tool's result goes back, and the answer uses it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.diagnosis import results_unseen, swallowed
from importer.validation.errors import ExchangeError
from importer.validation.expectations import CommonReason, no_tools
from importer.validation.markup import outside
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass
from importer.validation.prompts import BOTH_ANSWERED, TWO_CITIES, WEATHER_ANSWERED
from importer.validation.remedy import Remedy
from importer.validation.reply import Reply


class ToolResultReason(StrEnum):
    """What ``tool-result-turn`` finds."""

    OTHER_ORDER = "other-order"
    ONE_OF_TWO = "one-of-two"
    CALLS_AGAIN = "calls-again"
    NOT_USED = "not-used"


NAME = "tool-result-turn"
LESSON = "Templates that drop the result, or its id on the way, break multi-turn tool use in silence."
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Give the result, see that it reaches the prompt, and that the answer shows it."""
    both = judge_rendered(ctx.rendered(BOTH_ANSWERED))
    answered = results_unseen(ctx) or both or ctx.judged(WEATHER_ANSWERED, judge)
    return (_in_another_order(ctx) if isinstance(answered, Pass) else None) or answered


def _in_another_order(ctx: Context) -> Fail | None:
    """Return two results, told to the engine and to the model as the template renders them; once more if
    unlike.
    """
    found = None
    ways: tuple[dict[str, Any], ...] = ({}, {"max_tokens": ctx.promise.max_tokens})
    for sent in ways:
        alone = ctx.raw(BOTH_ANSWERED, **sent)
        if alone is None:
            return None
        try:
            told = ctx.ask(BOTH_ANSWERED, **sent).content
        except ExchangeError:
            return None
        found = judge_order(told, outside(alone))
        if found is None:
            return None
    return found


def judge_order(told: str, alone: str) -> Fail | None:
    """Return an answer over two results, and what the model writes after the rendered prompt of the same."""
    words, cities = BOTH_ANSWERED.expects, TWO_CITIES.expects
    here, there = (_order(text, words) for text in (told, alone))
    if len(here) != len(there) or here == there or _order(told, cities) != _order(alone, cities):
        return None
    reason = Reason(ToolResultReason.OTHER_ORDER, here=here[0], there=there[0])
    remedy = Reason(Remedy.OTHER_VERSION_ORDER)
    return Fail(reason, "engine", remedy, trials=2)


def _order(text: str, words: Sequence[str]) -> list[str]:
    """Return those of the words that ``text`` holds, in its order."""
    plain = text.casefold()
    return sorted((word for word in words if word in plain), key=plain.find)


def judge_rendered(text: str | None) -> Fail | None:
    """Return two results, as the template renders them; ``None`` where nobody can tell, or it refuses
    them.
    """
    lost = [word for word in BOTH_ANSWERED.expects if text and word not in text]
    if not lost or len(lost) == len(BOTH_ANSWERED.expects):
        return None
    return Fail(
        Reason(ToolResultReason.ONE_OF_TWO),
        "configuration",
        Reason(Remedy.RENDER_EVERY_RESULT),
    )


def judge(reply: Reply) -> Outcome:
    """Return an answer after the tool has spoken."""
    text = reply.content.strip()
    if any(word in text.casefold() for word in WEATHER_ANSWERED.expects):
        return Pass(Reason(CommonReason.ANSWERED, content=text[:80]))
    if reply.tool_calls:
        return Inconclusive(Reason(ToolResultReason.CALLS_AGAIN), "model")
    if swallowed(reply):
        return Fail(Reason(CommonReason.NOTHING_ARRIVED, tokens=reply.usage.completion), "configuration")
    return Inconclusive(Reason(ToolResultReason.NOT_USED, text=text[:120]), "model")
