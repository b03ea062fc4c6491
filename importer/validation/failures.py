"""Failed exchanges: the part at fault where there was no answer to judge.

The engine's end, its log, the template and the other exchanges of the probe show it.

What explains a prompt with other tokens than the template's text: several servers behind one address.

A request that failed, sent again: whether the request fails, or its moment, or one of several servers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from enum import Enum, auto
from functools import partial

from importer.chat_template.render import now
from importer.engines.base import REQUEST_NAMES
from importer.engines.deaths import Attribution
from importer.engines.lacking import Lacking, in_text
from importer.hub.snapshot import mapping
from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.errors import (
    AnswerFailure,
    ExchangeError,
    ReplyError,
    RequestRefused,
    ServerUnreachable,
    StreamCut,
    TemplateRefusedError,
    TimedOut,
    attempt,
)
from importer.validation.evidence_sources import Ended
from importer.validation.expectations import CommonReason
from importer.validation.outcome import STAGE, Fail, Inconclusive, Outcome, Stage, differs, failing
from importer.validation.prompts import GREETING, Prompt
from importer.validation.remedy import Need, Remedy, template
from importer.validation.reply import loaded

RESENDS = 2  # a gateway may keep more than one connection that the server has ended
TURNS = 5  # of servers that take turns, until all of them are taken for alike


class Resent(Enum):
    """What comes of a failed request that is sent again."""

    FAILS = auto()
    ANSWERED = auto()
    AT_TIMES = auto()


def resent(error: ExchangeError, ctx: Context) -> Resent:
    """Return what comes of a request that was refused, or that a gateway lost, once it is sent again.

    A lost one is answered where an idle connection had ended. Where it is lost at times even without a pause,
    or refused at times, servers take turns.
    """
    lost = isinstance(error, ServerUnreachable) or (isinstance(error, RequestRefused) and error.lost)
    refused = isinstance(error, RequestRefused) and not error.broke and not error.limited
    failed = next((one for one in reversed(ctx.log) if one.error is not None), None)
    if not (lost or refused) or failed is None or failed.method != "POST" or failed.request is None:
        return Resent.FAILS
    path, request = failed.path, dict(failed.request)
    again = partial(ctx.client.read, path, request, ctx.log)
    if all(attempt(again) is None for _ in range(RESENDS if lost else TURNS)):
        return Resent.FAILS
    if refused or any(attempt(again) is None for _ in range(TURNS)):
        return Resent.AT_TIMES
    return Resent.ANSWERED


NOTICED = 0.5  # seconds until an engine that broke the connection is seen to be gone
DEATH_REMEDIES: dict[Attribution, Remedy] = {
    "configuration": Remedy.SEE_DOCUMENT,
    "model": Remedy.WHOLE_WEIGHTS,
    "engine": Remedy.READ_LOG,
    "environment": Remedy.SEE_MEMORY,
}
OF_MEMORY = (Lacking.KILLED, Lacking.MEMORY)
DOCUMENT_NAMES = {request: document for document, request in REQUEST_NAMES.items()}


def failed(error: ExchangeError, ctx: Context) -> Outcome:
    """Return the outcome of a failed exchange, with the causes that the log and the template show."""
    outcome = error.outcome()
    journal = ctx.journal
    known = _of_death(error, ctx) or _of_template(error, outcome, ctx)
    if known is not None:
        return known
    broke = isinstance(error, ReplyError) or (isinstance(error, RequestRefused) and error.broke)
    lacking = in_text(error.words) if isinstance(error, ReplyError | RequestRefused) else None
    if lacking is None and journal is not None and (broke or isinstance(error, ServerUnreachable)):
        lacking = journal.lacking()
    if lacking is not None:
        provide = Reason(Remedy.PROVIDE, lacking=lacking)
        return failing(outcome, Stage.MACHINE, provide, Reason(AnswerFailure.LOG_LACKS, lacking=lacking))
    later = resent(error, ctx)
    if later is not Resent.FAILS:
        remedy = Remedy.SERVERS_ALIKE if later is Resent.AT_TIMES else Remedy.SHORTER_KEEP_ALIVE
        return failing(outcome, Stage.WHOLE, Reason(remedy), Reason(AnswerFailure.ANSWERED_AGAIN))
    if _refuses_all(error, ctx):
        outcome, broke = (
            Fail(Reason(AnswerFailure.DIED, says=error.reason), Stage.WHOLE, Reason(Remedy.READ_LOG)),
            True,
        )
    if isinstance(error, RequestRefused) and (correction := named_setting(error.words, ctx)) is not None:
        return failing(outcome, Stage.START, correction)
    if isinstance(outcome, Fail) and (stream := broken(error, ctx)) is not None:
        outcome = replace(outcome, remedy=stream)
    raised = journal.raised() if journal is not None and (broke or isinstance(error, TimedOut)) else None
    return outcome if raised is None else _raised(error, outcome, raised)


def _of_death(error: ExchangeError, ctx: Context) -> Fail | None:
    """Return the end of the engine's process, in the words of its log."""
    if ctx.journal is None or not isinstance(error, ServerUnreachable | TimedOut | ReplyError):
        return None
    death = ctx.journal.death(0 if isinstance(error, TimedOut) else NOTICED)
    if death is None:
        return None
    return Fail(Reason(AnswerFailure.DIED, says=death.cause), STAGE[death.part], _after(death))


def _refuses_all(error: ExchangeError, ctx: Context) -> bool:
    """Return whether a greeting, which was answered before, is refused in the same words: a dead engine."""
    answered = any(prompt.name == GREETING.name for prompt, _ in ctx.shared.ended())
    if not answered or not isinstance(error, RequestRefused) or error.limited:
        return False
    try:
        ctx.ask(GREETING, max_tokens=1)
    except RequestRefused as refused:
        return (refused.status, refused.words) == (error.status, error.words)
    except ExchangeError:
        pass
    return False


def _of_template(error: ExchangeError, outcome: Outcome, ctx: Context) -> Fail | None:
    """Return the fault of a template that refuses a conversation, or is not there."""
    if isinstance(error, RequestRefused):
        problem = refusal(ctx)
        if problem is not None:
            note = Reason(AnswerFailure.TEMPLATE_REFUSES, says=problem)
            return failing(outcome, Stage.TEMPLATE, template(Need.TAKE_CONVERSATION, says=problem), note)
    if (
        isinstance(error, RequestRefused | ReplyError)
        and ctx.without_template
        and ctx.asked_last() is not None
    ):
        fetch = Reason(Remedy.FETCH_TEMPLATE)
        return failing(outcome, Stage.TEMPLATE, fetch, Reason(CommonReason.NO_TEMPLATE))
    return None


def _after(death: Ended) -> Reason:
    """Return the remedy for an end: what it lacked, where that is more than memory."""
    if isinstance(death.cause.kind, Lacking) and death.cause.kind not in OF_MEMORY:
        return Reason(Remedy.PROVIDE, lacking=death.cause)
    return Reason(DEATH_REMEDIES[death.part])


def _raised(error: ExchangeError, outcome: Fail | Inconclusive, raised: str) -> Outcome:
    """Return the outcome with the log's last exception; a time-out behind one is the engine's fault."""
    if isinstance(error, TimedOut):
        outcome = failing(outcome, Stage.WHOLE, Reason(DEATH_REMEDIES["engine"]))
    return replace(outcome, notes=(*outcome.notes, Reason(AnswerFailure.LOG_RAISED, raised=raised)))


def named_setting(message: str, ctx: Context) -> Reason | None:
    """Return the change to a setting of the document that a refusal names."""
    promise = ctx.promise
    variable = next((v for v in promise.variables if _names(message, v)), None)
    if variable is not None:
        return Reason(Remedy.TAKE_OUT_VARIABLE, variable=variable, variables=(variable,))
    for name in {**promise.sampling, **promise.client_sampling}:
        if re.search(
            rf"\b{re.escape(name)}\b\W+(?:\w+\W+){{0,3}}(?:must|should|cannot|can't|expected)\b", message
        ):
            return Reason(Remedy.CORRECT_SETTING, key=DOCUMENT_NAMES.get(name, name))
    return None


def _names(message: str, variable: str) -> bool:
    """Return whether a message names a variable: in quotes, or a name that is no word of a language."""
    name = re.escape(variable)
    return re.search(rf"""['"`]{name}['"`]""" + (rf"|\b{name}\b" if "_" in name else ""), message) is not None


def refusal(ctx: Context) -> Reason | None:
    """Return why the chat template refuses the last prompt, or ``None``."""
    prompt = ctx.asked_last()
    if prompt is None or ctx.render is None:
        return None
    try:
        ctx.render(prompt)
    except TemplateRefusedError as refused:
        return refused.reason
    return None


TIMES = 5  # equal requests: one server of three shows among them


def text_now(ctx: Context, prompt: Prompt) -> str | None:
    """Return the text of a prompt, rendered now; templates may write the date."""
    try:
        return None if ctx.render is None else ctx.render.at(prompt, now())
    except TemplateRefusedError:
        return None


def of_repetition(ctx: Context, prompt: Prompt, first: int | None) -> Fail | None:
    """Return the fault where an equal request is read otherwise: by a cache, or by one of several servers.

    ``first``  the count of the prompt when it was sent first; fewer in a repetition are those that a cache
    has of it, where a server does not count these.
    """
    counts = {ctx.ask(prompt).usage.prompt for _ in range(TIMES)} - {None}
    more = [count for count in counts if count is not None and first is not None and count > first]
    if len(counts) == 1 and more:
        what, cache = "prompt_tokens of a request that is repeated", Reason(Remedy.SOUND_CACHE)
        return differs(what, more[0], first, Stage.PROMPT, cache, trials=TIMES)
    if len(counts) < 2:
        return None
    shown, remedy = tuple(sorted(filter(None, counts))), Reason(Remedy.SERVERS_ALIKE)
    what = f"prompt_tokens of {TIMES} equal requests"
    return differs(what, shown, "one number", Stage.GATEWAY, remedy, trials=TIMES, agreed=1)


AGAIN = 2  # further streams that are broken off, until a limit is named


def broken(error: ExchangeError, ctx: Context) -> Reason | None:
    """Return the remedy for a stream that cannot be read, where all whole answers can."""
    if not isinstance(error, ReplyError | ServerUnreachable) or not _streamed_last(ctx):
        return None
    if isinstance(error, StreamCut) and "choices" in mapping(loaded(bytes(ctx.log[-1].received))):
        return Reason(Remedy.HEED_OPTIONS, option="stream")  # a whole answer came
    longer = _longer(ctx) if isinstance(error, ServerUnreachable | StreamCut) else None
    if longer is None and isinstance(error, ReplyError):
        return Reason(Remedy.WHOLE_ANSWERS, change=error.reason)
    return longer


def _longer(ctx: Context) -> Reason | None:
    """Return the remedy for a limit of streams: one is broken off each time, and a short one never."""
    cut, request = ctx.log[-1], ctx.log[-1].request or {}
    if not cut.received or any(attempt(partial(ctx.client.chat, request, ctx.log)) for _ in range(AGAIN)):
        return None
    if attempt(partial(ctx.client.chat, {**request, "max_tokens": 1}, ctx.log)) is None:
        return None
    size = max(len(one.received) for one in (cut, *ctx.log[-AGAIN - 1 : -1]))
    return Reason(Remedy.LONGER_STREAMS, seconds=cut.seconds, size=size)


def _streamed_last(ctx: Context) -> bool:
    """Return whether the last answer was streamed, and all whole ones were readable."""
    requests = [e for e in ctx.log if e.request is not None]
    wholes = [e for e in requests if not (e.request or {}).get("stream")]
    return bool(requests and (requests[-1].request or {}).get("stream")) and all(
        e.error is None for e in wholes
    )
