"""The probe of what reaches the prompt: tools, turns of every role, questions in a row, images."""

from __future__ import annotations

from functools import partial

from importer.validation.context import Context, in_turn
from importer.validation.diagnosis import SYSTEM_WORDS, TURNS, Part, unseen
from importer.validation.errors import RequestRefused
from importer.validation.expectations import no_chat, no_tools
from importer.validation.outcome import Outcome, Stage, holding, needless
from importer.validation.probe import Rests, probe
from importer.validation.probes.tasks import images
from importer.validation.probes.tools import tools_in_prompt
from importer.validation.prompts import TWO_USERS


@probe(
    "message-forms",
    "Tools, system turns, earlier turns or images were dropped; two questions in a row were refused.",
    needs=no_chat,
    observes=Stage.TEMPLATE,
    rests_on=Rests.REQUESTS,
)
def message_forms(ctx: Context) -> Outcome:
    """Compare prompts with and without each part of a conversation."""
    parts = {} if no_tools(ctx.promise) else {"tools": tools_in_prompt}
    parts |= {"system": _system, "two questions": _in_a_row, "earlier turns": partial(_reach, part=TURNS)}
    if ctx.promise.images and not ctx.promise.lacks("images"):
        parts["images"] = images
    return in_turn({name: partial(part, ctx) for name, part in parts.items()})


def _reach(ctx: Context, part: Part) -> Outcome:
    """Compare the prompts of a part of requests."""
    if None in [ctx.first(prompt).usage.prompt for prompt in part.prompts]:
        return needless("the engine does not count the prompt's tokens")
    return unseen(ctx, part) or holding(f"{part.name} reach the prompt", 2)


def _system(ctx: Context) -> Outcome:
    try:
        return _reach(ctx, SYSTEM_WORDS)
    except RequestRefused as refused:
        return ctx.refused(refused, SYSTEM_WORDS.prompts[0])


def _in_a_row(ctx: Context) -> Outcome:
    try:
        ctx.first(TWO_USERS)
    except RequestRefused as refused:
        return ctx.refused(refused, TWO_USERS)
    return holding("two questions in a row are taken")
