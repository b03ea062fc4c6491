"""A thought that the limit of tokens cuts stays a thought."""

from __future__ import annotations

from functools import partial

from importer.validation.blame import CUT_THOUGHT
from importer.validation.context import Context
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, Outcome, Pass
from importer.validation.promise import no_reasoning
from importer.validation.prompts import SUM_THINKING
from importer.validation.reply import Reply
from importer.validation.signs import thinking_markup
from importer.validation.ways import asked

NAME = "reasoning-cut"
LESSON = "A block that never closed came out as the answer, or not at all, and nothing said that it was cut."
LIMIT = 4  # tokens; thoughts are longer
needs = no_reasoning


def run(ctx: Context) -> Outcome:
    """Cut a few tokens into the thought that a whole answer begins with."""
    full = ctx.first(SUM_THINKING)
    if not full.reasoning.strip():
        return NotApplicable("the model answers without a thought")
    return asked(ctx, SUM_THINKING, partial(judge, full=full), max_tokens=LIMIT)


def judge(reply: Reply, full: Reply) -> Outcome:
    """An answer that was cut inside its thought; ``full`` is one that was not."""
    content, thought = reply.content.strip(), full.reasoning.strip()
    if marker := thinking_markup(content):
        return Fail(f"the thinking marker {marker} is in the content", "configuration", CUT_THOUGHT)
    if content and not reply.reasoning.strip():
        if full.content.strip().startswith(content) and not thought.startswith(content):
            return Inconclusive("the model answers without a thought this time", "model")
        return Fail(f"the cut thought is in the content: {content[:60]!r}", "engine",
                    "Allow more tokens than the model thinks, or use another reasoning parser.")  # fmt: skip
    if content and content == reply.reasoning.strip():
        return Fail("the cut thought is in the content, too", "engine")
    if reply.finish_reason == "length":
        return Pass(f"thought {reply.reasoning.strip()[:40]!r}, no content, finish_reason 'length'")
    if content:
        return Inconclusive("the model was done before the limit", "model")
    return Fail(f"the thought was cut, and finish_reason is {reply.finish_reason!r}, not 'length'", "engine")
