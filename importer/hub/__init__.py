"""References, snapshots, and the only code that connects to the Hub."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.hub.local import AllowedFolders
    from importer.hub.reference import Reference
    from importer.hub.snapshot import Snapshot


def resolve(reference: Reference, places: AllowedFolders, *, offline: bool = False) -> Snapshot:
    """Return the snapshot of a reference; a directory must lie in ``places``.

    Raises UsageError, HubError, RepositoryError and ServiceError("no-directories").
    """
    if reference.directory is None:
        from importer.hub import resolver

        return resolver.resolve(reference, offline=offline)
    from importer.hub import disk

    return disk.resolve(reference.text, reference.directory, places)
