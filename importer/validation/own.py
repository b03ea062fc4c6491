"""A question of the user's own, sent as a probe: it passes when it is answered, or its tools are called."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from importer.reasons import Reason
from importer.validation.calls import both_ways, judge_call
from importer.validation.client import trim
from importer.validation.context import Context
from importer.validation.outcome import Outcome, Pass
from importer.validation.probes import plain_chat
from importer.validation.promise import Promise, no_chat, no_tools
from importer.validation.prompts import Prompt, Tool
from importer.validation.prompts.base import user
from importer.validation.reply import Reply


class OwnReason(StrEnum):
    """What came of the question."""

    ANSWER = "answer"


SHOWN = 4000  # characters of an answer


@dataclass(slots=True, eq=False)
class OwnQuestion:
    """A probe; with ``tools`` the answer has to be a structured call that is valid to one's schema."""

    text: str
    tools: tuple[Tool, ...] = ()
    NAME: str = "own-question"
    LESSON: str = "A model may pass every question of others and fail the one that it is wanted for."

    def needs(self, promise: Promise, /) -> Reason | None:
        """A chat; with tools a parser for calls."""
        return no_tools(promise) if self.tools else no_chat(promise)

    def run(self, ctx: Context, /) -> Outcome:
        """A plain answer is asked for whole, a call whole and streamed."""
        prompt = Prompt(self.NAME, (user(self.text),), self.tools)
        if self.tools:
            return both_ways(ctx, prompt, partial(judge_call, prompt=prompt))
        return ctx.judged(prompt, partial(judge, markers=ctx.promise.markers))


def judge(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """An answer to a question that nobody here knows, shown as it is."""
    found = plain_chat.judge(reply, markers)
    if not isinstance(found, Pass):
        return found
    return replace(found, reason=Reason(OwnReason.ANSWER, text=trim(reply.content.strip(), SHOWN)))
