"""The probe of what reaches the prompt: tools, turns of every role, questions in a row, parts, images."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context, in_turn
from importer.validation.diagnosis import left_out
from importer.validation.errors import RequestRefused
from importer.validation.expectations import CommonReason, no_chat, no_tools
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, Outcome, Pass, Stage, Tried
from importer.validation.probe import Rests, probe
from importer.validation.probes.tasks import images
from importer.validation.probes.tools import tools_in_prompt
from importer.validation.prompts import (
    GREETING,
    NAME_RECALL,
    ONE_TOKEN,
    SUM,
    SYSTEM,
    SYSTEM_LONGER,
    TWO_USERS,
    Message,
    Prompt,
    user,
)
from importer.validation.remedy import Need, Remedy, template
from importer.validation.reply import Reply


class FormsReason(ReasonKind):
    """The reasons of ``message-forms``."""

    TAKEN = "taken", "{forms:and} reach the prompt"
    SYSTEM_UNSEEN = "system-unseen", "the system's words do not reach the prompt"
    EARLIER = "earlier", "earlier turns reach the prompt"
    ROW = "row", "two questions in a row are taken"
    REFUSED = "refused", "{form} is refused: {error}"
    DROPPED = "dropped", "{form} does not reach the prompt: {tokens} tokens, and {whole} as {instead}"


@frozen
class Form:
    """A form of a message: ``sent`` says the same as ``whole``, in ``instead``, that every server takes."""

    name: str
    instead: str
    sent: Prompt
    whole: Prompt


def _form(name: str, instead: str, sent: tuple[Message, ...], whole: tuple[Message, ...]) -> Form:
    prompts = (
        Prompt(f"{name}: {way}", turns, extra=ONE_TOKEN) for way, turns in (("sent", sent), ("whole", whole))
    )
    return Form(name, instead, *prompts)


WORDS, QUESTION = str(SYSTEM_LONGER.messages[0]["content"]), str(GREETING.messages[0]["content"])
PARTS: Message = {"role": "user", "content": [{"type": "text", "text": t} for t in (f"{WORDS} ", QUESTION)]}
DEVELOPER: Message = {"role": "developer", "content": WORDS}
FORMS = (
    _form("the role developer", "the role system", (DEVELOPER, *GREETING.messages), SYSTEM_LONGER.messages),
    _form("content in parts", "one text", (PARTS,), (user(f"{WORDS} {QUESTION}"),)),
)
WITHOUT = replace(GREETING, name="without either", extra=ONE_TOKEN)


@probe(
    "message-forms",
    "Tools, system turns, earlier turns or images were dropped; the role developer and parts were refused.",
    needs=no_chat,
    observes=Stage.TEMPLATE,
    rests_on=Rests.REQUESTS,
)
def message_forms(ctx: Context) -> Outcome:
    """Compare prompts with and without each part of a conversation, then each form with a usual one."""
    parts = {} if no_tools(ctx.promise) else {"tools": tools_in_prompt}
    parts |= {"system": _system, "two questions": _in_a_row, "earlier turns": _earlier}
    if ctx.promise.images and not ctx.promise.lacks("images"):
        parts["images"] = images
    turns = in_turn({name: partial(part, ctx) for name, part in parts.items()})
    if isinstance(turns, Fail | Inconclusive):
        return turns
    found = [each for each in (judge_form(ctx, form) for form in FORMS) if each is not None]
    return min(found, key=lambda one: isinstance(one, NotApplicable), default=turns)


def _earlier(ctx: Context) -> Outcome:
    """Compare a question alone with one behind an earlier turn."""
    lost = Reason(CommonReason.TURNS_UNSEEN)
    alone, behind = (ctx.first(prompt).usage.prompt for prompt in (SUM, NAME_RECALL))
    if alone is None or behind is None:
        return NotApplicable(Reason(CommonReason.NOT_COUNTED))
    if behind > alone:
        return Pass(Reason(FormsReason.EARLIER))
    return left_out(ctx, (SUM, NAME_RECALL), lost, template(Need.RENDER_TURNS))


def _system(ctx: Context) -> Outcome:
    """Compare prompts with a short system's turn and with a long one."""
    try:
        outcome = judge_system(ctx.first(SYSTEM), ctx.first(SYSTEM_LONGER))
    except RequestRefused as refused:
        return ctx.refused(refused, SYSTEM)
    if not isinstance(outcome, Fail):
        return outcome
    remedy = template(Need.RENDER_SYSTEM_ROLE)
    return left_out(ctx, (SYSTEM, SYSTEM_LONGER), outcome.reason, remedy, needed=False)


def judge_system(short: Reply, longer: Reply) -> Outcome:
    """Judge answers to a short and a long system's turn."""
    if short.usage.prompt is None:
        return NotApplicable(Reason(CommonReason.NOT_COUNTED))
    if (longer.usage.prompt or 0) <= short.usage.prompt:
        unseen, remedy = Reason(FormsReason.SYSTEM_UNSEEN), template(Need.RENDER_SYSTEM_ROLE)
        return Fail(unseen, Stage.TEMPLATE, remedy, trials=2)
    return Pass(Reason(FormsReason.TAKEN, forms=tuple(form.name for form in FORMS)), trials=2 + len(FORMS))


def _in_a_row(ctx: Context) -> Outcome:
    """Send two questions in a row."""
    try:
        ctx.first(TWO_USERS)
    except RequestRefused as refused:
        return ctx.refused(refused, TWO_USERS)
    return Pass(Reason(FormsReason.ROW))


def judge_form(ctx: Context, form: Form) -> Fail | NotApplicable | None:
    """Return the fault of a server that does not take a form; a role that the template lacks is none."""
    whole, without = (ctx.first(prompt).usage.prompt for prompt in (form.whole, WITHOUT))
    try:
        tokens = ctx.first(form.sent).usage.prompt
    except RequestRefused as refused:
        if refused.limited or refused.lost:
            raise
        reason = Reason(FormsReason.REFUSED, form=form.name, error=refused.reason)
    else:
        if tokens is None or whole is None or without is None or abs(tokens - whole) <= abs(tokens - without):
            return None
        reason = Reason(FormsReason.DROPPED, form=form.name, tokens=tokens, whole=whole, instead=form.instead)
    remedy, tried = Reason(Remedy.SEND_INSTEAD, form=form.name, instead=form.instead), Tried(1, 1)
    if form.sent.messages[0]["role"] == "user" or WORDS in (ctx.rendered(form.sent) or ""):
        return Fail(reason, Stage.WHOLE, remedy, tried=tried)
    return NotApplicable(reason, remedy=remedy, tried=tried)
