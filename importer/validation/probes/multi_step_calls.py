"""The probe of later turns: after one, two and three calls with results the next one is still a call."""

from __future__ import annotations

from functools import partial

from importer.reasons import Reason, ReasonKind
from importer.validation.calls import judge_call
from importer.validation.context import Context
from importer.validation.diagnosis import unseen
from importer.validation.expectations import CommonReason, no_tools
from importer.validation.outcome import Outcome, Pass, named
from importer.validation.prompts import ROUNDS
from importer.validation.remedy import Remedy


class LaterTurnsReason(ReasonKind):
    """The reasons of ``later-turns``."""

    CALLS = "calls", "calls after {lengths} lengths of history"


NAME = "later-turns"
LESSON = "After two or three rounds models wrote calls as text: history had reached them in another form."
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Judge one conversation at three lengths; each must reach the prompt and end in a call."""
    remedy = Reason(Remedy.RENDER_TURNS)
    lost = unseen(ctx, (ROUNDS[0], ROUNDS[1]), Reason(CommonReason.TURNS_UNSEEN), remedy)
    if lost is not None:
        return lost
    for number, prompt in enumerate(ROUNDS, 2):
        outcome = ctx.judged(prompt, partial(judge_call, prompt=prompt))
        if not isinstance(outcome, Pass):
            return named(outcome, f"turn {number}")
    return Pass(Reason(LaterTurnsReason.CALLS, lengths=len(ROUNDS)), trials=len(ROUNDS))
