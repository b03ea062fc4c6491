"""After one, two and three calls with their results the next one is still a call."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from importer.validation.blame import unseen
from importer.validation.calls import judge_call
from importer.validation.context import Context
from importer.validation.outcome import Outcome, Pass
from importer.validation.promise import no_tools
from importer.validation.prompts import ROUNDS

NAME = "later-turns"
LESSON = "After two or three rounds models wrote calls as text: history had reached them in another form."
needs = no_tools


def run(ctx: Context) -> Outcome:
    """One conversation at three lengths; each must reach the prompt and end in a call."""
    mend = "Use a chat template that renders every turn."
    lost = unseen(ctx, (ROUNDS[0], ROUNDS[1]), "earlier turns do not reach the prompt", mend)
    if lost is not None:
        return lost
    for number, prompt in enumerate(ROUNDS, 2):
        outcome = ctx.judged(prompt, partial(judge_call, prompt=prompt))
        if not isinstance(outcome, Pass):
            return replace(outcome, reason=f"turn {number}: {outcome.reason}")
    return Pass(f"calls after {len(ROUNDS)} lengths of history", trials=len(ROUNDS))
