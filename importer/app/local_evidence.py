"""What this disk has of a document's model: template, parsers, files, and the hashes that were recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from importer import backends
from importer.document.document import Document
from importer.document.store import StoredDocument
from importer.engines import model_folder, token_merges, tokenizer
from importer.engines.token_merges import MergedWords
from importer.engines.tokenizer import TokenTable
from importer.errors import ImporterError, RepositoryError
from importer.frozen import frozen
from importer.hub import digests, local
from importer.hub.folders import Folder
from importer.hub.local import AllowedFolders
from importer.hub.snapshot import Snapshot
from importer.progress import Progress
from importer.reasons import Reason
from importer.validation.probes.server import altered

if TYPE_CHECKING:
    from importer.decisions.decision import Frontend
    from importer.document.template_file import ChatTemplate
    from importer.proof.parser_verdict import ParserVerdict
    from importer.proof.result import Proof
    from importer.validation.evidence_sources import Background, OfflineParsers
    from importer.validation.rendering import PromptRendering


WEIGHTS = ".safetensors"
SHA256 = 64  # hex digits


@frozen
class References:
    """The hashes of the import and of the served files, and the embedding.

    ``files``       hashes of files and weights at the import.
    ``served``      those of the served weights, and of large files beside them.
    ``broken``      files of JSON that are none.
    ``table``       the embedding's rows and the tokens beyond.
    ``merges``      the words that the tokenizer's merges yield.
    """

    files: Mapping[str, str]
    served: Mapping[str, str]
    broken: tuple[str, ...]
    table: TokenTable | None
    merges: MergedWords | None

    def to_json(self) -> dict[str, object]:
        """Return the receipt's entries of a run."""
        weights = {path: digest for path, digest in self.served.items() if path.endswith(WEIGHTS)}
        return {"weights": weights}


def references_of(stored: StoredDocument, weights: Path, progress: Progress) -> References:
    """Return the references of a document for a run of these weights; large new files are read once."""
    files = files_of(stored, weights)
    table, merges = tokenizer.of_folder(weights), token_merges.of_folder(weights)
    served, broken = digests_of(files, weights, progress), model_folder.broken(weights)
    return References(files, served, broken, table, merges)


def files_of(stored: StoredDocument, weights: Path) -> dict[str, str]:
    """Return hashes of the files that the document was made of; of a Hub's model those that were fetched."""
    receipt = stored.receipt
    if receipt is None:
        return {}
    files = {**receipt.files, **receipt.weights}
    if receipt.model_id is None:
        return files
    try:
        with Folder(weights) as folder:
            return {name: was for name, was in files.items() if folder.has(name)}
    except OSError:
        return {}


def changed_since(stored: StoredDocument, weights: Path) -> tuple[str, ...]:
    """Return the small files beside the weights that are not those of the import; none where it is unknown.

    Raises RepositoryError for a folder that cannot be read.
    """
    served = local.resolve(str(weights), weights).settings
    imported = {name: was for name, was in files_of(stored, weights).items() if name in served}
    return tuple(altered(imported, served))


def digests_of(files: Mapping[str, str], weights: Path, progress: Progress) -> dict[str, str]:
    """Return the digests of the served weights, and of files whose SHA-256 the import recorded."""
    large = {name: was for name, was in files.items() if name.endswith(WEIGHTS) or len(was) == SHA256}
    return digests.served(weights, large, progress)


def rendering(weights: Path, document: Document, override: ChatTemplate | None = None) -> PromptRendering:
    """Return the rendering of the weights' template, or of ``override``, with the engine's variables.

    Raises RepositoryError for a template that is not valid JSON or too large.
    """
    from importer.hub import local

    return rendered_by(local.resolve(str(weights), weights), document, override)


def rendered_by(
    snapshot: Snapshot, document: Document, override: ChatTemplate | None = None
) -> PromptRendering:
    """Return the rendering of a snapshot's template, or of ``override``, with the engine's variables.

    Raises RepositoryError for a template that is not valid JSON or too large.
    """
    from importer.chat_template.find import Template
    from importer.engines.registries import loader_of
    from importer.validation.rendering import PromptRendering

    template = None if override is None else Template(override.text, override.path.name)
    return PromptRendering(
        snapshot, document.get("chat_template_kwargs"), template, loader_of(str(document.get("backend")))
    )


def template_rendering(
    weights: Path, document: Document, override: ChatTemplate | None
) -> AbstractContextManager[PromptRendering | None]:
    """Return the rendering of prompts; nothing where the engine renders the model by its own code.

    Nothing, too, where the template's file is broken: the engine rejects it.
    """
    from importer.decisions.decision import Target
    from importer.proof.result import own_renderer

    try:
        target = Target(str(document.get("backend")))
        if own_renderer(local.resolve(str(weights), weights), (), target) is not None:
            return nullcontext()
        return rendering(weights, document, override)
    except RepositoryError:
        return nullcontext()


def offline_parsers(
    backend: str, python: Path, weights: Path, override: ChatTemplate | None, frontend: Frontend | None
) -> AbstractContextManager[OfflineParsers | None]:
    """Return the parsers of the engine's environment for the model's own text; nothing without a template.

    Their worker starts with the first question.
    """
    from importer.chat_template import find
    from importer.chat_template.vocabulary import read_vocabulary
    from importer.engines.parsers import ParserWorker
    from importer.engines.registries import loader_of
    from importer.hub import local
    from importer.proof.tokens import tokens_of
    from importer.validation.evidence_sources import OfflineParsers

    try:
        snapshot = local.resolve(str(weights), weights)
        template = (
            find.find(snapshot, loader_of(backend))
            if override is None
            else find.Template(override.text, override.path.name)
        )
        if template is None:
            return nullcontext()
        tokens, _declared = tokens_of(snapshot, template, read_vocabulary(snapshot))
    except RepositoryError:
        return nullcontext()
    worker = ParserWorker(backends.serving(backend).name, python, frontend=frontend)
    return OfflineParsers(worker, tokens, infers=backends.of(backend).infers)


def proof_of(stored: StoredDocument, engine_name: str) -> Proof | None:
    """Return the receipt's proof for this engine, the verdict on the chosen parser first.

    ``None`` where the receipt has none that can be read.
    """
    proof = recorded_proof(stored)
    if proof is None or isinstance(proof, Reason) or not backends.serves(engine_name, proof.engine):
        return None
    return replace(
        proof, verdicts={key: _first(stored, key, verdicts) for key, verdicts in proof.verdicts.items()}
    )


def recorded_proof(stored: StoredDocument) -> Proof | Reason | None:
    """Return the receipt's proof, or why it cannot be read; ``None`` where no details of one are here."""
    from importer.proof.result import UNREADABLE, Proof

    receipt = stored.receipt
    if receipt is None or not receipt.proof or "proof" in receipt.absent:
        return None
    try:
        return Proof.from_json(receipt.proof)
    except (KeyError, TypeError, ValueError):
        return UNREADABLE


def _first(
    stored: StoredDocument, key: str, verdicts: tuple[ParserVerdict, ...]
) -> tuple[ParserVerdict, ...]:
    """Return the verdict on the parser that was chosen, then the others in their order."""
    decided = stored.receipt.decisions.get(key) if stored.receipt is not None else None
    chosen = decided.get("value") if isinstance(decided, Mapping) else None
    return tuple(sorted(verdicts, key=lambda verdict: verdict.parser != chosen))


TOKENIZER = "tokenizer.json"


def snapshot_of(stored: StoredDocument, places: AllowedFolders, *, offline: bool = False) -> Snapshot:
    """Return the document's own repository at its own commit."""
    from importer.hub import resolve
    from importer.hub.reference import parse

    block = stored.data.get("importer") or {}
    reference = parse(str(block.get("model_id") or stored.reference))
    pinned = replace(reference, revision=block.get("revision")) if reference.repo else reference
    return resolve(pinned, places, offline=offline)


@contextmanager
def background(stored: StoredDocument, places: AllowedFolders) -> Iterator[Background]:
    """Yield template, tokenizer and proof of the document's model, where they are here.

    A missing tokenizer has its reason (``Background.no_tokenizer``).
    """
    from importer.engines import token_merges, tokenizer
    from importer.hub.folders import has_files
    from importer.validation.evidence_sources import Background
    from importer.validation.expectations import CommonReason

    proof = proof_of(stored, stored.backend)
    try:
        snapshot = snapshot_of(stored, places, offline=True)
        rendering = rendered_by(snapshot, stored.data, stored.chat_template())
    except ImporterError:
        yield Background(proof=proof)
        return
    with rendering as render:
        known = Background(render=render, proof=proof)
        folder, python = _folder(snapshot), _python(stored.backend)
        if folder is None or not has_files(folder, TOKENIZER):
            away = Reason(CommonReason.TOKENIZER_AWAY, model=snapshot.label, revision=snapshot.revision)
            known = replace(known, no_tokenizer=away)
        else:
            known = replace(known, merges=token_merges.of_folder(folder))
            if python is None:
                known = replace(known, no_tokenizer=Reason(CommonReason.TOKENIZER_UNREAD))
            else:
                known = replace(known, tokens=tokenizer.asker(python, folder))
        yield known


def _folder(snapshot: Snapshot) -> Path | None:
    """Return the folder of the snapshot's large files on this disk."""
    from importer.hub import cache

    if snapshot.model_id and snapshot.revision:
        return cache.snapshot(snapshot.model_id, snapshot.revision)
    return snapshot.directory


def _python(backend: str) -> Path | None:
    """Return the Python of an installed engine, the document's first: its library reads tokenizers."""
    from importer.engines import ENGINES, get, install, runs

    for name in (*((backend,) if runs(backend) else ()), *ENGINES):
        try:
            installed = install.find(get(name))
        except ImporterError:
            continue
        if installed is not None:
            return installed.python
    return None
