"""The probe of the first answer: it begins in time, and its speed shows whether all probes end in time."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from importer.reasons import Reason
from importer.validation.client import Exchange
from importer.validation.context import SIDE_BY_SIDE, Context
from importer.validation.errors import ExchangeError, Overloaded, TimedOut
from importer.validation.expectations import no_chat
from importer.validation.outcome import Inconclusive, NotApplicable, Outcome, Pass
from importer.validation.prompts import GREETING
from importer.validation.remedy import Remedy


class FirstAnswerReason(StrEnum):
    """The reasons of ``first-answer``."""

    BEGAN = "began"
    MEASURED = "measured"
    ELSEWHERE = "elsewhere"
    TOO_SLOW = "too-slow"


NAME = "first-answer"
LESSON = (
    "An engine answered /health and nothing else, or a token a second: no verdict came within ten minutes."
)
WITHIN = 45.0  # seconds until a greeting's answer begins
TOKENS = 2000  # of the answers to all probes, on the demo model
PLAIN_SECONDS = 10.0  # of an answer without tools, alone
FEWEST = 96  # tokens of an answer without tools, on any engine
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Greet and measure, streamed; whole where no stream begins. Raises TimedOut and Overloaded."""
    hasty = replace(ctx, client=replace(ctx.client, begins_within=WITHIN))
    try:
        hasty.first(GREETING, stream=True)
    except TimedOut:
        hasty.first(GREETING)
        return NotApplicable(Reason(FirstAnswerReason.ELSEWHERE))
    except Overloaded:
        raise
    except ExchangeError:
        return NotApplicable(Reason(FirstAnswerReason.ELSEWHERE))
    return judge(ctx.log[-1], ctx.client.seconds_left)


def judge(exchange: Exchange, left: float) -> Outcome:
    """Judge the time of a streamed answer; ``left`` is the time limit of all probes in seconds."""
    if not exchange.tokens or not exchange.seconds:
        return Pass(Reason(FirstAnswerReason.BEGAN, seconds=exchange.seconds))
    rate = exchange.tokens / exchange.seconds
    required = TOKENS / (rate * SIDE_BY_SIDE)
    if required > left:
        reason = Reason(FirstAnswerReason.TOO_SLOW, rate=rate, seconds=required, limit=left)
        return Inconclusive(reason, "environment", Reason(Remedy.RAISE_TIME_LIMIT, seconds=required))
    return Pass(Reason(FirstAnswerReason.MEASURED, rate=rate))


def plain_tokens(outcome: Outcome) -> int | None:
    """Return the most tokens of an answer without tools at the speed of the first one, where it is known."""
    rate = outcome.reason.fields.get("rate") if outcome.gives(FirstAnswerReason.MEASURED) else None
    return max(FEWEST, round(PLAIN_SECONDS * rate)) if isinstance(rate, float) else None
