"""A document on a real engine: find its weights, serve it, probe it, stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Required, TypedDict, Unpack

from importer.config_file.store import StoredDocument
from importer.errors import EngineError, ImporterError, RepositoryError
from importer.hub.local import AllowedFolders
from importer.hub.snapshot import Snapshot
from importer.progress import Step
from importer.reasons import Reason

if TYPE_CHECKING:
    from importer.config_file.template_file import ChatTemplate
    from importer.engines.base import Engine
    from importer.engines.doctor import DoctorCase, DoctorFinding
    from importer.engines.install import Installed
    from importer.engines.process import EngineServer
    from importer.proof.result import ParserVerdict, Proof
    from importer.validation.probes import Probe
    from importer.validation.rendering import PromptRendering

Progress = Callable[[str], None]


class RunOptions(TypedDict, total=False):
    """How a document is run.

    ``port``  of the engine, ``None`` for a free one. ``probes``  only these, and the report is partial.
    ``watch``  is told of the engine once it serves, so that another thread can stop it. ``hold``  files that
    stay open until it is gone.
    """

    port: Required[int | None]
    progress: Required[Progress]
    probes: Sequence[Probe] | None
    watch: Callable[[EngineServer], None]
    hold: Sequence[int]


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
    from importer.hub import fetch_weights, locate_weights, weights_size

    snapshot = snapshot or _snapshot(stored, places)
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
        snapshot,
        lambda done, total: progress(Step(f"fetched {done / 1e9:.2f} of {total / 1e9:.2f} GB", done, total)),
    )


def inspect(
    stored: StoredDocument,
    engine_name: str,
    places: AllowedFolders,
    *,
    weights: Path | None = None,
    port: int | None = None,
    ask: bool = False,
) -> DoctorCase:
    """Return what the doctor looks at for a document on an engine; weights are looked for on this disk
    only.
    """
    from importer.engines.doctor.case import of_engine

    fit = stored.receipt.fit if stored.receipt is not None else None
    here = weights or _kept(stored, places)
    return of_engine(engine_name, document=stored.data, fit=fit, weights=here, port=port, ask=ask)


def ready(
    stored: StoredDocument,
    engine_name: str,
    places: AllowedFolders,
    *,
    weights: Path | None = None,
    port: int | None = None,
) -> list[DoctorFinding]:
    """Warnings; raises EngineError, "would-not-run" above all, where a run would not come to its end.

    Without ``weights``, their folder is not looked into: they may have to be fetched first.
    """
    from importer.engines import doctor

    case = inspect(stored, engine_name, places, weights=weights, port=port)
    return doctor.refuse(case, stored.name, fetched=weights is not None)


def run_document(
    stored: StoredDocument, engine_name: str, weights: Path, places: AllowedFolders, **how: Unpack[RunOptions]
) -> dict[str, Any]:
    """Serve, probe, stop; the report as it stands in a receipt. Raises EngineError and DocumentError."""
    from importer.engines import get, install

    engine = get(engine_name)
    installed = install.need(engine)
    ready(stored, engine_name, places, weights=weights, port=how["port"])
    return run_on(engine, installed, stored, engine_name, weights, **how)


def run_on(
    engine: Engine,
    installed: Installed,
    stored: StoredDocument,
    backend: str,
    weights: Path,
    *,
    port: int | None,
    progress: Progress,
    probes: Sequence[Probe] | None = None,
    watch: Callable[[EngineServer], None] = lambda _: None,
    hold: Sequence[int] = (),
) -> dict[str, Any]:
    """Return the same on this engine, installed there; ``backend`` is what the document calls it."""
    from importer.engines import tokenizer
    from importer.engines.process import serve
    from importer.validation.journal import Journal
    from importer.validation.run import validate

    block = {**stored.data.get("importer", {})}
    block["engine"] = {"name": backend, "version": installed.version}
    document = {**stored.data, "backend": backend, "importer": block}
    block["client_sampling"] = engine.client_sampling(document)
    given, proof = stored.chat_template(), proof_of(stored, backend)
    with (
        _instead(document, proof),
        _template(weights, document, given) as render,
        serve(
            engine,
            installed.python,
            document,
            weights,
            port=port,
            progress=progress,
            template=given,
            hold=hold,
        ) as served,
    ):
        watch(served)
        report = validate(
            document,
            served,
            probes=probes,
            progress=progress,
            offers=engine.offers,
            render=render,
            proof=proof,
            journal=Journal(served.log, lambda: served.alive, engine.deaths, code=lambda: served.code),
            memory=lambda: served.memory,
            fit=lambda: _fit_error(stored, served.log) or _resident(stored, served.memory),
            argv=served.argv,
            tokens=tokenizer.asker(installed.python, weights),
            files=files_of(stored, weights),
        ).to_json()
    return report | {"fit": _fit_error(stored, served.log)}


@contextmanager
def _instead(document: Mapping[str, Any], proof: Proof | None) -> Iterator[None]:
    """Return an engine that dies of its configuration is told with the parser that the proof has instead."""
    from importer.engines.deaths import Died, of_parser
    from importer.validation.proof_check import instead

    try:
        yield
    except EngineError as error:
        told = error.details
        mend = (
            instead(document, proof) if proof is not None and told.get("blames") == "configuration" else None
        )
        if mend is None or not of_parser(told.get("problem")):
            raise
        problem = Reason(Died.PARSER_WITH_ANOTHER, problem=told["problem"], remedy=mend)
        raise error.but(problem=problem) from None


def run_against(
    stored: StoredDocument,
    url: str,
    model: str | None,
    places: AllowedFolders,
    *,
    key: str | None,
    progress: Progress,
    probes: Sequence[Probe] | None = None,
) -> dict[str, Any]:
    """Probe a server that somebody else runs; a partial report, without the key. Nothing is fetched.

    ``model`` is its name for the model, if not the document's. Raises EngineError and UsageError.
    """
    from importer.validation.client import Client
    from importer.validation.journal import without
    from importer.validation.remote import against, the_model

    client = Client(url, key=key)
    name = the_model(client, model, str(stored.data["name"]))
    with _template_at_hand(stored, places) as render:
        report = against(
            stored.data,
            client,
            name,
            probes=probes,
            progress=progress,
            render=render,
            proof=proof_of(stored, stored.backend),
        ).to_json()
    told: dict[str, Any] = report if key is None else without(report, key)
    return told


def rendering(
    weights: Path, document: Mapping[str, Any], given: ChatTemplate | None = None
) -> PromptRendering:
    """Return the template beside the weights, or the one given for it, and the variables the engine starts
    with.

    Raises RepositoryError for a template that is no JSON or too large.
    """
    from importer.chat_template.find import Template
    from importer.hub import local
    from importer.validation.rendering import PromptRendering

    template = None if given is None else Template(given.text, given.path.name)
    snapshot = local.resolve(str(weights), weights)
    return PromptRendering(snapshot, document.get("chat_template_kwargs"), template)


def _template(
    weights: Path, document: Mapping[str, Any], given: ChatTemplate | None
) -> AbstractContextManager[PromptRendering | None]:
    """Return what renders; nothing where the template's file is broken, of which the engine will complain
    itself.
    """
    try:
        return rendering(weights, document, given)
    except RepositoryError:
        return nullcontext()


def _template_at_hand(
    stored: StoredDocument, places: AllowedFolders
) -> AbstractContextManager[PromptRendering | None]:
    """Return what renders as the document's model does, where that is on this disk."""
    try:
        snapshot = _snapshot(stored, places, offline=True)
        weights = weights_of(stored, snapshot, places, fetch=False, progress=lambda _: None)
        return _template(weights, stored.data, stored.chat_template())
    except ImporterError:
        return nullcontext()


def files_of(stored: StoredDocument, weights: Path) -> dict[str, str]:
    """Return hashes of the files that the document was made of; of a Hub's model those that were fetched."""
    receipt = stored.receipt
    if receipt is None:
        return {}
    there = {name: was for name, was in receipt.files.items() if (weights / name).exists()}
    return dict(receipt.files) if receipt.model_id is None else there


def proof_of(stored: StoredDocument, engine_name: str) -> Proof | None:
    """Return what the receipt says about the parsers of this engine, the one that was chosen first of all.

    ``None`` where it says nothing readable.
    """
    from importer.config_file.validation_status import builds
    from importer.proof.result import Proof

    kept = stored.receipt.proof if stored.receipt is not None else None
    try:
        proof = Proof.from_json(kept or {})
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    if engine_name not in builds(proof.engine):
        return None
    return replace(proof, verdicts={key: _first(stored, key, told) for key, told in proof.verdicts.items()})


def _first(
    stored: StoredDocument, key: str, verdicts: tuple[ParserVerdict, ...]
) -> tuple[ParserVerdict, ...]:
    """Return the verdict on the parser that was chosen, then the others in their order."""
    decided = stored.receipt.decisions.get(key) if stored.receipt is not None else None
    chosen = decided.get("value") if isinstance(decided, Mapping) else None
    return tuple(sorted(verdicts, key=lambda verdict: verdict.parser != chosen))


def _fit_error(stored: StoredDocument, log: Path) -> dict[str, Any]:
    """Return what was predicted for the document beside what the log reports; empty where either is
    silent.
    """
    from importer.engines import reported
    from importer.memory.estimate_types import compare

    if stored.receipt is None or stored.receipt.fit is None:
        return {}
    told = reported.read_memory(log)
    explicit = (stored.data.get("engine_args") or {}).get("kv_cache_memory_bytes")  # the log rounds it
    return compare(stored.receipt.fit, told.context, told.weights, explicit or told.cache, told.tokens)


def _kept(stored: StoredDocument, places: AllowedFolders) -> Path | None:
    """Return the folder of the model where weights of it are on this disk; the Hub is not asked."""
    from importer.hub import cache
    from importer.hub.reference import parse

    block = stored.data.get("importer") or {}
    model, revision = block.get("model_id"), block.get("revision")
    try:
        known = cache.snapshot(str(model), str(revision)) if model and revision else None
        named = parse(str(model or stored.reference)).directory
        folder = places.folder(named) if known is None and named is not None else known
        return folder if folder is not None and any(folder.glob("*.safetensors")) else None
    except (ImporterError, OSError):
        return None


def _resident(stored: StoredDocument, held: int | None) -> dict[str, Any]:
    """For engines that report nothing: the estimate beside what their processes hold."""
    from importer.memory.estimate_types import resident

    return resident(stored.receipt.fit or {}, held) if stored.receipt is not None else {}


def _snapshot(stored: StoredDocument, places: AllowedFolders, *, offline: bool = False) -> Snapshot:
    """Return the document's own repository at its own commit."""
    from importer.hub import resolve
    from importer.hub.reference import parse

    block = stored.data.get("importer") or {}
    reference = parse(str(block.get("model_id") or stored.reference))
    pinned = replace(reference, revision=block.get("revision")) if reference.repo else reference
    return resolve(pinned, places, offline=offline)
