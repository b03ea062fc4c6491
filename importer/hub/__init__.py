"""References, snapshots, and the only code that connects to the Hub.

Each name is imported on its first use: code that only reads a snapshot imports no HTTP client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.hub.local import ANYWHERE, AllowedFolders
    from importer.hub.reference import Reference, parse
    from importer.hub.snapshot import RepoFile, Snapshot
    from importer.hub.weights import fetch_beside, fetch_weights, locate_weights, weights_size

__all__ = [
    "ANYWHERE", "AllowedFolders", "Reference", "RepoFile", "Snapshot", "fetch_beside", "fetch_weights",
    "locate_weights", "parse", "resolve", "weights_size",
]  # fmt: skip
_MODULES = {
    "ANYWHERE": "local", "AllowedFolders": "local", "Reference": "reference", "RepoFile": "snapshot",
    "Snapshot": "snapshot", "fetch_beside": "weights", "fetch_weights": "weights",
    "locate_weights": "weights", "parse": "reference", "weights_size": "weights",
}  # fmt: skip


def resolve(reference: Reference, places: AllowedFolders, *, offline: bool = False) -> Snapshot:
    """Return the snapshot of a reference; a directory must lie in ``places``.

    Raises UsageError, HubError, RepositoryError and ServiceError("no-directories").
    """
    if reference.directory is None:
        from importer.hub import resolver

        return resolver.resolve(reference, offline=offline)
    from importer.hub import disk

    return disk.resolve(reference.text, reference.directory, places)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(name)
    return getattr(import_module(f"importer.hub.{_MODULES[name]}"), name)
