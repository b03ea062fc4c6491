"""One question in several ways, and what the answers say together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from importer.validation.context import Context
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, Outcome, Pass, named
from importer.validation.prompts import Prompt
from importer.validation.reply import Reply

WAYS = {"whole": False, "streamed": True}


def asked(ctx: Context, prompt: Prompt, judge: Callable[[Reply], Outcome], **extra: Any) -> Outcome:
    """Ask once whole and once streamed, with ``extra`` fields; both answers are judged."""
    return together({way: judge(ctx.ask(prompt, stream=s, **extra)) for way, s in WAYS.items()})


def together(found: Mapping[str, Outcome]) -> Outcome:
    """The worst of what was found, under its name; what passes everywhere is told once."""
    trials = sum(outcome.trials for outcome in found.values())
    for kind in (Fail, Inconclusive):
        for name, outcome in found.items():
            if isinstance(outcome, kind):
                return named(outcome, name)
    passed = [outcome for outcome in found.values() if isinstance(outcome, Pass)]
    told = [reason for outcome in passed or found.values() for reason in (outcome.reason, *outcome.notes)]
    first, *notes = dict.fromkeys(told)
    return Pass(first, trials, notes=tuple(notes)) if passed else NotApplicable(first, notes=tuple(notes))
