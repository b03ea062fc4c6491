"""Validate or measure a document by a command that runs importer elsewhere: both ends, and the report."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from importer.app import approvals
from importer.app.measure import measure
from importer.app.validate import record, validate_document
from importer.document import schema
from importer.document.records import Report
from importer.document.store import Store, StoredDocument
from importer.engines import get, install
from importer.engines.machine import cards_named, this_machine
from importer.errors import DocumentError, ImporterError, RemoteError
from importer.frozen import frozen
from importer.hub.local import ANYWHERE
from importer.memory.measured import Measured
from importer.progress import Progress
from importer.reasons import Reason
from importer.transport.bundle import Bundle, Result
from importer.transport.command import RemoteCommand
from importer.transport.exchange import START_SECONDS, ResultReason, exchange
from importer.validation.probe import ProbeOptions
from importer.validation.registry import named
from importer.version import __version__

SHOWN = 300  # characters of a far end's sentence


@frozen
class RemoteOptions:
    """How a document is run elsewhere; as ``validation.probe.ProbeOptions`` where they have the same name.

    ``start_seconds``  the longest wait for the start there.
    """

    fetch: bool = True
    thorough: bool = False
    time_limit: float | None = None
    probes: Sequence[str] | None = None
    measure: bool = False
    start_seconds: float = START_SECONDS


def report_of(
    stored: StoredDocument,
    command: RemoteCommand,
    engine: str,
    options: RemoteOptions,
    progress: Progress,
    check: Callable[[], None] = lambda: None,
) -> Report:
    """Return the report of a run by a command, with where it was made; a measurement has no other part.

    ``check`` is called now and then, and what it raises ends the run. Raises RemoteError, and
    DocumentError("needs-approval").
    """
    approvals.need(stored)
    bundle = Bundle.of(
        stored, engine, fetch=options.fetch, thorough=options.thorough, time_limit=options.time_limit,
        probes=options.probes, measure=options.measure,
    )  # fmt: skip
    found = exchange(command, bundle, progress, start_seconds=options.start_seconds, check=check)
    if found.error is not None:
        problem, cause = str(found.error["message"])[:SHOWN], found.error.get("kind")
        raise RemoteError("far-end", where=command.where, problem=problem, cause=cause)
    remote = {**found.machine, "importer": __version__, "where": command.where}
    report = cast("Report", {**(found.report or {}), "remote": remote})
    receipt, members = schema.load("receipt"), {"measured"} if options.measure else {*Report.__annotations__}
    if not schema.accepts(receipt["$defs"]["remote"], remote, receipt) or {*report} - members - {"remote"}:
        fault: Reason | None = Reason(ResultReason.FORM)
    else:
        fault = _unmeasured(report) if options.measure else _unsound(report, stored, command)
    if fault is not None:
        raise RemoteError("bad-result", where=command.where, problem=fault)
    return report


def validate_on(
    stored: StoredDocument,
    store: Store,
    command: RemoteCommand,
    engine: str,
    options: RemoteOptions,
    progress: Progress,
) -> Report:
    """Validate a document by a command and record the report; raises as ``report_of``."""
    report = report_of(stored, command, engine, options, progress)
    record(report, store, stored.name, stored.digest)
    return report


def measure_on(stored: StoredDocument, *, command: RemoteCommand, progress: Progress) -> Measured:
    """Measure the memory of a document by a command, as ``measure`` does here; raises as ``report_of``."""
    return measured_at(report_of(stored, command, stored.backend, RemoteOptions(measure=True), progress))


def measured_at(report: Mapping[str, Any]) -> Measured:
    """Return the figures of a run elsewhere, with where it was."""
    found, remote = Measured.from_json(report["measured"]), report["remote"]
    named = next(iter(found.cards), None) or str(remote.get("host") or remote["where"])
    return replace(found, remote=remote, device={**found.device, "name": named[:100]})


def _unmeasured(report: Report) -> Reason | None:
    """Return why figures are none."""
    try:
        Measured.from_json(report.get("measured"))
    except (ValueError, TypeError) as error:
        return Reason(ResultReason.TEXT, text=str(error))
    return None


def _unsound(report: Report, stored: StoredDocument, command: RemoteCommand) -> Reason | None:
    """Return why no receipt could hold a report; raises RemoteError("other-digest") for data not sent."""
    if report.get("digest", stored.digest) != stored.digest:
        got = str(report["digest"])[:100]
        raise RemoteError("other-digest", where=command.where, sent=stored.digest, got=got)
    try:
        schema.check("receipt", {"digest": stored.digest, **report}, stored.path, "validation")
    except DocumentError as error:
        return Reason(ResultReason.TEXT, text=error.details["problem"])
    return None


def run_task(bundle: Bundle, progress: Progress) -> Result:
    """Validate or measure the document of a bundle; return its report, or the error that kept it from one.

    Raises RemoteError("bad-bundle") where the document is not the one that was sent.
    """
    facts = machine(bundle.engine)
    with tempfile.TemporaryDirectory(prefix="importer-task-") as folder:
        stored = bundle.write(Path(folder))
        try:
            stored.check()
            install.need(get(bundle.engine))
            probes = None if bundle.probes is None else named(bundle.probes)
            options = ProbeOptions.of(progress, probes, thorough=bundle.thorough, seconds=bundle.time_limit)
            report = measured(stored, bundle, progress) if bundle.measure else validate_document(
                stored, Store(Path(folder)), bundle.engine, ANYWHERE, options, fetch=bundle.fetch
            )  # fmt: skip
        except ImporterError as error:
            told = {"kind": error.kind, "message": error.sentence(), "exit_code": error.exit_code}
            return Result(stored.digest, facts, error=told)
    return Result(stored.digest, facts, report=report)


def measured(stored: StoredDocument, bundle: Bundle, progress: Progress) -> dict[str, Any]:
    """Return the figures of a start with random weights as a report."""
    approvals.need(stored)
    return {"measured": measure(stored, bundle.engine, ANYWHERE, progress=progress).to_json()}


def machine(engine: str) -> dict[str, object]:
    """Return the host, the device that the engine runs on, and its driver."""
    device, cards = this_machine(engine), cards_named()
    return {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.machine()}",
        "device": {"kind": device.kind, "name": device.name, "count": device.count, "memory": device.memory},
        "cards": [name for name, _ in cards],
        "driver": cards[0][1] if cards else None,
    }
