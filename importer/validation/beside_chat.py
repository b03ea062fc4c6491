"""The judge of another API of the same server, beside the chat."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from importer.reasons import Reason
from importer.validation.context import TRIALS, WAYS, Context, together
from importer.validation.expectations import CommonReason
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass, failing
from importer.validation.prompts import Prompt
from importer.validation.remedy import Remedy
from importer.validation.reply import Reply

CHAT_INSTEAD = Reason(Remedy.CHAT_INSTEAD)
Ask = Callable[[bool], Reply]  # of a streamed answer or a whole one; raises ExchangeError
Judge = Callable[[Reply], Outcome]


def judged(ctx: Context, prompt: Prompt, ask: Ask, judge: Judge, ways: Mapping[str, bool] = WAYS) -> Outcome:
    """Judge the whole and the streamed answer; the engine is at fault where the same chat is judged right."""
    outcome = together({way: _tried(ask, judge, stream=stream) for way, stream in ways.items()})
    if isinstance(outcome, Fail) and isinstance(judge(ctx.first(prompt)), Pass):
        return failing(outcome, "engine", CHAT_INSTEAD, Reason(CommonReason.CHAT_IS_RIGHT))
    return outcome


def _tried(ask: Ask, judge: Judge, *, stream: bool) -> Outcome:
    for trial in range(1, TRIALS + 1):
        outcome = judge(ask(stream))
        if not isinstance(outcome, Inconclusive):
            return replace(outcome, trials=trial, agreed=1)
    return replace(outcome, trials=TRIALS, agreed=TRIALS)


def tools_left_out(chat: int | None, here: int | None) -> Fail | None:
    """Return the fault where the prompt is much shorter than the chat's; ``None`` if nothing is counted."""
    if chat is None or here is None or here * 2 > chat:
        return None
    return Fail(Reason(CommonReason.TOOLS_LEFT_OUT, here=here, chat=chat), "engine", CHAT_INSTEAD)
