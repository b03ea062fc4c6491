"""Validate a document by a command that runs importer elsewhere: both ends, and the report."""

from __future__ import annotations

import platform
import tempfile
from pathlib import Path
from typing import Any, cast

from importer.app import approvals
from importer.app.validate import validate_document
from importer.document import schema
from importer.document.records import Report
from importer.document.store import Store, StoredDocument
from importer.engines import get, install
from importer.engines.machine import cards_named, this_machine
from importer.errors import DocumentError, ImporterError, RemoteError
from importer.hub.local import ANYWHERE
from importer.progress import Progress
from importer.reasons import Reason
from importer.transport.bundle import Bundle, Result
from importer.transport.command import RemoteCommand
from importer.transport.exchange import START_SECONDS, ResultReason, exchange
from importer.validation.probe import ProbeOptions
from importer.validation.registry import named
from importer.version import __version__

SHOWN = 300  # characters of a far end's sentence


def report_of(
    stored: StoredDocument,
    command: RemoteCommand,
    engine: str,
    progress: Progress,
    *,
    start_seconds: float = START_SECONDS,
    **options: Any,
) -> Report:
    """Return the report of a run by a command, with where it was made.

    ``start_seconds``  the longest wait for the start there. ``options`` are those of a ``Bundle``. Raises
    RemoteError, and DocumentError("needs-approval").
    """
    approvals.need(stored)
    bundle = Bundle.of(stored, engine, **options)
    found = exchange(command, bundle, progress, start_seconds=start_seconds)
    if found.error is not None:
        problem, cause = str(found.error["message"])[:SHOWN], found.error.get("kind")
        raise RemoteError("far-end", where=command.where, problem=problem, cause=cause)
    remote = {**found.machine, "importer": __version__, "where": command.where}
    report = cast("Report", {**(found.report or {}), "remote": remote})
    receipt, members = schema.load("receipt"), {*Report.__annotations__, "remote"}
    known = schema.accepts(receipt["$defs"]["remote"], remote, receipt) and {*report} <= members
    fault = _unsound(report, stored, command) if known else Reason(ResultReason.FORM)
    if fault is not None:
        raise RemoteError("bad-result", where=command.where, problem=fault)
    return report


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
    """Validate the document of a bundle; return its report, or the error that kept it from one.

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
            report = validate_document(
                stored, Store(Path(folder)), bundle.engine, ANYWHERE, options, fetch=bundle.fetch
            )
        except ImporterError as error:
            told = {"kind": error.kind, "message": error.sentence(), "exit_code": error.exit_code}
            return Result(stored.digest, facts, error=told)
    return Result(stored.digest, facts, report=report)


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
