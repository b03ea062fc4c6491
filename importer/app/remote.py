"""Validate or measure a document on a cluster or another machine: both ends, and what came back."""

from __future__ import annotations

import math
import os
import platform
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from importer import launchers
from importer.app import approvals
from importer.app.measure import measure
from importer.app.validate import record, validate_document
from importer.config_file import schema
from importer.config_file.document import Report
from importer.config_file.store import Store, StoredDocument
from importer.engines import get, install
from importer.engines.machine import cards_named, this_machine
from importer.errors import DocumentError, ImporterError, LauncherError
from importer.frozen import frozen
from importer.hub.local import ANYWHERE
from importer.launchers.base import Launcher, RemoteRun, RemoteTask, Resources, Target
from importer.launchers.bundle import Bundle, Result, pack
from importer.launchers.follow import (
    FINAL,
    LATE,
    QUEUE_SECONDS,
    RunRecord,
    end,
    follow,
    record_of,
    remote_facts,
)
from importer.memory import devices
from importer.memory.measured import Measured
from importer.progress import Progress
from importer.validation.registry import named
from importer.version import __version__


@frozen
class RemoteOptions:
    """How a document is validated elsewhere; as ``app.validate.RunOptions`` where they have the same name."""

    fetch: bool = True
    score: int = 0
    time_limit: float | None = None
    probes: Sequence[str] | None = None
    queue_seconds: float = QUEUE_SECONDS
    measure: bool = False

    @property
    def question(self) -> dict[str, object]:
        """Return what decides the result."""
        asked: dict[str, object] = {
            "score": self.score,
            "probes": None if self.probes is None else [*self.probes],
        }
        return asked | ({"measure": True} if self.measure else {})


def task_of(
    ident: str, stored: StoredDocument, engine: str, target: Target, options: RemoteOptions
) -> RemoteTask:
    """Return the task of a run with this id; raises LauncherError("folder-beside") and DocumentError."""
    bundle = Bundle.of(
        ident, stored, engine, fetch=options.fetch, score=options.score, time_limit=options.time_limit,
        probes=options.probes, measure=options.measure,
    )  # fmt: skip
    return RemoteTask(
        ident, bundle.to_bytes(), stored.digest, engine, _resources(target),
        pack() if target.sent else None,
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
    measure: bool = False,
) -> Report:
    """Follow a task to its end and return its report with where it was made, as ``follow`` does.

    That of a measurement has ``measured`` alone.

    Raises LauncherError.
    """
    launcher, run = launchers.get(target), RemoteRun.of(task.id, target)
    found = follow(
        launcher, task, progress, queue_seconds=queue_seconds, since=since, patience=patience, check=check
    )
    report = cast("Report", {**(found.report or {}), "remote": remote_facts(launcher, run, found)})
    (_check_measured if measure else _check)(report, stored, run)
    return report


def validate_on(
    stored: StoredDocument,
    store: Store,
    target: Target,
    engine: str,
    options: RemoteOptions,
    progress: Progress,
    named: Callable[[RemoteRun], None] = lambda _: None,
) -> Report:
    """Validate a document at a target and record the report; a killed call is gone on with by the next.

    ``named``  is called with the run before it is submitted. Raises LauncherError, and
    DocumentError("needs-approval").
    """

    def keep(report: Report) -> None:
        record(report, store, stored.name, stored.digest)

    return _run_on(stored, store, target, engine, options, progress, named, keep)


def measure_on(stored: StoredDocument, *, store: Store, target: Target, progress: Progress) -> Measured:
    """Measure the memory of a document at a target, as ``measure`` does here.

    Raises LauncherError, and DocumentError("needs-approval").
    """
    options = RemoteOptions(measure=True)
    report = _run_on(stored, store, target, stored.backend, options, progress, lambda _: None, lambda _: None)
    return measured_at(report)


def measured_at(report: Mapping[str, Any]) -> Measured:
    """Return the figures of a run elsewhere, with where it was."""
    found, remote = Measured.from_json(report["measured"]), report["remote"]
    named = next(iter(found.cards), None) or str(remote.get("host") or remote["where"])
    return replace(found, remote=remote, device={**found.device, "name": named[:100]})


def _run_on(
    stored: StoredDocument,
    store: Store,
    target: Target,
    engine: str,
    options: RemoteOptions,
    progress: Progress,
    named: Callable[[RemoteRun], None],
    keep: Callable[[Report], None],
) -> Report:
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
                queue_seconds=options.queue_seconds, since=float(entry["since"]), measure=options.measure,
            )  # fmt: skip
        except LauncherError as error:
            if error.kind in FINAL:
                _clean(launcher, known, LATE * options.queue_seconds)
            raise
        keep(report)
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


def _recorded(store: Store, stored: StoredDocument, ident: str) -> Report | None:
    """Return the report of a run from the receipt."""
    found = store.find(stored.name)
    receipt = None if found is None else found.receipt
    runs = [] if receipt is None else [*receipt.runs, *([receipt.partial] if receipt.partial else [])]
    return next((run.copy() for run in runs if (run.get("remote") or {}).get("run") == ident), None)


def _check_measured(report: Report, stored: StoredDocument, run: RemoteRun) -> None:
    """Raise LauncherError("bad-result") for figures that are none."""
    del stored
    try:
        Measured.from_json(report.get("measured"))
    except (ValueError, TypeError) as error:
        raise LauncherError("bad-result", where=run.where, run=run.id, problem=str(error)) from None


def _check(report: Report, stored: StoredDocument, run: RemoteRun) -> None:
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


def measured(stored: StoredDocument, bundle: Bundle, progress: Progress) -> dict[str, Any]:
    """Return the figures of a start with random weights as a report."""
    approvals.need(stored)
    return {"measured": measure(stored, bundle.engine, ANYWHERE, progress=progress).to_json()}


IMAGE = "IMPORTER_IMAGE"  # a launcher names the image here, where there is one


def run_task(bundle: Bundle, progress: Progress) -> Result:
    """Validate or measure the document of a bundle; return its report, or the error that kept it from one.

    Raises LauncherError("bad-bundle") where the document is not the one that was sent.
    """
    facts = machine(bundle.engine)
    with tempfile.TemporaryDirectory(prefix="importer-task-") as folder:
        stored = bundle.unpack(Path(folder))
        try:
            stored.check()
            install.need(get(bundle.engine))
            report = measured(stored, bundle, progress) if bundle.measure else validate_document(
                stored, Store(Path(folder)), bundle.engine, ANYWHERE,
                fetch=bundle.fetch, port=None, progress=progress,
                probes=None if bundle.probes is None else named(bundle.probes),
                score=bundle.score, time_limit=bundle.time_limit,
            )  # fmt: skip
        except ImporterError as error:
            told = {"kind": error.kind, "message": error.sentence(), "exit_code": error.exit_code}
            return Result(bundle.task, stored.digest, __version__, facts, error=told)
    return Result(bundle.task, stored.digest, __version__, facts, report=report)


def machine(engine: str) -> dict[str, object]:
    """Return the host, the device that the engine runs on, its driver, and the image if one is named."""
    device, cards = this_machine(engine), cards_named()
    return {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.machine()}",
        "device": {"kind": device.kind, "name": device.name, "count": device.count, "memory": device.memory},
        "cards": [name for name, _ in cards],
        "driver": cards[0][1] if cards else None,
        "image": os.environ.get(IMAGE) or None,
    }
