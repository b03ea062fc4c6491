"""How many bytes the weights take, and which of the files' words says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from importer.fit.result import Amount, Unknown
from importer.fit.shape import Shape
from importer.hub.snapshot import Snapshot

Source = Literal["headers", "index", "api", "files", "config"]


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor as a safetensors header lists it: dtype (``BF16``, ``F8_E4M3`` …), shape, bytes."""

    dtype: str
    shape: tuple[int, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Weights:
    """All weights as published, before any split; ``source`` is where the figure was read."""

    amount: Amount
    parameters: int | None
    source: Source
    why: str

    def to_json(self) -> dict[str, Any]:
        """As it stands in receipts."""
        return {
            **self.amount.to_json(),
            "parameters": self.parameters,
            "source": self.source,
            "why": self.why,
        }


def read(
    snapshot: Snapshot, shape: Shape | Unknown, headers: Mapping[str, Tensor] | None = None
) -> Weights | Unknown:
    """The best figure there is: headers, the index, the API's totals, listed sizes, then ``config.json``.

    ``headers`` are the tensors of all shards, name to tensor, where somebody fetched them.
    """
    raise NotImplementedError


def files(snapshot: Snapshot) -> tuple[str, ...]:
    """The weight files that an engine loads, one copy of each weight: what headers are to be read of."""
    raise NotImplementedError
