"""The tools on offer reach the model's prompt."""

from __future__ import annotations

from importer.validation.blame import tools_unseen
from importer.validation.context import Context
from importer.validation.outcome import NotApplicable, Outcome, Pass
from importer.validation.promise import no_tools
from importer.validation.prompts import WEATHER

NAME = "tools-in-prompt"
LESSON = "One path dropped the tools before the template saw them: 18 prompt tokens instead of 283."
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Count the prompt's tokens with one tool and with two."""
    unseen = tools_unseen(ctx)
    if unseen is not None:
        return unseen
    count = ctx.first(WEATHER).usage.prompt
    if count is None:
        return NotApplicable("the engine does not count the prompt's tokens")
    return Pass("a second tool makes the prompt longer", trials=2)
