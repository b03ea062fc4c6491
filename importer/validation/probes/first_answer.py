"""The probe of the first answer: it begins in time, and its speed shows whether all probes end in time."""

from __future__ import annotations

from dataclasses import replace

from importer.reasons import Reason, ReasonKind
from importer.validation.client import Exchange
from importer.validation.context import SIDE_BY_SIDE, Context
from importer.validation.errors import ExchangeError, Overloaded, TimedOut
from importer.validation.expectations import Expectations, no_chat
from importer.validation.outcome import Inconclusive, NotApplicable, Outcome, Pass
from importer.validation.prompts import GREETING
from importer.validation.remedy import Remedy


class FirstAnswerReason(ReasonKind):
    """The reasons of ``first-answer``."""

    BEGAN = "began", "answered after {seconds:.2f} s"
    MEASURED = "measured", "{rate:.1f} tokens/s"
    ELSEWHERE = "elsewhere", "the answer is judged by other probes"
    TOO_SLOW = (
        "too-slow",
        (
            "slow: {rate:.1f} tokens/s; all probes would take about {seconds:.0f} s, and the limit is "
            "{limit:.0f} s"
        ),
    )


NAME = "first-answer"
LESSON = (
    "An engine answered /health and nothing else, or a token a second: no verdict came within ten minutes."
)
WITHIN = 45.0  # seconds until a greeting's answer begins
TOKENS = 2000  # of the answers to all probes, on the demo model
SLOW = 20.0  # tokens in a second; a faster engine answers and reads all as it is
PLAIN_SECONDS = 8.0  # of an answer without tools, alone
FEWEST = 48  # tokens of an answer without tools, on any engine
PROMPT_SECONDS = 5.0  # until a long prompt is read
SHORTEST = 192  # tokens of a long prompt, on any engine
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Greet and measure, streamed; whole where no stream begins. Raises TimedOut and Overloaded."""
    hasty = replace(ctx, client=replace(ctx.client, begins_within=WITHIN))
    try:
        reply = hasty.first(GREETING, stream=True)
    except TimedOut:
        hasty.first(GREETING)
        return NotApplicable(Reason(FirstAnswerReason.ELSEWHERE))
    except Overloaded:
        raise
    except ExchangeError:
        return NotApplicable(Reason(FirstAnswerReason.ELSEWHERE))
    return judge(ctx.log[-1], ctx.client.seconds_left, reply.usage.prompt)


def judge(exchange: Exchange, left: float, prompt: int | None = None) -> Outcome:
    """Judge the time of a streamed answer to ``prompt`` tokens; ``left`` is the time limit of all probes in
    seconds.
    """
    if not exchange.tokens or not exchange.seconds:
        return Pass(Reason(FirstAnswerReason.BEGAN, seconds=exchange.seconds))
    rate = exchange.tokens / exchange.seconds
    required = TOKENS / (rate * SIDE_BY_SIDE)
    if required > left:
        reason = Reason(FirstAnswerReason.TOO_SLOW, rate=rate, seconds=required, limit=left)
        return Inconclusive(reason, "environment", Reason(Remedy.RAISE_TIME_LIMIT, seconds=required))
    reads = prompt / exchange.first if prompt and exchange.first else None
    return Pass(Reason(FirstAnswerReason.MEASURED, rate=rate, reads=reads))


def paced(promise: Expectations, outcome: Outcome) -> Expectations:
    """Return the expectations, with shorter answers and prompts where the first answer was slow.

    ``rate`` has the tokens in a second of the answer, ``reads`` those of the prompt.
    """
    fields = outcome.reason.fields if outcome.gives(FirstAnswerReason.MEASURED) else {}
    rate, reads = fields.get("rate"), fields.get("reads")
    if not isinstance(rate, float) or rate >= SLOW:
        return replace(promise, plain=None, prompt=None)
    prompt = max(SHORTEST, round(PROMPT_SECONDS * reads)) if isinstance(reads, float) else None
    return replace(promise, plain=max(FEWEST, round(PLAIN_SECONDS * rate)), prompt=prompt)
