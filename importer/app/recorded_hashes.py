"""What import and first validation recorded of a model, beside the files that are served now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from importer.config_file.store import StoredDocument
from importer.engines import token_merges, token_numbers, whole_files
from importer.engines.token_merges import MergedWords
from importer.engines.token_numbers import TokenTable
from importer.hub import digests, local
from importer.hub.folders import Folder
from importer.progress import Progress
from importer.validation.likelihood import Likelihood, recorded
from importer.validation.probes import files_as_imported

WEIGHTS = ".safetensors"
SHA256 = 64  # hex digits


@dataclass(frozen=True, slots=True)
class References:
    """The hashes of the import and of the served files, the embedding, and earlier figures.

    ``files``       hashes of files and weights at the import.
    ``served``      those of the served weights, and of large files beside them.
    ``broken``      files of JSON that are none.
    ``table``       the embedding's rows and the tokens beyond.
    ``merges``      the words that the tokenizer's merges yield.
    ``likelihood``  the figures of the first validated run; a run adds its own.
    """

    files: Mapping[str, str]
    served: Mapping[str, str]
    broken: tuple[str, ...]
    table: TokenTable | None
    merges: MergedWords | None
    likelihood: Likelihood

    def to_json(self) -> dict[str, Any]:
        """Return the receipt's entries of a run."""
        weights = {path: digest for path, digest in self.served.items() if path.endswith(WEIGHTS)}
        measured = self.likelihood.to_json()
        return {"weights": weights} | ({} if measured is None else {"likelihood": measured})


def references_of(stored: StoredDocument, weights: Path, progress: Progress) -> References:
    """Return the references of a document for a run of these weights; large new files are read once."""
    files = files_of(stored, weights)
    table, merges = token_numbers.of_folder(weights), token_merges.of_folder(weights)
    served, broken = digests_of(files, weights, progress), whole_files.broken(weights)
    return References(files, served, broken, table, merges, likelihood_of(stored))


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
    return tuple(files_as_imported.altered(imported, served))


def likelihood_of(stored: StoredDocument) -> Likelihood:
    """Return the figures of the first validated run of these very weights, for a new run to measure again."""
    receipt = stored.receipt
    if receipt is None or not receipt.weights:
        return Likelihood()
    runs = (recorded(run) for run in receipt.runs if run.get("weights") == receipt.weights)
    return next((likelihood for likelihood in runs if likelihood.reference), Likelihood())


def digests_of(files: Mapping[str, str], weights: Path, progress: Progress) -> dict[str, str]:
    """Return the digests of the served weights, and of files whose SHA-256 the import recorded."""
    large = {name: was for name, was in files.items() if name.endswith(WEIGHTS) or len(was) == SHA256}
    return digests.served(weights, large, progress)
