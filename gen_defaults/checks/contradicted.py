"""A sampling row that a vendor's ``generation_config.json`` contradicts.

A row whose note names the value (``"notes": {"granite-4.0": "temperature: …"}``) stands all the same, and
the finding is only noted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gen_defaults import vendor
from gen_defaults.checks.finding import SAMPLING, Finding, Subject
from importer.evidence.tables import SamplingRow

SHOWN = 3  # models that are named


def check(subject: Subject) -> Iterator[Finding]:
    """Each value of each row, against every vendor file that speaks of its family."""
    rows = {row.family: row for row in subject.sampling_table.rows}
    for (family, key), said in sorted(_said(subject).items()):
        against = {m: v for m, v in said.items() if not vendor.agrees(rows[family], key, v)}
        if against:
            yield _finding(rows[family], key, against, len(said), subject.sampling.get("notes", {}))


def _finding(
    row: SamplingRow, key: str, against: dict[str, float], files: int, notes: dict[str, str]
) -> Finding:
    shown = ", ".join(f"{model} says {value:g}" for model, value in [*against.items()][:SHOWN])
    says = f"{key} is {row.values[key]:g}, against {len(against)} of {files} vendor files: {shown}"
    if key in notes.get(row.family, ""):
        return Finding(SAMPLING, row.family, says, "its note says why", "note")
    return Finding(SAMPLING, row.family, says, f"take the vendor's, or say in notes why {key} stands")


def _said(subject: Subject) -> dict[tuple[str, str], dict[str, float]]:
    """Row and value to what each vendor file says of it."""
    said: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for model_id, data in sorted(subject.vendors.items()):
        row = vendor.row_for(model_id, subject.table, subject.sampling_table)
        if row is not None:
            for key, value in vendor.values(data).items():
                if key in row.values:
                    said[row.family, key][model_id] = value
    return said
