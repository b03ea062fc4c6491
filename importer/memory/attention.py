"""The caches of one layer by the keys of a config: attention (heads and widths) and recurrent states."""

from __future__ import annotations

from collections.abc import Callable

from importer.memory.config_keys import HEAD, HEADS, KV_HEADS, Keys
from importer.memory.layers import Attention, Cache, Cross, Indexer, Kind, Latent, State, StateTensor

# Keys of the layers with a window where they differ from the others (MiMo V2, Step 3.5).
_WINDOW = ("sliding_window", "sliding_window_size", "interleaved_sliding_window")
# Model types with MLA that engines unfold into ordinary keys and values.
UNFOLDED = {"minicpm3"}
IMAGE_TOKENS = 6404  # of one image in Llama 3.2 Vision: four tiles of 1,600 patches and one token each
STATE_HEADS = ("mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads")
STATE_HEAD = ("mamba_head_dim", "mamba_d_head", "mamba_headdim", "head_dim")
GROUPS = ("mamba_n_groups", "mamba_ngroups", "n_groups")
STATES = ("ssm_state_size", "mamba_d_state", "state_size")
KERNEL = ("conv_kernel", "mamba_d_conv", "conv_kernel_size")


def attention(keys: Keys, layer: int, kind: Kind, hidden: int) -> tuple[Cache, ...]:
    """Return the caches of an attention layer; empty where the config removes its attention."""
    if kind == "cross":
        return _cross(keys, hidden, keys.size("vision_tokens", default=IMAGE_TOKENS))
    block = keys.block(layer, "attention")
    if block is not None and (block.flag("no_op") or block.flag("replace_with_linear")):
        return ()
    ratios = keys.numbers("compress_ratios")
    if ratios:
        return _compressed(keys, ratios[layer] if layer < len(ratios) else 0)
    rank = keys.count("kv_lora_rank")
    if rank and keys.get("use_mla") is not False:
        return _latent(keys, layer, rank, kind)
    return (_plain(keys, layer, kind, hidden, block), *_indexed(keys, layer))


def _plain(keys: Keys, layer: int, kind: Kind, hidden: int, block: Keys | None) -> Attention:
    own = keys.inner("attention_other_setting") if kind == "window" else Keys({}, {})
    swa = kind == "window"
    heads = own.count(*HEADS) or (keys.count("swa_num_attention_heads") if swa else None)
    heads = heads or keys.at(layer, *HEADS) or 1
    shared = block.count("n_heads_in_group") if block else None
    kv_heads = heads // shared if shared else own.count(*KV_HEADS)
    kv_heads = kv_heads or (keys.count("swa_num_key_value_heads") if swa else _global_heads(keys, kind))
    kv_heads = kv_heads or _kv_heads(keys, layer, heads)
    head = own.count("head_dim") or keys.count("swa_head_dim" if swa else "global_head_dim")
    head = head or keys.at(layer, *HEAD) or hidden // heads
    value = keys.count("swa_v_head_dim" if swa else "v_head_dim") or keys.count("v_head_dim") or head
    return Attention(
        heads,
        kv_heads,
        head,
        value,
        window=window(keys, layer) if swa else None,
        chunk=keys.count("attention_chunk_size") if kind == "chunk" else None,
    )


def window(keys: Keys, layer: int) -> int | None:
    """Return the window of a layer, in tokens."""
    return keys.at(layer, *_WINDOW) or keys.count(*_WINDOW)


def _global_heads(keys: Keys, kind: Kind) -> int | None:
    """Return the key heads of Gemma 4's layers without a window, where they have their own number."""
    if kind == "full" and keys.get("attention_k_eq_v") is not False:
        return keys.count("num_global_key_value_heads")
    return None


def _kv_heads(keys: Keys, layer: int, heads: int) -> int:
    if keys.flag("multi_query") and not keys.flag("new_decoder_architecture"):
        return 1
    if keys.get("multi_query_attention") is False:
        return heads
    count = keys.at(layer, *KV_HEADS) or keys.inner("attn_config").count(*KV_HEADS)
    return min(count, heads) if count else heads


def _latent(keys: Keys, layer: int, rank: int, kind: Kind) -> tuple[Cache, ...]:
    heads = keys.at(layer, *HEADS) or 1
    rope, plain = keys.size("qk_rope_head_dim"), keys.size("qk_nope_head_dim")
    if keys.word("model_type") in UNFOLDED:
        return (Attention(heads, heads, rope + plain, rope + plain),)
    near = window(keys, layer) if kind == "window" else None
    indexer = keys.size("index_head_dim") if keys.count("index_topk") and _indexes(keys, layer) else 0
    unfolded = rank * heads * (plain + keys.size("v_head_dim"))
    sparse = keys.count("index_topk") is not None
    latent = Latent(heads, rank, rope, window=near, indexer=indexer, unfolded=unfolded, sparse=sparse)
    return (
        (latent, latent) if keys.get("zero_expert_num") is not None else (latent,)
    )  # LongCat: two in a layer


def _indexes(keys: Keys, layer: int) -> bool:
    """Return whether the layer has an indexer of its own; others share an earlier layer's."""
    listed = keys.words("indexer_types")
    return layer >= len(listed) or listed[layer] != "shared"


def _compressed(keys: Keys, ratio: int) -> tuple[Cache, ...]:
    """Return the caches of DeepSeek V4: a window of all tokens, and one vector for every ``ratio`` tokens."""
    from importer.memory import compressed

    heads, width = (keys.count(*HEADS) or 1), keys.size("head_dim")
    packed = compressed.packed_bytes(width, keys.size("qk_rope_head_dim"))
    near = Latent(heads, width, 0, window=keys.size("sliding_window", default=128), packed=packed)
    if ratio <= 1:
        return (near,)
    indexer = keys.size("index_head_dim") if ratio == compressed.INDEXED else 0
    return (near, Latent(heads, width, 0, every=ratio, indexer=indexer, packed=packed))


def _indexed(keys: Keys, layer: int) -> tuple[Cache, ...]:
    """Return the indexer of MiniMax M3, if any: keys that select blocks, beside ordinary attention."""
    sparse = keys.inner("sparse_attention_config")
    width = sparse.count("sparse_index_dim")
    if not width or not sparse.flag("use_sparse_attention"):
        return ()
    return (Indexer(width),) if sparse.at(layer, "sparse_attention_freq") else ()


def _cross(keys: Keys, hidden: int, tokens: int) -> tuple[Cache, ...]:
    heads = keys.count(*HEADS) or 1
    kv_heads = keys.size("num_key_value_heads", default=heads)
    return (Cross(heads, kv_heads, keys.size(*HEAD, default=hidden // heads), tokens),)


def state(keys: Keys, hidden: int) -> State | None:
    """Return the recurrent state of a layer, for any kind of recurrence, or ``None`` without one."""
    return next((s for rule in RULES if (s := rule(keys, hidden)) is not None), None)


def inner_width(keys: Keys, hidden: int) -> int:
    """Return the channels of a Mamba layer."""
    fixed = keys.count("mamba_d_ssm", "mamba_intermediate_size")
    if fixed:
        return fixed
    heads, head = keys.count(*STATE_HEADS[:3]), keys.count(*STATE_HEAD[:3])
    expand = keys.get("mamba_expand", "expand")
    if heads and head and keys.count("mamba_num_heads"):
        return heads * head
    if isinstance(expand, int | float) and not isinstance(expand, bool) and 0 < expand <= 64:
        return int(expand * hidden)
    return heads * head if heads and head else keys.size("intermediate_size", default=2 * hidden)


def _delta(keys: Keys, _hidden: int) -> State | None:
    """Return the state of a gated delta net: Qwen3-Next, Qwen3.5, OLMo hybrid."""
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
    """Return the state of Kimi delta attention: its recurrence is always in 32 bits."""
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
    """Return the state of LFM2: a short convolution only."""
    length = keys.count("conv_L_cache")
    if not length:
        return None
    channels = keys.size("conv_dim", default=hidden)
    return State("convolution", (StateTensor(channels, max(length - 1, 0)),))


def _mamba2(keys: Keys, hidden: int) -> State | None:
    states, groups = keys.count(*STATES), keys.count(*GROUPS)
    heads = keys.count(*STATE_HEADS)
    if not states or not groups or not heads:
        return None
    width = inner_width(keys, hidden)
    head = keys.count(*STATE_HEAD[:3]) or keys.size("head_dim", default=width // heads)
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


def _lightning(keys: Keys, hidden: int) -> State | None:
    """Return the state of linear attention without a convolution: a matrix for each head.

    Examples are MiniMax-01 and Ring linear.
    """
    heads = keys.count("num_attention_heads", "num_heads")
    if not heads:
        return None
    head = keys.size("head_dim", default=hidden // heads)
    return State("lightning", (StateTensor(heads, head * head, recurrent=True),))


def _dtype(keys: Keys, name: str) -> str | None:
    value = keys.word(name)
    return value if value in {"float32", "bfloat16", "float16"} else None


def _nemotron(keys: Keys) -> str | None:
    """Return the dtype of Nemotron-H's states: 32 bits by default; ``None`` for other models."""
    return (
        "float32"
        if keys.get("mamba_num_heads") is not None and keys.get("mamba_proj_bias") is not None
        else None
    )


RULES: tuple[Callable[[Keys, int], State | None], ...] = (
    _delta, _kimi, _convolution, _mamba2, _mamba, _lightning,
)  # fmt: skip
