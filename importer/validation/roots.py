"""What follows from what: where answers are noise, the verdicts that rest on them follow from that."""

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
    settings_read_back,
    simple_answers,
    stops_cleanly,
    system_role,
    tokenize_round_trip,
    tools_in_prompt,
)
from importer.validation.report import Row

ROOT = simple_answers.NAME
# They look at the engine or count the prompt, and need no sense in what the model writes.
APART = {
    probe.NAME
    for probe in (
        health, model_listed, context_length, settings_read_back, prompt_rendered, system_role,
        tools_in_prompt, calls_kept, tokenize_round_trip, long_prompt, stops_cleanly,
    )
}  # fmt: skip


def traced(rows: Sequence[Row]) -> list[Row]:
    """The rows; where the root failed, the others that did not pass are blamed on what it is blamed on."""
    root = next((row.outcome for row in rows if row.probe == ROOT), None)
    if not isinstance(root, Fail):
        return list(rows)
    return [row if row.probe in (ROOT, *APART) else _following(row, root) for row in rows]


def _following(row: Row, root: Fail) -> Row:
    if not isinstance(row.outcome, Fail | Inconclusive) or row.outcome.mend == root.mend:
        return row
    reason = f"{row.outcome.reason}; see {ROOT}"
    told = replace(row.outcome, reason=reason, attribution=root.attribution, mend=root.mend)
    return replace(row, outcome=told)
