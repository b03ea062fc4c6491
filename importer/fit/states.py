"""The state of layers without a growing cache, by the keys that describe them.

Shapes as the published implementations keep them: convolutions remember their kernel's length less one,
recurrences a matrix for each head.
"""

from __future__ import annotations

from collections.abc import Callable

from importer.fit.keys import Keys
from importer.fit.layer import State, StateTensor

HEADS = ("mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads")
HEAD = ("mamba_head_dim", "mamba_d_head", "mamba_headdim", "head_dim")
GROUPS = ("mamba_n_groups", "mamba_ngroups", "n_groups")
STATES = ("ssm_state_size", "mamba_d_state", "state_size")
KERNEL = ("conv_kernel", "mamba_d_conv", "conv_kernel_size")


def state(keys: Keys, hidden: int) -> State | None:
    """What a layer of this config keeps, whatever kind of recurrence it is; ``None`` where nothing says."""
    return next((s for rule in RULES if (s := rule(keys, hidden)) is not None), None)


def inner_width(keys: Keys, hidden: int) -> int:
    """Channels of a Mamba layer."""
    fixed = keys.count("mamba_d_ssm", "mamba_intermediate_size")
    if fixed:
        return fixed
    heads, head = keys.count(*HEADS[:3]), keys.count(*HEAD[:3])
    expand = keys.get("mamba_expand", "expand")
    if heads and head and keys.count("mamba_num_heads"):
        return heads * head
    if isinstance(expand, int | float) and not isinstance(expand, bool) and 0 < expand <= 64:
        return int(expand * hidden)
    return heads * head if heads and head else keys.size("intermediate_size", default=2 * hidden)


def _delta(keys: Keys, _hidden: int) -> State | None:
    """Gated delta net: Qwen3-Next, Qwen3.5, OLMo hybrid."""
    key_heads, value_heads = keys.count("linear_num_key_heads"), keys.count("linear_num_value_heads")
    if not key_heads or not value_heads:
        return None
    key, value = keys.size("linear_key_head_dim"), keys.size("linear_value_head_dim")
    remembered = max(keys.size("linear_conv_kernel_dim", default=4) - 1, 0)
    return State(
        "delta",
        (
            StateTensor(key_heads, 2 * key * remembered, steps=remembered),
            StateTensor(value_heads, value * remembered, steps=remembered),
            StateTensor(value_heads, value * key, recurrent=True),
        ),
        dtype=_dtype(keys, "mamba_ssm_dtype"),
    )


def _kimi(keys: Keys, _hidden: int) -> State | None:
    """Kimi delta attention: the recurrence is always kept in 32 bits."""
    linear = keys.inner("linear_attn_config")
    heads, head = linear.count("num_heads"), linear.count("head_dim")
    if not heads or not head:
        return None
    remembered = max(linear.size("short_conv_kernel_size", default=4) - 1, 0)
    return State(
        "kimi",
        (
            StateTensor(heads, 3 * head * remembered, steps=remembered),
            StateTensor(heads, head * head, recurrent=True),
        ),
        dtype="float32",
    )


def _convolution(keys: Keys, hidden: int) -> State | None:
    """LFM2: a short convolution and nothing else."""
    length = keys.count("conv_L_cache")
    if not length:
        return None
    channels = keys.size("conv_dim", default=hidden)
    return State("convolution", (StateTensor(channels, max(length - 1, 0)),))


def _mamba2(keys: Keys, hidden: int) -> State | None:
    states, groups = keys.count(*STATES), keys.count(*GROUPS)
    heads = keys.count(*HEADS)
    if not states or not groups or not heads:
        return None
    width = inner_width(keys, hidden)
    head = keys.count(*HEAD[:3]) or keys.size("head_dim", default=width // heads)
    remembered = max(keys.size(*KERNEL, default=4) - 1, 0)
    return State(
        "mamba2",
        (
            StateTensor(width, remembered, steps=remembered),
            StateTensor(groups, 2 * states * remembered, steps=remembered),
            StateTensor(heads, head * states, recurrent=True),
        ),
        dtype=_dtype(keys, "mamba_ssm_cache_dtype") or _nemotron(keys),
    )


def _mamba(keys: Keys, hidden: int) -> State | None:
    states = keys.count(*STATES)
    if not states:
        return None
    width = inner_width(keys, hidden)
    remembered = max(keys.size(*KERNEL, default=4) - 1, 0)
    return State("mamba", (StateTensor(width, remembered), StateTensor(width, states, recurrent=True)))


def _rwkv(keys: Keys, hidden: int) -> State | None:
    """RWKV 7: a matrix for each head, and the last token twice."""
    head = keys.count("head_dim")
    if keys.get("decay_low_rank_dim") is None or not head:
        return None
    return State("rwkv", (StateTensor(hidden, 2), StateTensor(hidden // head, head * head, recurrent=True)))


def _griffin(keys: Keys, hidden: int) -> State | None:
    """RecurrentGemma: a gated linear recurrence over channels."""
    if not keys.count("attention_window_size"):
        return None
    width = keys.count("lru_width") or hidden
    remembered = max(keys.size("conv1d_width", default=4) - 1, 0)
    return State("recurrent", (StateTensor(width, remembered), StateTensor(width, 1, recurrent=True)))


def _lightning(keys: Keys, hidden: int) -> State | None:
    """Linear attention without a convolution (MiniMax-01, Ring linear, RWKV): a matrix for each head."""
    heads = keys.count("num_attention_heads", "num_heads")
    if not heads:
        return None
    head = keys.size("head_dim", default=hidden // heads)
    return State("lightning", (StateTensor(heads, head * head, recurrent=True),))


def _dtype(keys: Keys, name: str) -> str | None:
    value = keys.word(name)
    return value if value in {"float32", "bfloat16", "float16"} else None


def _nemotron(keys: Keys) -> str | None:
    """Nemotron-H keeps its states in 32 bits unless its config says otherwise."""
    return (
        "float32"
        if keys.get("mamba_num_heads") is not None and keys.get("mamba_proj_bias") is not None
        else None
    )


RULES: tuple[Callable[[Keys, int], State | None], ...] = (
    _delta, _kimi, _convolution, _mamba2, _mamba, _rwkv, _griffin, _lightning,
)  # fmt: skip
