"""Validate a document: find its weights, check the machine, serve it, probe it, record the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from importer import backends
from importer.app import approvals, local_evidence
from importer.app.local_evidence import (
    offline_parsers,
    proof_of,
    references_of,
    snapshot_of,
    template_rendering,
)
from importer.app.run_settings import for_engine
from importer.document import document_keys
from importer.document.document import Block, Document
from importer.document.document_keys import frontend_of
from importer.document.grants import Grant
from importer.document.records import Report
from importer.document.store import Store, StoredDocument
from importer.errors import DocumentError, EngineError, ImporterError
from importer.hub.local import AllowedFolders
from importer.hub.snapshot import Snapshot
from importer.progress import Progress, Step
from importer.reasons import Reason

if TYPE_CHECKING:
    from importer.engines.base import Engine
    from importer.engines.doctor import DoctorCase, DoctorFinding
    from importer.engines.install import Installed
    from importer.engines.process import EngineServer
    from importer.memory.estimate_types import Figure
    from importer.proof.result import Proof
    from importer.validation.probe import ProbeOptions


def fit_error(fit: Mapping[str, object] | None, document: Document, log: Path) -> dict[str, Figure]:
    """Return the predicted memory beside the log's; empty where the estimate or the log has none."""
    from importer.engines import log_figures
    from importer.memory.estimate_types import compare

    if fit is None:
        return {}
    measured = log_figures.read_memory(log)
    explicit = (document.get("engine_args") or {}).get("kv_cache_memory_bytes")  # the log rounds it
    cache = explicit if isinstance(explicit, int) and explicit else measured.cache
    return compare(fit, measured.context, measured.weights, cache, measured.tokens)


SHOWN_IN_GB = 1e8  # bytes: with two digits less than that has hardly a figure


def weights_of(
    stored: StoredDocument,
    snapshot: Snapshot | None,
    places: AllowedFolders,
    *,
    fetch: bool,
    progress: Progress,
) -> Path:
    """Return the directory with the document's weights; with ``fetch`` they are downloaded if need be.

    Raises EngineError("weights-not-local") or EngineError("no-weights"), HubError, and
    ServiceError("no-directories") for a directory that is not one of ``places``.
    """
    from importer.hub.weights import fetch_weights, locate_weights, weights_size

    snapshot = snapshot or snapshot_of(stored, places)
    here = locate_weights(snapshot)
    if here is not None:
        return here
    if snapshot.model_id is None:
        raise EngineError("no-weights", path=snapshot.directory)
    size = weights_size(snapshot)
    amount = "size unknown" if size is None else f"{size / 1e9:.2f} GB"
    if not fetch:
        raise EngineError("weights-not-local", repo=snapshot.model_id, size=amount)
    return fetch_weights(
        snapshot, lambda done, total: progress(Step(fetched(done, total), done, total, "bytes"))
    )


def fetched(done: float, total: float) -> str:
    """Return how much of the weights is here, in GB, or in MB where GB would say nothing; both in bytes."""
    unit, name = (1e9, "GB") if total >= SHOWN_IN_GB else (1e6, "MB")
    return f"fetched {done / unit:.2f} of {total / unit:.2f} {name}"


def inspect(
    stored: StoredDocument,
    engine_name: str,
    places: AllowedFolders,
    *,
    weights: Path | None = None,
    port: int | None = None,
) -> DoctorCase:
    """Return the doctor's case of a document on an engine; only weights on this disk are looked for."""
    from importer.engines.doctor.case import of_engine

    here = weights or _weights_on_disk(stored, places)
    document, run = (stored.data, None) if here is None else for_engine(stored, engine_name, here)
    recorded = stored.receipt.fit if stored.receipt is not None else None
    fit = recorded if run is None else run.fit
    return of_engine(engine_name, document=document, fit=fit, weights=here, port=port)


def ready(
    stored: StoredDocument,
    engine_name: str,
    places: AllowedFolders,
    *,
    weights: Path | None = None,
    port: int | None = None,
) -> list[DoctorFinding]:
    """Return the doctor's warnings on a run; raises EngineError("would-not-run") for what would stop it, and
    what ``check_engine`` raises.

    Without ``weights``, their folder is not read: they may have to be fetched first. Where a file in it stops
    the run, and files are not those of the import, these are named first.
    """
    from importer.app.local_evidence import changed_since
    from importer.engines import doctor

    check_engine(stored, engine_name)
    case = inspect(stored, engine_name, places, weights=weights, port=port)
    try:
        return doctor.refuse(case, stored.name, fetched=weights is not None)
    except EngineError as error:
        found = doctor.inside(error)
        changed = changed_since(stored, weights) if weights is not None and found else ()
        if not changed:
            raise
        raise doctor.explained(error, found, changed) from None


def check_engine(stored: StoredDocument, engine_name: str) -> None:
    """Raise DocumentError("other-backend") for an engine without the parsers of a document."""
    serves = backends.serving(engine_name).name
    if serves != stored.backend and not _has_parsers(serves, stored.data):
        raise DocumentError("other-backend", name=stored.name, has=stored.backend, backend=serves)


def _has_parsers(backend: str, document: Document) -> bool:
    """Return whether an engine has the parsers of a document; true for an engine without a known registry."""
    from importer.engines import registries

    if not registries.versions(backend):
        return True
    known = registries.load(backend)
    tool, reasoning = (document_keys.parser(document, key) for key in document_keys.OPTIONS)
    return (tool is None or known.has("tool", tool)) and (
        reasoning is None or known.has("reasoning", reasoning)
    )


def run_document(
    stored: StoredDocument,
    engine_name: str,
    weights: Path,
    places: AllowedFolders,
    options: ProbeOptions,
    *,
    port: int | None = None,
    watch: Callable[[EngineServer], None] = lambda _: None,
    hold: Sequence[int] = (),
) -> Report:
    """Check the document for the engine, then serve it, probe it and stop the engine; return the report.

    ``port``  of the engine, ``None`` for a free one. ``watch``  is called with the engine once it serves, so
    that another thread can stop it. ``hold``  files that stay open until the engine has ended. Raises
    EngineError and DocumentError.
    """
    from importer.engines import get, install

    engine = get(engine_name)
    installed = install.need(engine)
    ready(stored, engine_name, places, weights=weights, port=port)
    return run_on(engine, installed, stored, engine_name, weights, options, port=port, watch=watch, hold=hold)


def run_on(
    engine: Engine,
    installed: Installed,
    stored: StoredDocument,
    backend: str,
    weights: Path,
    options: ProbeOptions,
    *,
    port: int | None = None,
    watch: Callable[[EngineServer], None] = lambda _: None,
    hold: Sequence[int] = (),
) -> Report:
    """Serve, probe and stop on this engine, installed there; ``backend`` is its name in the document.

    The report is as it stands in a receipt. Raises EngineError and DocumentError.
    """
    from importer.engines import start_trials, tokenizer, vllm
    from importer.engines.process import serve
    from importer.validation.evidence_sources import Background, Journal
    from importer.validation.run import validate
    from importer.validation.served_engine import Controls

    block = stored.data.get("importer", Block()).copy()
    frontend = frontend_of(stored.data)
    block["engine"] = {"name": backend, "version": installed.version}
    if frontend is not None and backends.of(backend).frontends:
        block["engine"]["frontend"] = frontend
    document, run = for_engine(stored, engine.name, weights)
    fit = None if run is None else run.fit
    document = {**document, "backend": backend, "importer": block}
    block["client_sampling"] = engine.client_sampling(document)
    template_file, proof = stored.chat_template(), proof_of(stored, backend)
    progress = options.progress
    recorded = references_of(stored, weights, progress)
    start = partial(
        serve, engine, installed.python, document, weights,
        progress=progress, template=template_file, hold=hold,
    )  # fmt: skip
    with (
        _instead(document, proof),
        template_rendering(weights, document, template_file) as render,
        offline_parsers(backend, installed.python, weights, template_file, frontend) as offline,
        start(port=port) as served,
    ):
        watch(served)
        given = start_trials.of_document(document)
        known = Background(
            render=render,
            proof=proof,
            journal=Journal(
                served.log,
                lambda: served.alive,
                engine.deaths,
                code=lambda: served.code,
                full=lambda: served.log_full,
            ),
            argv=served.argv,
            tokens=tokenizer.asker(installed.python, weights),
            files=recorded.files,
            served=recorded.served,
            table=recorded.table,
            broken=recorded.broken,
            merges=recorded.merges,
            offline=offline,
            controls=Controls(
                lambda left_out, seconds: start(left_out=left_out, timeout=seconds),
                (given, start_trials.of_machine(served.variables, given)),
                start_trials.of_model(weights),
                served.start_seconds,
                start_trials.stretched(weights),
            ),
        )
        report = validate(
            document, served, known, options, offers=vllm.offers(document, engine.offers)
        ).to_json()
        report |= {"fit": fit_error(fit, document, served.log)}
    fields = {} if run is None else {"run": run.to_json()}
    return cast("Report", {**report, **fields, **recorded.to_json()})


def validate_document(
    stored: StoredDocument,
    store: Store,
    engine_name: str,
    places: AllowedFolders,
    options: ProbeOptions,
    *,
    fetch: bool,
    port: int | None = None,
    snapshot: Snapshot | None = None,
    typed: Collection[Grant] = (),
) -> Report:
    """Find the weights, run the document, and record the report in its receipt; return the report.

    ``snapshot``  of the document's model, where the caller has it. ``typed``  what the user has just granted.
    Raises DocumentError("needs-approval") for another grant, and what ``weights_of`` and ``run_document``
    raise.
    """
    approvals.need(stored, typed)
    weights = weights_of(stored, snapshot, places, fetch=fetch, progress=options.progress)
    report = run_document(stored, engine_name, weights, places, options, port=port)
    record(report, store, stored.name, stored.digest)
    return report


def validate_against(
    stored: StoredDocument,
    store: Store,
    url: str,
    model: str | None,
    places: AllowedFolders,
    options: ProbeOptions,
    *,
    key: str | None,
    headers: Mapping[str, str] | None = None,
) -> Report:
    """Probe a running server and record the report in the receipt: partial, without key and headers.

    ``model`` is the server's name for the model, by default found in its list. Nothing is fetched. Raises
    EngineError and UsageError.
    """
    from importer.validation.client import Client, checked, without
    from importer.validation.remote import against, the_model

    sent = checked((headers or {}).items(), key=key is not None)
    client = Client(url, key=key, headers=sent, deadline=time.monotonic() + options.total_limit)
    name = the_model(client, model, stored.data)
    with local_evidence.background(stored, places) as known:
        report = against(stored.data, client, name, known, options).to_json()
    shareable = cast("Report", without(report, client.secrets))
    record(shareable, store, stored.name, stored.digest)
    return shareable


def record(report: Report, store: Store, name: str, digest: str) -> None:
    """Add a report on the data of ``digest`` to the receipt as it is now: a review during the run stays."""
    store.amend(name, lambda receipt: receipt.with_validation(report, digest))


@contextmanager
def _instead(document: Document, proof: Proof | None) -> Iterator[None]:
    """Name the parser of the proof in the error of an engine that dies of its configuration."""
    from importer.engines.deaths import Died, of_parser
    from importer.validation.proof_check import instead

    try:
        yield
    except EngineError as error:
        details = error.details
        remedy = (
            instead(document, proof)
            if proof is not None and details.get("blames") == "configuration"
            else None
        )
        if remedy is None or not of_parser(details.get("problem")):
            raise
        problem = Reason(Died.PARSER_WITH_ANOTHER, problem=details["problem"], remedy=remedy)
        raise error.but(problem=problem) from None


def _weights_on_disk(stored: StoredDocument, places: AllowedFolders) -> Path | None:
    """Return the folder of the model's weights on this disk; no request goes to the Hub."""
    from importer.hub import cache
    from importer.hub.folders import holds
    from importer.hub.reference import parse

    block = stored.data.get("importer") or {}
    model, revision = block.get("model_id"), block.get("revision")
    try:
        known = cache.snapshot(str(model), str(revision)) if model and revision else None
        named = parse(str(model or stored.reference)).directory
        folder = places.folder(named) if known is None and named is not None else known
        return folder if folder is not None and holds(folder, (".safetensors",)) else None
    except (ImporterError, OSError):
        return None
