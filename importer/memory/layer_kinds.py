"""The kind of each layer, from the lists, patterns, periods and switches of configs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, islice
from typing import Literal

from importer.memory.config_keys import Keys

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


def _blocks(keys: Keys, layers: int) -> list[Kind] | None:
    """Return the kinds of RecurrentGemma: a few blocks that repeat; its attention has a window."""
    listed = keys.words("block_types", "_block_types")
    if not listed or not keys.count("attention_window_size"):
        return None
    return ["window" if word == "attention" else "state" for word in islice(cycle(listed), layers)]


def _pattern(keys: Keys, layers: int) -> list[Kind] | None:
    """Return the kinds by transformers' default period of a model type."""
    listed = keys.words("layer_pattern")
    return [WORDS.get(word, "full") for word in islice(cycle(listed), layers)] if listed else None


def _numbered(keys: Keys, layers: int) -> list[Kind] | None:
    """Return the kinds by a list of the layers with full attention; the others keep a state."""
    linear = keys.inner("linear_attn_config")
    counted = linear.numbers("full_attn_layers")  # counted from 1
    if counted:
        return ["full" if i + 1 in counted else "state" for i in range(layers)]
    listed = keys.numbers("full_attn_idxs", "attn_layer_indices")
    if listed:
        return ["full" if i in listed else "state" for i in range(layers)]
    marks = keys.numbers("attn_type_list")
    if marks:
        return ["full" if i >= len(marks) or marks[i] else "state" for i in range(layers)]
    windows = keys.numbers("hybrid_layer_pattern")
    if windows:
        return ["window" if i < len(windows) and windows[i] else "full" for i in range(layers)]
    return None


def _periods(keys: Keys, layers: int) -> list[Kind] | None:
    every, first = keys.count("attn_layer_period"), keys.size("attn_layer_offset")
    if every:
        return ["full" if i % every == first else "state" for i in range(layers)]
    every = keys.count("full_attention_interval")
    if every:
        return ["state" if (i + 1) % every else "full" for i in range(layers)]
    if keys.count("layer_group_size") and keys.get("kv_lora_rank", "head_dim") is not None:
        every = keys.size("layer_group_size")
        if every > 1:
            return ["state" if (i + 1) % every else "full" for i in range(layers)]
    every = keys.count("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers")
    if every and keys.count("sliding_window"):
        return ["window" if (i + 1) % every else "full" for i in range(layers)]
    return None


def _chunks(keys: Keys, layers: int) -> list[Kind] | None:
    """Return the kinds of Llama 4: full attention without rotary positions, else attention to a chunk."""
    marks = keys.numbers("no_rope_layers")
    if not marks or not keys.count("attention_chunk_size"):
        return None
    return ["chunk" if i < len(marks) and marks[i] else "full" for i in range(layers)]


def _states_only(keys: Keys, layers: int) -> list[Kind] | None:
    """Return the kinds of models without attention, and of Falcon-H1: each of its layers has both."""
    if keys.get("mamba_d_ssm") is not None:
        return ["both"] * layers
    if keys.get("decay_low_rank_dim") is not None:  # RWKV
        return ["state"] * layers
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


RULES: tuple[Rule, ...] = (_letters, _words, _blocks, _numbered, _chunks, _periods, _states_only, _pattern)
