"""The probe of tools in the prompt: the tools on offer reach it."""

from __future__ import annotations

from dataclasses import replace

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.diagnosis import tools_unseen
from importer.validation.expectations import CommonReason, no_tools
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.prompts import ROUNDS, WEATHER, WEATHER_TWO_TOOLS
from importer.validation.remedy import Remedy


class ToolsInPromptReason(ReasonKind):
    """The reasons of ``tools-in-prompt``."""

    SEEN = "seen", "a second tool makes the prompt longer"
    SHOWN_LATER = "shown-later", "later questions show the tools as well"
    NOT_SHOWN_LATER = (
        "not-shown-later",
        "once a tool has answered, the template shows no tools any more: a second one changes nothing",
    )


NAME = "tools-in-prompt"
LESSON = "One path dropped the tools before the template saw them: 18 prompt tokens instead of 283."
LATER = (replace(ROUNDS[-1], name="round-one-tool", tools=ROUNDS[-1].tools[:1]), ROUNDS[-1])
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Compare prompts with one tool and with two."""
    unseen = tools_unseen(ctx)
    if unseen is not None:
        return unseen
    later = judge_later(*(ctx.rendered(prompt) for prompt in (WEATHER, WEATHER_TWO_TOOLS, *LATER)))
    if isinstance(later, Fail):
        return later
    count = ctx.first(WEATHER).usage.prompt
    if count is None:
        return NotApplicable(Reason(CommonReason.NOT_COUNTED))
    return Pass(Reason(ToolsInPromptReason.SEEN), trials=2)


def judge_later(one: str | None, two: str | None, later: str | None, later_two: str | None) -> Outcome:
    """Judge prompts with one tool and with two: of a first question, and of one behind calls and their
    results.
    """
    if None in (one, two, later, later_two) or one == two or later != later_two:
        return Pass(Reason(ToolsInPromptReason.SHOWN_LATER))
    return Fail(
        Reason(ToolsInPromptReason.NOT_SHOWN_LATER),
        "configuration",
        Reason(Remedy.SHOW_TOOLS),
    )
