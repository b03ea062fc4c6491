"""What a document's import recorded of its files, beside those that are served."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from importer.config_file.store import StoredDocument
from importer.hub import digests
from importer.progress import Progress

WEIGHTS = ".safetensors"
SHA256 = 64  # hex digits


def files_of(stored: StoredDocument, weights: Path) -> dict[str, str]:
    """Return hashes of the files that the document was made of; of a Hub's model those that were fetched."""
    receipt = stored.receipt
    if receipt is None:
        return {}
    files = {**receipt.files, **(receipt.weights or {})}
    present = {name: was for name, was in files.items() if (weights / name).exists()}
    return files if receipt.model_id is None else present


def digests_of(files: Mapping[str, str], weights: Path, progress: Progress) -> dict[str, str]:
    """Return the digests of the served weights, and of files whose SHA-256 the import recorded."""
    large = {name: was for name, was in files.items() if name.endswith(WEIGHTS) or len(was) == SHA256}
    return digests.served(weights, large, progress)
