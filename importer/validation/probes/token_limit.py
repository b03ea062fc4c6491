"""``max_tokens`` is kept, and the answer says that it was cut."""

from __future__ import annotations

from importer.validation.context import Context
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass
from importer.validation.promise import no_chat
from importer.validation.prompts import COUNT
from importer.validation.reply import Reply
from importer.validation.ways import asked

NAME = "token-limit"
LESSON = "An answer that was cut said 'stop', or ran on to the engine's own limit: clients took it for whole."
LIMIT = 5  # tokens
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Allow a few tokens where many are wanted."""
    return asked(ctx, COUNT, judge, max_tokens=LIMIT)


def judge(reply: Reply) -> Outcome:
    """An answer that LIMIT tokens do not hold."""
    count, finish = reply.usage.completion, reply.finish_reason
    if count is not None and count > LIMIT:
        return Fail(f"{count} tokens where {LIMIT} were allowed", "engine")
    if finish == "length":
        return Pass(f"cut at {LIMIT} tokens, finish_reason 'length'")
    if finish == "stop" and (count is None or count < LIMIT):
        return Inconclusive("the model was done before the limit", "model")
    return Fail(f"the answer was cut, and finish_reason is {finish!r}, not 'length'", "engine")
