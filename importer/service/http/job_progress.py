"""The progress of one job as it is answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from importer.storage import jobs, progress
from importer.storage.jobs import Job
from importer.storage.progress import BegunStep, FormerSeconds

FIGURES = ("done", "total", "unit", "passed", "failed")


def progress_of(connection: Connection, job: Job, names: Sequence[str]) -> dict[str, Any] | None:
    """Return the steps of a job and the figures of the present one; ``None`` for a list."""
    if job.kind == "imports":
        return None
    begun = progress.begun(connection, job)
    former = progress.former(connection, job)
    present = begun[-1] if begun and job.state == "running" else None
    steps = [_step(name, begun, present, former) for name in (*names, *_others(begun, names))]
    figures = progress.figures(connection, job) if present is not None else {}
    same = present is not None and figures.get("step") in (None, present.name)
    started = job.started_at
    return {
        "number": None if present is None else [one["step"] for one in steps].index(present.name) + 1,
        "of": len(steps),
        "seconds": None if started is None else progress.between(started, job.ended_at),
        "remaining": _remaining(steps) if job.state in jobs.OPEN else None,
        "steps": steps,
        **{key: figures.get(key) if same else None for key in FIGURES},
    }


def _others(begun: Sequence[BegunStep], names: Sequence[str]) -> list[str]:
    """Return steps of another version of importer."""
    return [one.name for one in begun if one.name not in names]


def _step(
    name: str, begun: Sequence[BegunStep], present: BegunStep | None, former: Mapping[str, FormerSeconds]
) -> dict[str, Any]:
    found = next((one for one in begun if one.name == name), None)
    known = former.get(name)
    now = present is not None and present.name == name
    seconds = None if found is None else found.seconds
    if found is not None and now:
        seconds = progress.between(found.at)
    return {
        "step": name, "state": "later" if found is None else "now" if now else "done", "seconds": seconds,
        "median": None if known is None else known.seconds, "former": 0 if known is None else known.jobs,
    }  # fmt: skip


def _remaining(steps: Sequence[Mapping[str, Any]]) -> float | None:
    left = [one for one in steps if one["state"] != "done"]
    if any(one["median"] is None for one in left):
        return None
    return float(sum(max(0.0, one["median"] - (one["seconds"] or 0.0)) for one in left))
