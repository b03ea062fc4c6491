"""The fit of an import: the device, the headers of the weights, and quantised repositories of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from importer.app.target import device_for
from importer.hub.related import RelatedRepositories
from importer.hub.snapshot import Snapshot
from importer.memory import shape, weights
from importer.memory.choose import Choice, choose
from importer.memory.parallelism import FitRequest
from importer.memory.plans import Aim


def fit(
    snapshot: Snapshot,
    device: str | None,
    memory: int | None,
    backend: str,
    requested: FitRequest,
    *,
    aim: Aim,
    exact: bool,
    offline: bool,
    progress: Callable[[str], None],
) -> Choice:
    """Choose context, dtype and layout for the device; ``exact`` reads the headers of all weights first.

    Without a device and an amount of memory the document is for no device in particular.

    Raises UsageError, HubError and RepositoryError.
    """
    target_device = None if device is None and memory is None else device_for(device, memory, backend)
    tensors: Mapping[str, Any] | None = None
    if exact:
        from importer.hub import tensor_headers

        progress("reading the weights' headers")
        tensors = tensor_headers.tensors(snapshot, weights.files(snapshot), offline=offline)
    read = shape.read(snapshot)
    return choose(
        snapshot, read, weights.read(snapshot, read, tensors), target_device, backend, requested, aim
    )


def related(
    snapshot: Snapshot, device: str | None, memory: int | None, *, offline: bool
) -> RelatedRepositories | None:
    """Return the Hub's list of repositories with weights quantised from this one.

    ``None``, without a request, where neither a device nor an amount of memory is named, and for a directory.
    """
    if (device is None and memory is None) or snapshot.model_id is None:
        return None
    from importer.hub import related_listing

    return related_listing.quantised_from(snapshot.model_id, offline=offline)
