"""Arguments of every type, nested and not in ASCII, arrive as what they are, encoded once."""

from __future__ import annotations

from importer.validation.calls import both_ways, judge_call
from importer.validation.context import Context
from importer.validation.outcome import Outcome
from importer.validation.promise import no_tools
from importer.validation.prompts import TRIP

NAME = "typed-arguments"
LESSON = "Values from XML were always text: arrays and objects came encoded twice, numbers in quotes."
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Whole and streamed; the tool's schema is the judge."""
    return both_ways(ctx, TRIP, lambda reply: judge_call(reply, TRIP))
