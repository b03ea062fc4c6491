"""Types of layers for the whole package: the caches of one layer, and its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

StateKind = Literal["mamba", "mamba2", "delta", "kimi", "lightning", "convolution", "recurrent", "rwkv"]


@dataclass(frozen=True, slots=True)
class Attention:
    """Keys and values of every token, of the last ``window``, or of the present ``chunk``."""

    heads: int
    kv_heads: int
    head_size: int
    value_size: int
    window: int | None = None
    chunk: int | None = None


@dataclass(frozen=True, slots=True)
class Latent:
    """MLA: one latent vector and one rotary part for each token, for any number of heads.

    ``every``    tokens in one stored vector (DeepSeek V4 compresses 4 or 128 into one).
    ``window``   tokens, where only the last ones stay.
    ``indexer``  width of the additional keys of sparse attention, 0 without.
    ``unfolded`` values of the projection that engines keep a second time, ready for use.
    ``sparse``   whether the layer attends to tokens that an indexer selects, its own or another layer's.
    ``packed``   bytes of one vector where the architecture fixes them (DeepSeek V4), 0 elsewhere.
    """

    heads: int
    rank: int
    rope: int
    every: int = 1
    window: int | None = None
    indexer: int = 0
    unfolded: int = 0
    sparse: bool = False
    packed: int = 0

    @property
    def width(self) -> int:
        """Return the number of values in one stored vector."""
        return self.rank + self.rope


@dataclass(frozen=True, slots=True)
class Indexer:
    """Keys of sparse attention beside ordinary keys and values (MiniMax M3)."""

    width: int


class StateTensor(NamedTuple):
    """One tensor of a state: ``parts`` that tensor parallelism distributes, ``size`` values in each.

    ``recurrent``  whether it belongs to the recurrence, possibly in 32 bits.
    ``steps``      tokens that a convolution remembers, drafted tokens among them.
    """

    parts: int
    size: int
    recurrent: bool = False
    steps: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """A state of constant size for each sequence, of a convolution and a recurrence."""

    kind: StateKind
    tensors: tuple[StateTensor, ...]
    dtype: str | None = None  # of the recurrence, where the config or the architecture fixes it

    def divides(self, devices: int) -> bool:
        """Return whether vLLM can distribute it; each device has a copy of single parts (Mamba's groups)."""
        return all(t.parts <= 1 or t.parts % devices == 0 for t in self.tensors)


@dataclass(frozen=True, slots=True)
class Cross:
    """Keys and values of an encoder's output: ``tokens`` of them for each sequence."""

    heads: int
    kv_heads: int
    head_size: int
    tokens: int


Cache = Attention | Latent | Indexer | State | Cross

WHOLE = 1
Role = Literal[
    "embedding", "head", "attention", "state", "mlp", "shared", "experts", "router", "norm", "tower", "draft"
]


@dataclass(frozen=True, slots=True)
class Part:
    """Parameters of one role; at most ``most`` devices share them, further devices hold copies."""

    role: Role
    count: int
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer; ``caches`` are empty where it has none or shares another layer's."""

    caches: tuple[Cache, ...]
    parts: tuple[Part, ...]
    active: int = 0  # the widest activation of one token, in values
