"""What stands beside the weights of a document: template, parsers and files, and the proof of its receipt."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from importer.config_file.store import StoredDocument
from importer.errors import RepositoryError

if TYPE_CHECKING:
    from importer.config_file.template_file import ChatTemplate
    from importer.decisions.decision import Frontend
    from importer.hub.snapshot import Snapshot
    from importer.proof.result import ParserVerdict, Proof
    from importer.validation.offline_parsers import OfflineParsers
    from importer.validation.rendering import PromptRendering


def rendering(
    weights: Path, document: Mapping[str, Any], override: ChatTemplate | None = None
) -> PromptRendering:
    """Return the rendering of the weights' template, or of ``override``, with the engine's variables.

    Raises RepositoryError for a template that is not valid JSON or too large.
    """
    from importer.hub import local

    return rendered_by(local.resolve(str(weights), weights), document, override)


def rendered_by(
    snapshot: Snapshot, document: Mapping[str, Any], override: ChatTemplate | None = None
) -> PromptRendering:
    """Return the rendering of a snapshot's template, or of ``override``, with the engine's variables.

    Raises RepositoryError for a template that is not valid JSON or too large.
    """
    from importer.chat_template.find import Template
    from importer.validation.rendering import PromptRendering

    template = None if override is None else Template(override.text, override.path.name)
    return PromptRendering(snapshot, document.get("chat_template_kwargs"), template)


def template_rendering(
    weights: Path, document: Mapping[str, Any], override: ChatTemplate | None
) -> AbstractContextManager[PromptRendering | None]:
    """Return the rendering of prompts; nothing where the template's file is broken: the engine rejects it."""
    try:
        return rendering(weights, document, override)
    except RepositoryError:
        return nullcontext()


def offline_parsers(
    backend: str, python: Path, weights: Path, override: ChatTemplate | None, frontend: Frontend | None
) -> AbstractContextManager[OfflineParsers | None]:
    """Return the parsers of the engine's environment for the model's own text; nothing without a template.

    Their worker starts with the first question.
    """
    from importer.chat_template import find, vocabulary
    from importer.engines.parsers import ParserWorker
    from importer.engines.registries import FAMILY
    from importer.hub import local
    from importer.proof.prove import tokens_of
    from importer.validation.offline_parsers import OfflineParsers
    from importer.validation.proof_check import INFERRING

    try:
        snapshot = local.resolve(str(weights), weights)
        template = (
            find.find(snapshot) if override is None else find.Template(override.text, override.path.name)
        )
        if template is None:
            return nullcontext()
        tokens, _declared = tokens_of(snapshot, template, vocabulary.read(snapshot))
    except RepositoryError:
        return nullcontext()
    worker = ParserWorker(FAMILY.get(backend, backend), python, frontend=frontend)
    return OfflineParsers(worker, tokens, infers=backend in INFERRING)


def proof_of(stored: StoredDocument, engine_name: str) -> Proof | None:
    """Return the receipt's proof for this engine, the verdict on the chosen parser first.

    ``None`` where the receipt has none that can be read.
    """
    from importer.config_file.validation_status import builds
    from importer.proof.result import Proof

    recorded = stored.receipt.proof if stored.receipt is not None else None
    try:
        proof = Proof.from_json(recorded or {})
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    if engine_name not in builds(proof.engine):
        return None
    return replace(
        proof, verdicts={key: _first(stored, key, verdicts) for key, verdicts in proof.verdicts.items()}
    )


def _first(
    stored: StoredDocument, key: str, verdicts: tuple[ParserVerdict, ...]
) -> tuple[ParserVerdict, ...]:
    """Return the verdict on the parser that was chosen, then the others in their order."""
    decided = stored.receipt.decisions.get(key) if stored.receipt is not None else None
    chosen = decided.get("value") if isinstance(decided, Mapping) else None
    return tuple(sorted(verdicts, key=lambda verdict: verdict.parser != chosen))
