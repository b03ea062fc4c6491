"""The probe of effective settings: parsers and sampling values that the engine reports are those of the
document.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from importer.reasons import Fields, Reason, ReasonKind
from importer.validation import proof_check
from importer.validation.calls import judge_call
from importer.validation.context import Context, together
from importer.validation.diagnosis import unread
from importer.validation.errors import ExchangeError
from importer.validation.expectations import Expectations, no_chat
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.prompts import WEATHER
from importer.validation.remedy import OTHER_TOOL_PARSER, Remedy, noun
from importer.validation.reply import Reply


def _parser(fields: Fields) -> str:
    return f"{noun(fields['key'])} {fields['parser'] or 'none'}"


def _own_choice(fields: Fields) -> str:
    return f"{_parser(fields)} by its own choice"


def _other_parser(fields: Fields) -> str:
    runs = fields["runs"] or f"no {noun(fields['key'])}"
    return f"the engine runs with {runs}, the document says {fields['promised'] or 'none'}"


class SettingsReason(ReasonKind):
    """The reasons of ``settings-read-back``."""

    NOTHING_SAID = "nothing-said", "the engine says nothing of its settings"
    REFUTED = "refuted", "the document names {named}, which the proof refutes"
    READS = "reads", "it does not tell its parsers; it reads the model's calls as {promised} does"
    PARSERS_NOT_TOLD = "parsers-not-told", "the engine does not tell its parsers"
    NOT_RUN = "not-run", "it does not read the model's call: it does not run with {promised}"
    OTHER_SAMPLING = "other-sampling", "the engine samples with {key} {runs:g}, the document says {value:g}"
    VALUE = "value", "{key} {value:g}"
    VALUES = "values", "{values}"
    PARSER = "parser", _parser
    OWN_CHOICE = "own-choice", _own_choice
    OTHER_PARSER = "other-parser", _other_parser
    NO_VALUE = "no-value", "the document sets no sampling value at the start"


NAME = "settings-read-back"
LESSON = "A parser's name that could not be loaded was printed and forgotten; the engine ran without one."
KEYS = ("tool_parser", "reasoning_parser")
# Defaults of vLLM without values in the model's files or at the start.
DEFAULTS = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0,
            "presence_penalty": 0.0, "frequency_penalty": 0.0}  # fmt: skip
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Compare log and /health with the document; an engine that reports no parser is judged by a call."""
    effective, promise = ctx.running(), ctx.promise
    reads = promise.tool_parser is not None and _reads(ctx)
    outcomes = {
        key: judge_parser(key, parser, getattr(promise, key), infers=effective.infers, reads=reads)
        for key in KEYS
        if (parser := getattr(effective, key)) is not None
    }
    if effective.sampling is not None:
        outcomes["sampling"] = judge_sampling(effective.sampling, at_start(promise))
    for key in KEYS:
        if not isinstance(outcomes.get(key), Fail) and (refuted := _refuted(ctx, key)) is not None:
            outcomes[key] = refuted
    if "tool_parser" not in outcomes and promise.tool_parser is not None:
        outcomes["tool_parser"] = shown(ctx, promise.tool_parser, reads=reads)
    return together(outcomes) if outcomes else NotApplicable(Reason(SettingsReason.NOTHING_SAID))


def _refuted(ctx: Context, key: str) -> Fail | None:
    """Return the fault of a parser that does not read the template, even where the engine infers another."""
    if ctx.proof is None or not proof_check.same_template(ctx, ctx.proof):
        return None
    named = getattr(ctx.promise, key)
    remedy = proof_check.rather(key, named, ctx.proof)
    if remedy is None:
        return None
    return Fail(Reason(SettingsReason.REFUTED, named=named), "configuration", remedy)


def _reads(ctx: Context) -> bool:
    """Return whether a call was parsed; a refusal is left to another probe."""
    try:
        return read_right(ctx.first(WEATHER))
    except ExchangeError:
        return False


def read_right(reply: Reply) -> bool:
    """Return whether there is a call without a fault of its parser."""
    judged = judge_call(reply, WEATHER)
    return bool(reply.tool_calls) and judged.attribution != "configuration"


def at_start(promise: Expectations) -> dict[str, Any]:
    """Return the sampling values of the document that the client need not send."""
    return {k: v for k, v in promise.sampling.items() if k not in promise.client_sampling}


def shown(ctx: Context, promised: str, *, reads: bool) -> Outcome:
    """Judge a parser that the engine does not report by an answer with a call."""
    if reads:
        return Pass(Reason(SettingsReason.READS, promised=promised))
    seen = ctx.look(WEATHER)
    if seen is not None and seen.old_field is not None:
        return judge_call(seen, WEATHER)
    if seen is None or (unread(seen, WEATHER) is None and not seen.tool_calls) or read_right(seen):
        return NotApplicable(Reason(SettingsReason.PARSERS_NOT_TOLD))
    unread_call = Fail(Reason(SettingsReason.NOT_RUN, promised=promised), "configuration", OTHER_TOOL_PARSER)
    return ctx.noted(WEATHER, partial(judge_call, prompt=WEATHER), unread_call)


def judge_parser(key: str, reported: str, promised: str | None, *, infers: bool, reads: bool) -> Outcome:
    """Judge the parser that the engine reports, beside that of the document.

    ``infers``  the engine has inferred it.
    ``reads``   it has read a call of the model.
    """
    if reported == (promised or ""):
        return Pass(Reason(SettingsReason.PARSER, key=key, parser=reported))
    if infers and (promised is None or reads):
        return Pass(Reason(SettingsReason.OWN_CHOICE, key=key, parser=reported))
    remedy = OTHER_TOOL_PARSER if infers else Reason(Remedy.START_WITH_PARSER, key=key)
    reason = Reason(SettingsReason.OTHER_PARSER, key=key, runs=reported, promised=promised)
    return Fail(reason, "configuration", remedy)


def judge_sampling(reported: Mapping[str, float], promised: Mapping[str, Any]) -> Outcome:
    """Judge the default values that the engine reports, beside those of the document."""
    expected = {k: v for k, v in promised.items() if k in DEFAULTS and isinstance(v, int | float)}
    for key, value in expected.items():
        runs = reported.get(key, DEFAULTS[key])
        if abs(_one(key, runs) - _one(key, value)) > 1e-6:
            remedy = Reason(Remedy.START_WITH_VALUE, key=key, value=value)
            return Fail(
                Reason(SettingsReason.OTHER_SAMPLING, key=key, runs=runs, value=value),
                "configuration",
                remedy,
            )
    reasons = tuple(Reason(SettingsReason.VALUE, key=key, value=value) for key, value in expected.items())
    if not reasons:
        return NotApplicable(Reason(SettingsReason.NO_VALUE))
    return Pass(Reason(SettingsReason.VALUES, values=reasons))


def _one(key: str, value: float) -> float:
    """Return the value; ``top_k`` has both -1 and 0 for none."""
    return max(value, 0) if key == "top_k" else value
