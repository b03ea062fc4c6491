"""References, snapshots, and the only code that talks to the Hub."""

from __future__ import annotations

from importer.hub.places import ANYWHERE, Places
from importer.hub.reference import Reference, parse
from importer.hub.resolving import resolve
from importer.hub.snapshot import RepoFile, Snapshot
from importer.hub.weights import fetch_weights, locate_weights, weights_size

__all__ = [
    "ANYWHERE",
    "Places",
    "Reference",
    "RepoFile",
    "Snapshot",
    "fetch_weights",
    "locate_weights",
    "parse",
    "resolve",
    "weights_size",
]
