"""GGUF files: a reference to one is refused, with the repository whose weights they were made from."""

from __future__ import annotations

from collections.abc import Mapping

from importer.errors import RepositoryError
from importer.hub.reference import Reference, is_id
from importer.hub.related import RELATION
from importer.hub.snapshot import Snapshot, listed, mapping, text
from importer.reasons import Reason, ReasonKind

GGUF = ".gguf"


class FileRemedy(ReasonKind):
    """The repository to import in place of a file."""

    BESIDE = "beside", "Import {repo} itself: it has safetensors weights, too."
    MADE_FROM = "made-from", "Import {repo}, the repository that it was made from."
    ORIGINAL = (
        "original",
        "Import the repository with the original safetensors weights; the card does not name it.",
    )


def check_file(reference: Reference, snapshot: Snapshot) -> None:
    """Raise RepositoryError("gguf-file") for a reference to one GGUF file: no engine here serves it."""
    if reference.file is None or not reference.file.lower().endswith(GGUF):
        return
    remedy = Reason(FileRemedy.ORIGINAL)
    if any(file.path.endswith(".safetensors") for file in snapshot.files):
        remedy = Reason(FileRemedy.BESIDE, repo=snapshot.label)
    elif (origin := made_from(snapshot)) is not None:
        remedy = Reason(FileRemedy.MADE_FROM, repo=origin)
    raise RepositoryError("gguf-file", file=reference.file, repo=snapshot.label, next=remedy)


def made_from(snapshot: Snapshot, header: Mapping[str, object] | None = None) -> str | None:
    """Return the repository of the original weights, by the card or the Hub's tags; ``None`` without one.

    ``header`` is the card's header, as its file has it, for a folder that the Hub reports nothing of.
    """
    tags = [tag for one in listed(snapshot.info.get("tags")) if (tag := text(one)) is not None]
    related = [tag.rpartition(":")[2] for tag in tags if tag.startswith(RELATION)]
    card = mapping(snapshot.info.get("card") or header).get("base_model")
    named = (*listed(snapshot.info.get("base_models")), *(listed(card) or [card]))
    names = [name for one in named if (name := text(one)) is not None]
    return next((name for name in (*names, *related) if is_id(name) and name != snapshot.model_id), None)
