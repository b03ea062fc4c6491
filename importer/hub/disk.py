"""Paths of this disk as references: a folder, a file of a model, or a folder of a Hub client's cache."""

from __future__ import annotations

from pathlib import Path

from importer.errors import UsageError
from importer.hub import local
from importer.hub.folders import Folder, has_files
from importer.hub.local import AllowedFolders
from importer.hub.reference import COMMIT, DEFAULT_REVISION, Reference, check_path, is_id
from importer.hub.snapshot import Snapshot

REPOSITORY = "models--"  # the start of a repository's folder in a Hub client's cache
SNAPSHOTS = "snapshots"
FILE = "config.json"
WEIGHTS = (".safetensors", ".bin", ".gguf")


def resolve(text: str, path: Path, places: AllowedFolders) -> Snapshot:
    """Return the snapshot of a folder; a file of a model names its folder.

    In a Hub client's cache the path has the id and the commit. Raises UsageError, RepositoryError,
    HubError("not-cached") and ServiceError("no-directories").
    """
    folder = places.folder(path)
    if not _is_folder(folder):
        return _beside(text, path, places)
    return _of_cache(text, folder, places) or local.resolve(text, folder)


def _is_folder(folder: Path) -> bool:
    try:
        with Folder(folder):
            return True
    except (OSError, ValueError):
        return False


def _beside(text: str, path: Path, places: AllowedFolders) -> Snapshot:
    """Return the snapshot of the folder of a file.

    Raises UsageError for what is no file of a model, RepositoryError for a GGUF file.
    """
    above, name = places.folder(path.parent), path.name
    if not has_files(above, name):
        raise UsageError("no-such-directory", path=path)
    if not (name.lower().endswith(WEIGHTS) or has_files(above, FILE)):
        raise UsageError("no-model-file", path=path)
    snapshot = _of_cache(text, above, places) or local.resolve(text, above)
    check_path(Reference(text, directory=above, path=name), snapshot)
    return snapshot


def _of_cache(text: str, folder: Path, places: AllowedFolders) -> Snapshot | None:
    """Return the snapshot of a folder such as ``models--owner--name``, of its snapshots, or of one of them.

    ``None`` for every other folder, for a commit elsewhere, and for several commits of which none is main.
    """
    home, commit = (folder.parent.parent, folder.name) if folder.parent.name == SNAPSHOTS else (folder, None)
    home = folder.parent if folder.name == SNAPSHOTS else home
    if not home.name.startswith(REPOSITORY):
        return None
    from importer.hub import cache, resolver

    repo = home.name.removeprefix(REPOSITORY).replace("--", "/", 1)
    if not is_id(repo):
        return None
    commit = commit or cache.commit_in(home, DEFAULT_REVISION) or _only(home / SNAPSHOTS)
    if commit is None or not COMMIT.fullmatch(commit):
        return None
    directory = places.folder(home / SNAPSHOTS / commit)
    inside = directory.is_relative_to(home) and _is_folder(directory)
    return resolver.in_cache(text, repo, commit, home, directory) if inside else None


def _only(snapshots: Path) -> str | None:
    try:
        with Folder(snapshots) as folder:
            names = folder.names()
    except OSError:
        return None
    return names[0] if len(names) == 1 else None
