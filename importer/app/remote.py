"""Validate a document on a cluster or another machine, and record what came back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from importer import launchers
from importer.app import approvals
from importer.app.validate import record
from importer.config_file import schema
from importer.config_file.store import Store, StoredDocument
from importer.errors import DocumentError, LauncherError
from importer.launchers import wheel
from importer.launchers.base import Launcher, RemoteRun, RemoteTask, Resources
from importer.launchers.bundle import Bundle
from importer.launchers.follow import FINAL, LATE, QUEUE_SECONDS, end, follow, remote_facts
from importer.launchers.run_record import RunRecord, record_of
from importer.launchers.target import Target
from importer.memory import devices
from importer.progress import Progress

KEY = "remote"  # of a report in a receipt


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """How a document is validated elsewhere; as ``app.validate.RunOptions`` where they have the same name."""

    fetch: bool = True
    score: int = 0
    time_limit: float | None = None
    probes: Sequence[str] | None = None
    queue_seconds: float = QUEUE_SECONDS

    @property
    def question(self) -> dict[str, Any]:
        """Return what decides the result."""
        return {"score": self.score, "probes": None if self.probes is None else [*self.probes]}


def task_of(
    ident: str, stored: StoredDocument, engine: str, target: Target, options: RemoteOptions
) -> RemoteTask:
    """Return the task of a run with this id; raises LauncherError("folder-beside") and DocumentError."""
    bundle = Bundle.of(
        ident, stored, engine, fetch=options.fetch, score=options.score, time_limit=options.time_limit,
        probes=options.probes,
    )  # fmt: skip
    return RemoteTask(
        ident, bundle.to_bytes(), stored.digest, engine, _resources(target),
        wheel.pack() if target.sent else None,
    )  # fmt: skip


def report_of(
    target: Target,
    task: RemoteTask,
    stored: StoredDocument,
    progress: Progress,
    *,
    queue_seconds: float = QUEUE_SECONDS,
    since: float | None = None,
    patience: float = 0.0,
    check: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Follow a task to its end and return its report with where it was made, as ``follow`` does.

    Raises LauncherError.
    """
    launcher, run = launchers.get(target), RemoteRun.of(task.id, target)
    found = follow(
        launcher, task, progress, queue_seconds=queue_seconds, since=since, patience=patience, check=check
    )
    report = {**(found.report or {}), KEY: remote_facts(launcher, run, found)}
    _check(report, stored, run)
    return report


def validate_on(
    stored: StoredDocument,
    store: Store,
    target: Target,
    engine: str,
    options: RemoteOptions,
    progress: Progress,
    named: Callable[[RemoteRun], None] = lambda _: None,
) -> dict[str, Any]:
    """Validate a document at a target and record the report; a killed call is gone on with by the next.

    ``named``  is called with the run before it is submitted. Raises LauncherError, and
    DocumentError("needs-approval").
    """
    approvals.need(stored)
    launcher = launchers.get(target)
    with record_of(stored, target, {"engine": engine, **options.question}) as known:
        if known.entry is not None and known.entry.get("recorded"):
            report = _recorded(store, stored, known.run)
            _clean(launcher, known)
            if report is not None:
                return report
        entry = known.begin()
        run = RemoteRun.of(known.run, target)
        task = task_of(run.id, stored, engine, target, options)
        named(run)
        try:
            report = report_of(
                target, task, stored, progress,
                queue_seconds=options.queue_seconds, since=float(entry["since"]),
            )  # fmt: skip
        except LauncherError as error:
            if error.kind in FINAL:
                _clean(launcher, known, LATE * options.queue_seconds)
            raise
        record(report, store, stored.name, stored.digest)
        known.recorded()
        _clean(launcher, known)
        return report


def cancel_on(stored: StoredDocument, target: Target, engine: str, options: RemoteOptions) -> str | None:
    """Cancel the run that ``validate_on`` would follow and return its id; ``None`` where there is none."""
    launcher = launchers.get(target)
    with record_of(stored, target, {"engine": engine, **options.question}) as known:
        if known.entry is None:
            return None
        run = RemoteRun.of(known.run, target)
        end(launcher, run)
        known.forget()
        return run.id


def _clean(launcher: Launcher, known: RunRecord, hurry: float = math.inf) -> None:
    """Remove what a run left, and forget it; a cluster that does not answer now keeps its own rules."""
    with suppress(LauncherError):
        end(launcher, RemoteRun.of(known.run, known.target), hurry)
    known.forget()


def _recorded(store: Store, stored: StoredDocument, ident: str) -> dict[str, Any] | None:
    """Return the report of a run from the receipt."""
    found = store.find(stored.name)
    receipt = None if found is None else found.receipt
    runs = [] if receipt is None else [*receipt.runs, *([receipt.partial] if receipt.partial else [])]
    return next(({**run} for run in runs if (run.get(KEY) or {}).get("run") == ident), None)


def _check(report: Mapping[str, Any], stored: StoredDocument, run: RemoteRun) -> None:
    """Raise LauncherError for a report that no receipt could hold, "bad-result", or of data not sent."""
    if report.get("digest", stored.digest) != stored.digest:
        got = str(report["digest"])[:100]
        raise LauncherError("other-digest", where=run.where, run=run.id, sent=stored.digest, got=got)
    try:
        schema.check("receipt", {"digest": stored.digest, **report}, stored.path, "validation")
        if "score" in report:
            of = {"digest": stored.digest, "engine": report["engine"]}
            figures = report["score"] if isinstance(report["score"], dict) else {}
            schema.check("receipt", of | figures, stored.path, "score")
    except DocumentError as error:
        problem = error.details["problem"]
        raise LauncherError("bad-result", where=run.where, run=run.id, problem=problem) from None


def _resources(target: Target) -> Resources:
    asked = target.options
    memory = devices.size(asked["memory"]) if "memory" in asked else None
    return Resources(int(asked.get("cpus", 1)), int(asked.get("gpus", 0)), memory)
