"""Layers: their types for the whole package, and the kind of each from the config's lists and patterns."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, islice
from typing import Literal, NamedTuple

from importer.frozen import frozen
from importer.memory.config_keys import Keys

StateKind = Literal["mamba", "mamba2", "delta", "kimi", "lightning", "convolution"]


@frozen
class Attention:
    """Keys and values of every token, of the last ``window``, or of the present ``chunk``."""

    heads: int
    kv_heads: int
    head_size: int
    value_size: int
    window: int | None = None
    chunk: int | None = None


@frozen
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


@frozen
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


@frozen
class State:
    """A state of constant size for each sequence, of a convolution and a recurrence."""

    kind: StateKind
    tensors: tuple[StateTensor, ...]
    dtype: str | None = None  # of the recurrence, where the config or the architecture fixes it

    def divides(self, devices: int) -> bool:
        """Return whether vLLM can distribute it; each device has a copy of single parts (Mamba's groups)."""
        return all(t.parts <= 1 or t.parts % devices == 0 for t in self.tensors)


@frozen
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


@frozen
class Part:
    """Parameters of one role; at most ``most`` devices share them, further devices hold copies."""

    role: Role
    count: int
    most: int | None = None


@frozen
class Pictures:
    """What an encoder of pictures holds for one token of its result.

    ``values``  in its widest step, the pixels among them; ``most`` tokens of the largest picture, where
                pictures keep their size.
    """

    values: int
    most: int = 0


@frozen
class Layer:
    """One layer; ``caches`` are empty where it has none or shares another layer's."""

    caches: tuple[Cache, ...]
    parts: tuple[Part, ...]
    active: int = 0  # the widest activation of one token, in values


Kind = Literal["full", "window", "chunk", "state", "both", "cross", "none"]

# Words in the lists of layers of configs, and the kind of such a layer.
WORDS: dict[str, Kind] = {
    "full_attention": "full",
    "attention": "full",
    "indexed_attention": "full",
    "sparse_attention": "full",
    "sliding_attention": "window",
    "local_attention": "window",
    "chunked_attention": "chunk",
    "linear_attention": "state",
    "mamba": "state",
    "mamba2": "state",
    "recurrent": "state",
    "conv": "state",
    "hybrid": "both",
    "mlp": "none",
    "moe": "none",
}
LETTERS: dict[str, Kind] = {"M": "state", "*": "full", "-": "none", "E": "none", "L": "window", "G": "full"}

Rule = Callable[[Keys, int], list[Kind] | None]


def kinds(keys: Keys, layers: int) -> list[Kind]:
    """Return the kind of each layer; plain attention by default."""
    by_rule = next((k for rule in RULES if (k := rule(keys, layers)) is not None), None)
    listed = by_rule if by_rule is not None else _by_window(keys, layers)
    return _crossed(keys, listed)


def length(keys: Keys) -> int | None:
    """Return the number of layers in a config's list of layers, or ``None`` without a list."""
    letters = keys.get("hybrid_override_pattern")
    if isinstance(letters, str) and letters:
        return len(letters)
    listed = keys.words("layers_block_type", "layer_types")
    return len(listed) or None


def _letters(keys: Keys, layers: int) -> list[Kind] | None:
    for name in ("hybrid_override_pattern", "sliding_window_pattern"):
        text = keys.get(name)
        if isinstance(text, str) and text and set(text) <= set(LETTERS):
            return [LETTERS[c] for c in islice(cycle(text), layers)]
    return None


def _words(keys: Keys, layers: int) -> list[Kind] | None:
    """Return the kinds by a list of words; an unknown word counts as attention, the most expensive kind."""
    listed = keys.words("layer_types", "layers_block_type")
    if not listed or not any(word in WORDS for word in listed):
        return None
    if len(set(listed)) == 1 and listed[0] == "full_attention":
        return ["full"] * layers
    known = [WORDS.get(word, "full") for word in listed[:layers]]
    return known + ["full"] * (layers - len(known))


def _pattern(keys: Keys, layers: int) -> list[Kind] | None:
    """Return the kinds by transformers' default period of a model type."""
    listed = keys.words("layer_pattern")
    return [WORDS.get(word, "full") for word in islice(cycle(listed), layers)] if listed else None


def _numbered(keys: Keys, layers: int) -> list[Kind] | None:
    """Return the kinds by a list of the layers with full attention; the others keep a state."""
    counted = keys.inner("linear_attn_config").numbers("full_attn_layers")  # counted from 1
    listed = [n - 1 for n in counted] or keys.numbers("full_attn_idxs", "attn_layer_indices")
    return ["full" if i in listed else "state" for i in range(layers)] if listed else None


# Lists with a mark for each layer: the kinds with and without it, and the size that has to be there.
MARKS: tuple[tuple[str, Kind, Kind, str | None], ...] = (
    ("attn_type_list", "full", "state", None),
    ("hybrid_layer_pattern", "window", "full", None),
    ("no_rope_layers", "chunk", "full", "attention_chunk_size"),  # Llama 4: the others attend to a chunk
)


def _marked(keys: Keys, layers: int) -> list[Kind] | None:
    for name, marked, other, required in MARKS:
        marks = keys.numbers(name)
        if marks and (required is None or keys.count(required)):
            kinds: list[Kind] = [marked if mark else other for mark in marks[:layers]]
            return kinds + ["full"] * (layers - len(kinds))
    return None


# Periods: the layer of each period with full attention is the last; the least period, the kind of the
# others, and sizes of which one has to be there.
PERIODS: tuple[tuple[tuple[str, ...], int, Kind, tuple[str, ...]], ...] = (
    (("full_attention_interval",), 1, "state", ("full_attention_interval",)),
    (("layer_group_size",), 2, "state", ("head_dim", "kv_lora_rank")),
    (("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers"), 1, "window",
     ("sliding_window",)),
)  # fmt: skip


def _periods(keys: Keys, layers: int) -> list[Kind] | None:
    every, first = keys.count("attn_layer_period"), keys.size("attn_layer_offset")
    if every:
        return ["full" if i % every == first else "state" for i in range(layers)]
    for names, least, other, required in PERIODS:
        if (every := keys.size(*names)) >= least and keys.count(*required):
            return [other if (i + 1) % every else "full" for i in range(layers)]
    return None


def _states_only(keys: Keys, layers: int) -> list[Kind] | None:
    """Return the kinds of models without attention, and of Falcon-H1: each of its layers has both."""
    if keys.get("mamba_d_ssm") is not None:
        return ["both"] * layers
    states = keys.count("state_size", "ssm_state_size")
    if states and keys.count("num_attention_heads") is None:
        return ["state"] * layers
    return None


def _by_window(keys: Keys, layers: int) -> list[Kind]:
    """Return one window for all layers, or for layers from ``max_window_layers`` on if it is switched on."""
    if not keys.count("sliding_window"):
        return ["full"] * layers
    switch = keys.get("use_sliding_window")
    if switch is False:
        return ["full"] * layers
    first = keys.size("max_window_layers") if switch is True else 0
    return ["window" if i >= first else "full" for i in range(layers)]


def _crossed(keys: Keys, listed: list[Kind]) -> list[Kind]:
    """Return the kinds with layers that attend to an image, and layers that share an earlier one's cache."""
    cross = keys.numbers("cross_attention_layers")
    shared = len(listed) - keys.size("num_kv_shared_layers")
    return ["cross" if i in cross else "none" if i >= shared else k for i, k in enumerate(listed)]


RULES: tuple[Rule, ...] = (
    _letters, _words, _numbered, _marked, _periods, _states_only, _pattern,
)  # fmt: skip
