"""The probe of calls without arguments: an empty object, no more and no less."""

from __future__ import annotations

from importer.validation.calls import both_ways, judge_call
from importer.validation.context import Context
from importer.validation.expectations import no_tools
from importer.validation.outcome import Outcome
from importer.validation.prompts import ALARMS

NAME = "no-argument-call"
LESSON = "Parsers that wait for a first argument lost calls without any, or gave an empty text for JSON."
FEATURE = "tools-as-sent"  # a small model leaves out what it was trained to leave out
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Judge the call, whole and streamed."""
    return both_ways(ctx, ALARMS, lambda reply: judge_call(reply, ALARMS))
