"""Root causes: a failure of one probe explains failures of others, and its attribution becomes theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from importer.reasons import Reason
from importer.validation.attribution.cause_rules import (
    ANSWERS,
    CAUSES,
    NAMES_PARSER,
    NOISE,
    OBSERVERS,
    OFFLINE,
    PARSERS,
    ROOTS,
    TEMPLATES,
    broken,
    came,
    of_engine,
    rests,
)
from importer.validation.errors import AnswerFailure
from importer.validation.expectations import CommonReason
from importer.validation.fact import Rung, broken_in_answer, first_broken
from importer.validation.outcome import Fail, Inconclusive, Outcome, ProbeRow, asks_for
from importer.validation.probes import (
    call_history,
    prompt_counts,
    prompt_rendered,
    request_options,
    settings_read_back,
    system_role,
    tools_in_prompt,
)
from importer.validation.remedy import Remedy

IN_ANY_CASE = {"engine": Remedy.ANOTHER_ENGINE, "model": Remedy.TRAINED_WEIGHTS}
# Probes of the prompt as the engine has it, and of options, that what breaks before the engine explains.
PROMPTS = {
    probe.NAME for probe in (prompt_counts, request_options, tools_in_prompt, call_history, system_role)
}
SENDS_NOTHING = OFFLINE | {prompt_rendered.NAME}  # the last one with IMPORT_AGAIN
BY_ITSELF = (Remedy.OPTIONS_UNALTERED, Remedy.NO_OWN_STOPS)  # the weights answer right without a chat
UNKNOWN_VARIABLE = (Remedy.RENAME_VARIABLE,)  # the template does not know it, and something else may


def with_a_remedy(row: ProbeRow) -> ProbeRow:
    """Return the row, with a remedy in any case where an engine or a model is at fault."""
    if not isinstance(row.outcome, Fail) or row.outcome.remedy:
        return row
    remedy = IN_ANY_CASE.get(row.outcome.attribution)
    return row if remedy is None else replace(row, outcome=replace(row.outcome, remedy=Reason(remedy)))


def with_a_place(row: ProbeRow, place: str) -> ProbeRow:
    """Return the row, with the place of the chat template where that is to be changed."""
    if not place or not isinstance(row.outcome, Fail) or not asks_for(row.outcome, *TEMPLATES):
        return row
    told = Reason(CommonReason.TEMPLATE_IN, place=place)
    return replace(row, outcome=replace(row.outcome, notes=(*row.outcome.notes, told)))


def traced(rows: Sequence[ProbeRow]) -> list[ProbeRow]:
    """Return the rows; failures that follow from a root cause have its attribution.

    A cause in ``ROOTS`` explains all rows that depend on answers, and ends the search. A cause in ``CAUSES``
    explains those rows that its entry selects.
    """
    rows = _of_prompts(rows)
    failed = _failed(rows)
    noise = failed.get(ANSWERS)
    if noise is not None and (noise.attribution == "model" or asks_for(noise, *BY_ITSELF)):
        name = next(filter(None, (cause.shown(failed) for cause in NOISE)), ANSWERS)
        rows = [_following(row, name, failed[name]) if row.probe == ANSWERS else row for row in rows]
        failed = _failed(rows)
    for root in ROOTS:
        first = root.shown(failed)
        if first is not None:
            return [_following(row, first, failed[first]) if root.explains(row) else row for row in rows]
    traced_rows = list(rows)
    for cause in CAUSES:
        first = cause.shown(failed)
        if first is not None:
            traced_rows = [
                _following(row, first, failed[first]) if cause.explains(row) else row for row in traced_rows
            ]
    seen = _observed(failed)
    if seen is not None:
        traced_rows = [_following(row, seen, failed[seen]) if _weak(row) else row for row in traced_rows]
    lacking = next((name for name, failure in failed.items() if _lacking(failure)), None)
    if lacking is not None:
        traced_rows = [
            _following(row, lacking, failed[lacking])
            if broken(row) or _refused_alike(row, failed[lacking])
            else row
            for row in traced_rows
        ]
    return _of_the_model(traced_rows)


def _of_the_model(rows: list[ProbeRow]) -> list[ProbeRow]:
    """Return the rows; where the model is seen to write another form, what rests on less follows from that.

    A parser that would have read one text is no remedy where no parser reads most of them.
    """
    failed = _failed(rows)
    noisy = next((name for name, failure in failed.items() if _drawn_otherwise(failure)), None)
    if noisy is None:
        return rows
    better = [row for row in rows if asks_for(row.outcome, *NAMES_PARSER)]
    fewer = len(better) < sum(_drawn_otherwise(row.outcome) for row in rows)
    return [
        _following(row, noisy, failed[noisy])
        if _weak(row) or _names_parser(row) or (fewer and row in better)
        else row
        for row in rows
    ]


def _of_prompts(rows: Sequence[ProbeRow]) -> Sequence[ProbeRow]:
    """Return the rows; where a rung breaks before the engine, its prompts and options follow from that."""
    failed = _failed(rows)
    seen = _observed({name: failure for name, failure in failed.items() if name in SENDS_NOTHING})
    variable = failed.get(prompt_rendered.NAME)
    if seen is None and variable is not None and asks_for(variable, *UNKNOWN_VARIABLE):
        seen = prompt_rendered.NAME
    started = failed.get(settings_read_back.NAME)
    if seen is None and started is not None and asks_for(started, Remedy.START_WITH_PARSER):
        seen = settings_read_back.NAME  # an engine without its parser may write calls into the prompt itself
    if seen is None:
        return rows
    return [_following(row, seen, failed[seen]) if row.probe in PROMPTS and of_engine(row) else row
            for row in rows]  # fmt: skip


def _observed(failed: Mapping[str, Fail]) -> str | None:
    """Return the first probe in ``OBSERVERS`` that fails, with one of its remedies where it names some."""
    shown = (name for _, name, remedies in OBSERVERS
             if name in failed and came(failed[name])
             and (not remedies or asks_for(failed[name], *remedies)))  # fmt: skip
    return next(shown, None)


def _failed(rows: Sequence[ProbeRow]) -> dict[str, Fail]:
    return {row.probe: row.outcome for row in rows if isinstance(row.outcome, Fail)}


def _lacking(failure: Fail) -> bool:
    """Return whether the log shows a missing part of the environment."""
    return failure.attribution == "environment" and failure.gives(AnswerFailure.LOG_LACKS)


def _refused_alike(row: ProbeRow, failure: Fail) -> bool:
    """Return whether a request of another probe was refused with the same words."""
    return isinstance(row.outcome, Fail) and not _refusals(row.outcome).isdisjoint(_refusals(failure))


def _refusals(outcome: Outcome) -> set[str]:
    return {str(r.fields.get("says")) for r in outcome.reasons if r.kind is AnswerFailure.REFUSED}


def _drawn_otherwise(outcome: Outcome) -> bool:
    """Return whether the model is seen to write another form than that of its template."""
    broken = broken_in_answer(outcome.facts)
    return outcome.attribution == "model" and broken is not None and broken.rung is Rung.DRAWN


def _names_parser(row: ProbeRow) -> bool:
    """Return whether a parser is blamed, and no reading of it was compared."""
    return asks_for(row.outcome, *PARSERS) and first_broken(row.outcome.facts) is None


def _weak(row: ProbeRow) -> bool:
    """Return whether a verdict on answers rests on no comparison of its own behind the prompt."""
    broken = first_broken(row.outcome.facts)
    seen = broken is not None and broken.rung in (Rung.PARSED, Rung.WHOLE, Rung.STREAM)
    otherwise = isinstance(row.outcome, Fail) and asks_for(row.outcome, Remedy.OWN_TEMPLATE)
    return (rests(row) or otherwise) and not seen


def _following(row: ProbeRow, root: str, cause: Fail) -> ProbeRow:
    if not isinstance(row.outcome, Fail | Inconclusive) or row.probe == root:
        return row
    if (row.outcome.attribution, row.outcome.remedy) == (cause.attribution, cause.remedy):
        return row
    outcome = replace(
        row.outcome,
        attribution=cause.attribution,
        remedy=cause.remedy,
        follows=(*row.outcome.follows, root),
    )
    return replace(row, outcome=outcome)
