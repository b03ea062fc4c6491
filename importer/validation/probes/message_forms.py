"""The probe of forms that newer clients send: the role ``developer``, and content in parts."""

from __future__ import annotations

from dataclasses import replace

from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.errors import RequestRefused
from importer.validation.expectations import no_chat
from importer.validation.outcome import Fail, NotShown, Outcome, Pass, Tried
from importer.validation.probe import probe
from importer.validation.prompts import GREETING, ONE_TOKEN, SYSTEM_LONGER, Message, Prompt, user
from importer.validation.remedy import Remedy


class FormsReason(ReasonKind):
    """The reasons of ``message-forms``."""

    TAKEN = "taken", "{forms:and} reach the prompt"
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
    "Newer clients send the role developer and content in parts: refused, or all but one part dropped.",
    needs=no_chat,
)
def message_forms(ctx: Context) -> Outcome:
    """Compare each form's prompt with that of the same words in the form that every server takes."""
    found = [each for each in (judge_form(ctx, form) for form in FORMS) if each is not None]
    worst = min(found, key=lambda one: isinstance(one, NotShown), default=None)
    taken = Reason(FormsReason.TAKEN, forms=tuple(form.name for form in FORMS))
    return worst or Pass(taken, trials=len(FORMS))


def judge_form(ctx: Context, form: Form) -> Fail | NotShown | None:
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
        return Fail(reason, "engine", remedy, tried=tried)
    return NotShown(reason, remedy=remedy, tried=tried)
