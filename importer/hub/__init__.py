"""References, snapshots, and the only code that connects to the Hub.

Each name is imported on its first use: code that only reads a snapshot imports no HTTP client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.hub.local import ANYWHERE, AllowedFolders
    from importer.hub.reference import Reference, parse
    from importer.hub.resolver import resolve
    from importer.hub.snapshot import RepoFile, Snapshot
    from importer.hub.weights import fetch_weights, locate_weights, weights_size

__all__ = [
    "ANYWHERE",
    "AllowedFolders",
    "Reference",
    "RepoFile",
    "Snapshot",
    "fetch_weights",
    "locate_weights",
    "parse",
    "resolve",
    "weights_size",
]
_MODULES = {
    "ANYWHERE": "local",
    "AllowedFolders": "local",
    "Reference": "reference",
    "RepoFile": "snapshot",
    "Snapshot": "snapshot",
    "fetch_weights": "weights",
    "locate_weights": "weights",
    "parse": "reference",
    "resolve": "resolver",
    "weights_size": "weights",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(name)
    return getattr(import_module(f"importer.hub.{_MODULES[name]}"), name)
