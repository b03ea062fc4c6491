"""What ``config.json`` says of the layers: what each keeps of a sequence, and how wide it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from importer.fit.result import Unknown
from importer.hub.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Attention:
    """Keys and values of every token, or of the last ``window``, or of the present ``chunk``."""

    heads: int
    kv_heads: int
    head_size: int
    value_size: int
    window: int | None = None
    chunk: int | None = None


@dataclass(frozen=True, slots=True)
class Latent:
    """MLA: one latent vector and one rotary part for every token, whatever the number of heads.

    ``indexer`` is the width of the keys that sparse attention keeps beside it, 0 without.
    """

    heads: int
    rank: int
    rope: int
    indexer: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """A state of constant size for each sequence: what a convolution and a recurrence remember.

    ``tensors`` are (heads or channels that tensor parallelism splits, values in each, kept in 32 bits).
    """

    kind: Literal["mamba", "mamba2", "delta", "linear", "convolution"]
    tensors: tuple[tuple[int, int, bool], ...]


@dataclass(frozen=True, slots=True)
class Cross:
    """Keys and values of what an encoder gave: ``tokens`` of them for each sequence."""

    heads: int
    kv_heads: int
    head_size: int
    tokens: int


Cache = Attention | Latent | State | Cross


@dataclass(frozen=True, slots=True)
class Shape:
    """The language model. A layer may keep nothing (it shares another's cache) or two kinds at once."""

    layers: tuple[tuple[Cache, ...], ...]
    hidden: int
    vocabulary: int
    heads: int
    context: int | None
    dtype: str | None
    quantisation: str | None = None

    def kinds(self) -> dict[str, int]:
        """How many layers keep what: ``full``, ``window``, ``chunk``, ``latent``, ``cross``, a state."""
        raise NotImplementedError


def read(snapshot: Snapshot) -> Shape | Unknown:
    """The shape that ``config.json`` describes, or what is missing from it."""
    raise NotImplementedError
