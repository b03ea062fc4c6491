"""A repository on a device: its shape and weights are read, the device is found, and the choice is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from importer.fit import shape, weights
from importer.fit.choose import Choice, choose
from importer.fit.place import Wanted
from importer.hub import headers
from importer.hub.snapshot import Snapshot
from importer.target import device_for


def fit(
    snapshot: Snapshot,
    device: str | None,
    memory: int | None,
    backend: str,
    wanted: Wanted,
    *,
    exact: bool,
    offline: bool,
    progress: Callable[[str], None],
) -> Choice:
    """What the device changes of what is ``wanted``; ``exact`` reads the headers of all weights first.

    Raises UsageError, HubError and RepositoryError.
    """
    found = device_for(device, memory, backend)
    tensors: Mapping[str, Any] | None = None
    if exact:
        progress("reading the weights' headers")
        tensors = headers.tensors(snapshot, weights.files(snapshot), offline=offline)
    read = shape.read(snapshot)
    return choose(snapshot, read, weights.read(snapshot, read, tensors), found, backend, wanted)
