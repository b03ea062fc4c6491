"""What one layer keeps of a sequence, and the parameters it has: the types that all of this room uses."""

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
    """MLA: one latent vector and one rotary part for each token, whatever the number of heads.

    ``every``    tokens that one stored vector stands for (DeepSeek V4 compresses 4 or 128 into one).
    ``window``   where only the last tokens are kept.
    ``indexer``  width of the keys that sparse attention keeps beside it, 0 without.
    ``unfolded`` values of the projection that engines keep a second time, ready for use.
    """

    heads: int
    rank: int
    rope: int
    every: int = 1
    window: int | None = None
    indexer: int = 0
    unfolded: int = 0

    @property
    def width(self) -> int:
        """Return values in one stored vector."""
        return self.rank + self.rope


@dataclass(frozen=True, slots=True)
class Indexer:
    """Keys of sparse attention beside ordinary keys and values (MiniMax M3)."""

    width: int


class StateTensor(NamedTuple):
    """``parts`` that tensor parallelism deals out, ``size`` values in each; a recurrence may need 32 bits.

    ``steps``  tokens that a convolution remembers, and among them later those that were only drafted.
    """

    parts: int
    size: int
    recurrent: bool = False
    steps: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """A state of constant size for each sequence: what a convolution and a recurrence remember."""

    kind: StateKind
    tensors: tuple[StateTensor, ...]
    dtype: str | None = None  # of the recurrence, where the config or the architecture fixes it

    def divides(self, devices: int) -> bool:
        """Return whether vLLM can deal it out: what there is one of (Mamba's groups) each device gets a copy
        of.
        """
        return all(t.parts <= 1 or t.parts % devices == 0 for t in self.tensors)


@dataclass(frozen=True, slots=True)
class Cross:
    """Keys and values of what an encoder gave: ``tokens`` of them for each sequence."""

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
    """Parameters of one role; ``most`` devices share them, of more each holds what one of so many holds."""

    role: Role
    count: int
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: empty ``caches`` where it keeps nothing or uses another layer's."""

    caches: tuple[Cache, ...]
    parts: tuple[Part, ...]
    active: int = 0  # the widest activation of one token, in values
