"""Files and folders of a repository that a reference names: those that no engine loads are refused."""

from __future__ import annotations

from collections.abc import Mapping

from importer.errors import RepositoryError
from importer.hub.reference import Reference, is_id
from importer.hub.snapshot import Snapshot, listed, mapping, text
from importer.reasons import Reason, ReasonKind

GGUF = ".gguf"
MOST_FOLDERS = 8  # that a sentence names


class FileRemedy(ReasonKind):
    """What to import in place of a file or a folder."""

    BESIDE = "beside", "Import {repo} itself: it has safetensors weights, too."
    MADE_FROM = "made-from", "Import {repo}, the repository that it was made from."
    ORIGINAL = (
        "original",
        "Import the repository with the original safetensors weights; the card does not name it.",
    )
    FETCH = "fetch", "Fetch {folder!r} of {repo} at {revision}, then import that folder."
    FOLDERS = "folders", "Import {repo} without a path. Its folders with a config.json: {folders}."
    WHOLE = "whole", "Import {repo} without a path."


def check_path(reference: Reference, snapshot: Snapshot) -> None:
    """Raise RepositoryError for a reference to a GGUF file, to a folder, and to what is not listed.

    A file at the top of a repository names the repository.
    """
    path, paths = reference.path, {file.path for file in snapshot.files}
    if path is None:
        return
    if path.lower().endswith(GGUF):
        raise RepositoryError("gguf-file", file=path, repo=snapshot.label, next=_origin(snapshot))
    folder = path.rpartition("/")[0] if path in paths else path
    if not folder:
        return
    listed_below = any(name.startswith(f"{folder}/") for name in paths)
    models = sorted(name.removesuffix("/config.json") for name in paths if name.endswith("/config.json"))
    remedy = Reason(FileRemedy.WHOLE, repo=snapshot.label)
    if listed_below and folder in models:
        remedy = Reason(FileRemedy.FETCH, folder=folder, repo=snapshot.label, revision=snapshot.revision)
    elif models:
        remedy = Reason(FileRemedy.FOLDERS, repo=snapshot.label, folders=tuple(models[:MOST_FOLDERS]))
    if listed_below:
        raise RepositoryError("subfolder", path=folder, repo=snapshot.label, next=remedy)
    raise RepositoryError("no-such-path", path=folder, repo=snapshot.label, next=remedy)


def _origin(snapshot: Snapshot) -> Reason:
    """Return the repository to import in place of a GGUF file."""
    if any(file.path.endswith(".safetensors") for file in snapshot.files):
        return Reason(FileRemedy.BESIDE, repo=snapshot.label)
    origin = made_from(snapshot)
    return Reason(FileRemedy.ORIGINAL) if origin is None else Reason(FileRemedy.MADE_FROM, repo=origin)


def made_from(snapshot: Snapshot, header: Mapping[str, object] | None = None) -> str | None:
    """Return the repository of the original weights, by the card or the Hub's tags; ``None`` without one.

    ``header`` is the card's header, as its file has it, for a folder that the Hub reports nothing of.
    """
    tags = [tag for one in listed(snapshot.info.get("tags")) if (tag := text(one)) is not None]
    related = [tag.rpartition(":")[2] for tag in tags if tag.startswith("base_model:")]
    card = mapping(snapshot.info.get("card") or header).get("base_model")
    named = (*listed(snapshot.info.get("base_models")), *(listed(card) or [card]))
    names = [name for one in named if (name := text(one)) is not None]
    return next((name for name in (*names, *related) if is_id(name) and name != snapshot.model_id), None)
