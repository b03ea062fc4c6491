"""The probe of log-probabilities: they are those of the tokens of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context, ask_both_ways, holds
from importer.validation.expectations import Expectations, no_chat
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.prompts import GREETING
from importer.validation.reply import Reply


class LogProbabilitiesReason(ReasonKind):
    """The reasons of ``log-probabilities``."""

    NOT_SHOWN = "not-shown", "the engine shows none"
    FLAWED = "flawed", "token {place}, {token!r}: {flaw}"
    COUNT_DIFFERS = "count-differs", "{entries} log-probabilities of {count} tokens"
    OTHER_TOKENS = "other-tokens", "the tokens are not the answer's: {written!r}"
    SHOWN = "shown", "{entries} tokens, which make the answer"
    NO_NUMBER = "no-number", "a log-probability is no number"
    ABOVE_ZERO = "above-zero", "a log-probability is above zero: {value}"
    NOT_IN_ORDER = "not-in-order", "the best are not in order: {values}"


NAME = "log-probabilities"
LESSON = "Probabilities of other tokens than those written, fewer than were counted, the best not first."
TOP = 3
SLACK = 1e-3  # rounding of a log-probability


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no chat, or an engine that does not show the drawn tokens."""
    return no_chat(promise) or promise.lacks("logprobs", "drawn")


def run(ctx: Context) -> Outcome:
    """Judge an answer with log-probabilities, whole and streamed."""
    counts = ctx.promise.lacks("usage") is None
    return ask_both_ways(ctx, GREETING, partial(judge, counts=counts), logprobs=True, top_logprobs=TOP)


def judge(reply: Reply, *, counts: bool = True) -> Outcome:
    """Judge an answer beside the log-probabilities of its tokens; ``counts`` if the engine's counts are
    right.
    """
    entries = [entry for entry in reply.logprobs if isinstance(entry, dict)]
    if not entries:
        return NotApplicable(Reason(LogProbabilitiesReason.NOT_SHOWN))
    for place, entry in enumerate(entries):
        flaw = _flaw(entry)
        if flaw is not None:
            return Fail(
                Reason(
                    LogProbabilitiesReason.FLAWED, place=place, token=str(entry.get("token"))[:20], flaw=flaw
                ),
                "engine",
            )
    count = reply.usage.completion if counts else None
    if count is not None and not count - 1 <= len(entries) <= count:  # the end token may be left out
        return Fail(Reason(LogProbabilitiesReason.COUNT_DIFFERS, entries=len(entries), count=count), "engine")
    if not holds(reply.written, reply.content):
        return Fail(Reason(LogProbabilitiesReason.OTHER_TOKENS, written=reply.written[:80]), "engine")
    return Pass(Reason(LogProbabilitiesReason.SHOWN, entries=len(entries)))


def _flaw(entry: Mapping[str, Any]) -> Reason | None:
    """Return the fault of one token's entry, or ``None``."""
    top = [t for t in entry.get("top_logprobs") or () if isinstance(t, dict)]
    values = [e.get("logprob") for e in (entry, *top)]
    numbers = [v for v in values if isinstance(v, int | float)]
    if len(numbers) < len(values):
        return Reason(LogProbabilitiesReason.NO_NUMBER)
    if max(numbers) > SLACK:
        return Reason(LogProbabilitiesReason.ABOVE_ZERO, value=max(numbers))
    # The drawn token may stand among the best, before or behind them.
    ranked = [t["logprob"] for t in top if t.get("token") != entry.get("token")]
    return (
        None
        if ranked == sorted(ranked, reverse=True)
        else Reason(LogProbabilitiesReason.NOT_IN_ORDER, values=numbers[1:])
    )
