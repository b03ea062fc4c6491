"""The report as JSON, one object; ``importer/data/validation.schema.json`` is its schema."""

from __future__ import annotations

import json
from dataclasses import asdict

from importer.reports.report_model import ReportModel, Run

SCHEMA = 1


def write(sheet: ReportModel) -> str:
    """Return the report indented, its keys in a fixed order, escaped to ASCII."""
    return json.dumps(data(sheet), indent=1) + "\n"


def data(sheet: ReportModel) -> dict[str, object]:
    """Return the report as data."""
    return {
        "schema": SCHEMA,
        "name": sheet.name,
        "model": sheet.model,
        "revision": sheet.revision,
        "digest": sheet.digest,
        "review": sheet.review,
        "validation": sheet.validation,
        "decisions": dict(sheet.decisions),
        "evidence": list(sheet.evidence),
        "runs": [_run(run) for run in sheet.runs],
    }


def _run(run: Run) -> dict[str, object]:
    row = asdict(run)
    row["outcomes"] = row.pop("outcomes")  # behind the fields of the run
    return row | {"counts": run.counts}
