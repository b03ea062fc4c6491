"""What follows from what: where answers are noise, or hold thoughts, the verdicts that rest on them do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from importer.validation.outcome import Fail, Inconclusive
from importer.validation.probes import (
    calls_kept,
    context_length,
    health,
    long_prompt,
    model_listed,
    prompt_rendered,
    reasoning_apart,
    settings_read_back,
    simple_answers,
    stops_cleanly,
    system_role,
    tokenize_round_trip,
    tools_in_prompt,
)
from importer.validation.report import Row
from importer.validation.signs import thinking_markup

ROOT = simple_answers.NAME
THOUGHTS = reasoning_apart.NAME
# They look at the engine or count the prompt, and need no sense in what the model writes.
APART = {
    probe.NAME
    for probe in (
        health, model_listed, context_length, settings_read_back, prompt_rendered, system_role,
        tools_in_prompt, calls_kept, tokenize_round_trip, long_prompt, stops_cleanly,
    )
}  # fmt: skip


def traced(rows: Sequence[Row]) -> list[Row]:
    """The rows; those that did not pass for another row's reason are blamed on what that is blamed on.

    That is all that rests on answers, where simple ones are noise; and where thoughts are not told apart,
    what was judged over an answer that holds one.
    """
    failed = {row.probe: row.outcome for row in rows if isinstance(row.outcome, Fail)}
    if ROOT in failed:
        return [row if row.probe in (ROOT, *APART) else _following(row, ROOT, failed[ROOT]) for row in rows]
    if THOUGHTS not in failed:
        return list(rows)
    return [_following(row, THOUGHTS, failed[THOUGHTS]) if _thinks(row) else row for row in rows]


def _thinks(row: Row) -> bool:
    """Whether an engine is blamed for an answer that begins with a thought."""
    blamed = isinstance(row.outcome, Fail) and row.outcome.attribution == "engine"
    return blamed and thinking_markup(row.outcome.reason) is not None


def _following(row: Row, root: str, cause: Fail) -> Row:
    if not isinstance(row.outcome, Fail | Inconclusive) or row.outcome.mend == cause.mend:
        return row
    reason = f"{row.outcome.reason}; see {root}"
    told = replace(row.outcome, reason=reason, attribution=cause.attribution, mend=cause.mend)
    return replace(row, outcome=told)
