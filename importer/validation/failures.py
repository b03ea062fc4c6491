"""Failed exchanges: the part at fault where there was no answer to judge.

The engine's end, its log, the template and the other exchanges of the probe show it.
"""

from __future__ import annotations

import re
from dataclasses import replace

from importer.engines import logs
from importer.engines.deaths import Attribution
from importer.engines.logs import Lacking
from importer.reasons import Reason
from importer.validation import resend, streams
from importer.validation.context import Context
from importer.validation.engine_log import Ended, Journal
from importer.validation.errors import (
    AnswerFailure,
    ExchangeError,
    ReplyError,
    RequestRefused,
    ServerUnreachable,
    TemplateRefusedError,
    TimedOut,
)
from importer.validation.expectations import REQUEST_NAMES, CommonReason
from importer.validation.outcome import Fail, Inconclusive, Outcome, failing
from importer.validation.remedy import Remedy
from importer.validation.resend import Resent
from importer.validation.stall_detector import PATH as LIGHT

NOTICED = 0.5  # seconds until an engine that broke the connection is seen to be gone
DEATH_REMEDIES: dict[Attribution, Remedy] = {
    "configuration": Remedy.SEE_DOCUMENT,
    "model": Remedy.OTHER_WEIGHTS,
    "engine": Remedy.READ_LOG,
    "environment": Remedy.SEE_MEMORY,
}
OF_MEMORY = (Lacking.KILLED, Lacking.MEMORY)
DOCUMENT_NAMES = {request: document for document, request in REQUEST_NAMES.items()}


def failed(error: ExchangeError, ctx: Context) -> Outcome:
    """Return the outcome of a failed exchange, with the causes that the log and the template show."""
    outcome = error.outcome()
    journal = ctx.journal
    if isinstance(error, ServerUnreachable | TimedOut | ReplyError) and journal is not None:
        death = journal.death(0 if isinstance(error, TimedOut) else NOTICED)
        if death is not None:
            return Fail(Reason(AnswerFailure.DIED, says=death.cause), death.part, _after(death))
    templated = _of_template(error, outcome, ctx)
    if templated is not None:
        return templated
    broke = isinstance(error, ReplyError) or (isinstance(error, RequestRefused) and error.broke)
    lacking = logs.lacking(error.words) if isinstance(error, ReplyError | RequestRefused) else None
    if lacking is None and journal is not None and (broke or isinstance(error, ServerUnreachable)):
        lacking = journal.lacking()
    if lacking is not None:
        provide = Reason(Remedy.PROVIDE, lacking=lacking)
        return failing(outcome, "environment", provide, Reason(AnswerFailure.LOG_LACKS, lacking=lacking))
    later = resend.resent(error, ctx)
    if later is not Resent.FAILS:
        remedy = Remedy.SERVERS_ALIKE if later is Resent.AT_TIMES else Remedy.SHORTER_KEEP_ALIVE
        return failing(outcome, "engine", Reason(remedy), Reason(AnswerFailure.ANSWERED_AGAIN))
    if isinstance(error, ServerUnreachable) and journal is not None and _unwritten(ctx, journal):
        space = Reason(Lacking.LOG_SPACE, path=str(journal.path))
        provide = Reason(Remedy.PROVIDE, lacking=space)
        return failing(outcome, "environment", provide, Reason(AnswerFailure.LOG_LACKS, lacking=space))
    if isinstance(error, RequestRefused) and (correction := named_setting(error.words, ctx)) is not None:
        return failing(outcome, "configuration", correction)
    if isinstance(outcome, Fail) and (stream := streams.broken(error, ctx)) is not None:
        outcome = replace(outcome, remedy=stream)
    raised = journal.raised() if journal is not None and (broke or isinstance(error, TimedOut)) else None
    return outcome if raised is None else _raised(error, outcome, raised)


def _unwritten(ctx: Context, journal: Journal) -> bool:
    """Return whether one more request is lost, too, and the log takes nothing of it, as it did of others."""
    before = journal.size
    if before <= journal.ready:
        return False
    try:
        ctx.client.get(LIGHT, [])
    except ServerUnreachable:
        return journal.alive() and journal.size == before
    except ExchangeError:
        pass
    return False


def _of_template(error: ExchangeError, outcome: Outcome, ctx: Context) -> Fail | None:
    """Return the fault of a template that refuses a conversation, or is not there."""
    if isinstance(error, RequestRefused):
        problem = refusal(ctx)
        if problem is not None:
            note = Reason(AnswerFailure.TEMPLATE_REFUSES, says=problem)
            return failing(outcome, "configuration", Reason(Remedy.OTHER_TEMPLATE, says=problem), note)
    if (
        isinstance(error, RequestRefused | ReplyError)
        and ctx.without_template
        and ctx.asked_last() is not None
    ):
        fetch = Reason(Remedy.FETCH_TEMPLATE)
        return failing(outcome, "configuration", fetch, Reason(CommonReason.NO_TEMPLATE))
    return None


def _after(death: Ended) -> Reason:
    """Return the remedy for an end: what it lacked, where that is more than memory."""
    if isinstance(death.cause.kind, Lacking) and death.cause.kind not in OF_MEMORY:
        return Reason(Remedy.PROVIDE, lacking=death.cause)
    return Reason(DEATH_REMEDIES[death.part])


def _raised(error: ExchangeError, outcome: Fail | Inconclusive, raised: str) -> Outcome:
    """Return the outcome with the log's last exception; a time-out behind one is the engine's fault."""
    if isinstance(error, TimedOut):
        outcome = failing(outcome, "engine", Reason(DEATH_REMEDIES["engine"]))
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
