"""What this disk has of a document's model, for a server that importer did not start. Nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from importer.app.beside_weights import proof_of, rendered_by
from importer.app.recorded_hashes import likelihood_of
from importer.config_file.store import StoredDocument
from importer.errors import ImporterError
from importer.hub.local import AllowedFolders
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason

if TYPE_CHECKING:
    from importer.validation.evidence_sources import Background

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
    """Yield template, tokenizer, proof and earlier figures of the document's model, where they are here.

    A missing tokenizer has its reason (``Background.no_tokenizer``).
    """
    from importer.engines import token_merges, tokenizer
    from importer.hub.folders import has_files
    from importer.validation.evidence_sources import Background
    from importer.validation.expectations import CommonReason

    proof, likelihood = proof_of(stored, stored.backend), likelihood_of(stored)
    try:
        snapshot = snapshot_of(stored, places, offline=True)
        rendering = rendered_by(snapshot, stored.data, stored.chat_template())
    except ImporterError:
        yield Background(proof=proof, likelihood=likelihood)
        return
    with rendering as render:
        known = Background(render=render, proof=proof, likelihood=likelihood)
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
