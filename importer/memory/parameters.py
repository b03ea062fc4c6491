"""Parameters of a config, by role and by their split over devices: layers, embeddings, heads and towers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isqrt

from importer.hub.snapshot import mapping
from importer.memory import experts
from importer.memory.attention import inner_width
from importer.memory.config_keys import DEPTH, HEADS, Keys
from importer.memory.layers import WHOLE, Attention, Cache, Cross, Kind, Latent, Part, Pictures, State

BIASED = {"qwen", "gpt2", "gpt_bigcode", "gptj", "phi", "starcoder2", "stablelm", "glm4", "gpt_oss", "opt"}
BIASED_KIN = ("qwen2", "chatglm", "glm4")
CONFIGS = ("vision_config", "visual", "vision_tower_config", "audio_config", "audio_tower_config")
WIDTH = ("hidden_size", "width", "d_model", "vt_hidden_size")
INNER = ("intermediate_size", "encoder_ffn_dim", "mlp_dim", "vt_intermediate_size")
GATED = {"silu", "swiglu"}
HINT = re.compile(r"(?:vision|visual|audio|image|mm)_(?:config|tower|encoder|model|size|feature)|projector")
MOST_LAYERS_OF_TOWER = 1000
PIXELS = 3  # of 16 bits, for a pixel that vLLM holds in 32 and in 16 bits
LARGEST = 16384  # tokens of the largest picture of Qwen2-VL and its successors
COPIED = ("gemma3n", "gemma4")  # vLLM uses transformers' tower, whole on each device


def layer_parts(
    keys: Keys, layer: int, kind: Kind, caches: tuple[Cache, ...], hidden: int
) -> tuple[Part, ...]:
    """Return the parameters of one layer: its mixers, its feed-forward part, its norms."""
    parts = [p for c in caches for p in _mixer(keys, c, hidden)]
    if kind == "none" and not experts.single(keys):
        parts += [p for p in _shared_attention(keys, layer, hidden) if not (p.role == "attention" and p.most)]
    forward = experts.forward(keys, layer, hidden)
    norms = Part("norm", 2 * hidden if parts and forward else hidden, WHOLE)
    return (*parts, *forward, norms, *_per_layer_input(keys, hidden))


def around(keys: Keys, hidden: int, vocabulary: int, layers: int, tied: bool) -> tuple[Part, ...]:
    """Return the parameters before and after the layers: embeddings, positions, the head."""
    narrow = keys.size("hidden_size_per_layer_input")
    wide = keys.size("vocab_size_per_layer_input", default=vocabulary) * narrow * layers
    named = {"gpt2": "n_positions", "gpt_bigcode": "n_positions"}
    learned = keys.size(named.get(keys.word("model_type"), ""))
    parts = [Part("embedding", vocabulary * hidden), Part("norm", (learned + 1) * hidden, WHOLE)]
    if wide:
        parts += [Part("embedding", wide), Part("mlp", hidden * narrow * layers)]
    streams = keys.size("altup_num_inputs")
    if streams > 1:
        parts.append(Part("mlp", 2 * (streams - 1) * hidden * hidden))
    if not tied:
        parts.append(Part("head", vocabulary * hidden))
    return tuple(p for p in parts if p.count)


def _mixer(keys: Keys, cache: Cache, hidden: int) -> list[Part]:
    if isinstance(cache, Attention):
        rank, rope = keys.count("kv_lora_rank"), keys.size("qk_rope_head_dim")
        if rank and keys.get("use_mla") is not False:  # the engine unfolds it, the weights stay as they are
            return _latent(keys, Latent(cache.heads, rank, rope), hidden)
        return _matrices(keys, cache, hidden)
    if isinstance(cache, Latent):
        return _latent(keys, cache, hidden)
    if isinstance(cache, State):
        return _state(keys, cache, hidden)
    if isinstance(cache, Cross):
        return _matrices(keys, cache, hidden)
    width = keys.inner("sparse_attention_config").size("sparse_num_index_heads") * cache.width
    return [Part("attention", hidden * (width + cache.width), WHOLE)]


def _matrices(keys: Keys, cache: Attention | Cross, hidden: int) -> list[Part]:
    """Return queries, keys, values and output."""
    gated = 2 if keys.flag("attn_output_gate") or _gated(keys) else 1
    head, value = cache.head_size, cache.value_size if isinstance(cache, Attention) else cache.head_size
    query, keyed = cache.heads * head, cache.kv_heads * (head + value)
    bias = query + keyed if _biased(keys) else 0
    return [
        Part("attention", hidden * query * gated + cache.heads * value * hidden + bias),
        Part("attention", hidden * keyed, cache.kv_heads),
        Part("norm", 2 * head, WHOLE),
    ]


def _gated(keys: Keys) -> bool:
    """Return whether a gate doubles the query projection without a key: Qwen3-Next and Qwen3.5."""
    kind = keys.word("model_type")
    return keys.get("attn_output_gate") is None and kind.startswith(("qwen3_next", "qwen3_5"))


def _biased(keys: Keys) -> bool:
    named = keys.get("attention_bias", "qkv_bias", "add_qkv_bias", "use_qkv_bias")
    kind = keys.word("model_type")
    return named is True or (named is None and (kind in BIASED or kind.startswith(BIASED_KIN)))


def _shared_attention(keys: Keys, layer: int, hidden: int) -> list[Part]:
    """Return the queries and the output of a layer that shares another's keys and values."""
    from importer.memory.attention import attention

    caches = [c for c in attention(keys, layer, "full", hidden) if isinstance(c, Attention)]
    return [p for c in caches for p in _matrices(keys, c, hidden)]


def _latent(keys: Keys, cache: Latent, hidden: int) -> list[Part]:
    if keys.numbers("compress_ratios"):
        return _compressed(keys, cache, hidden)
    low = keys.size("q_lora_rank")
    plain, value = keys.size("qk_nope_head_dim"), keys.size("v_head_dim")
    query = cache.heads * (plain + cache.rope)
    parts = [
        Part("attention", (low or hidden) * query),
        Part("attention", cache.rank * cache.heads * (plain + value) + cache.heads * value * hidden),
        Part("attention", hidden * (cache.rank + cache.rope + low), WHOLE),
    ]
    if keys.flag("mla_use_output_gate"):
        parts.append(Part("attention", hidden * cache.heads * value))
    if cache.indexer:
        heads = keys.size("index_n_heads")
        count = low * heads * cache.indexer + hidden * (cache.indexer + heads)
        parts.append(Part("attention", count, WHOLE))
    return parts


def _compressed(keys: Keys, cache: Latent, hidden: int) -> list[Part]:
    """Return DeepSeek V4's queries and grouped low-rank output, or its compressors."""
    if cache.every > 1:
        twice = 2 if cache.every == 4 else 1
        chosen = keys.size("q_lora_rank") * keys.size("index_n_heads") * cache.indexer
        keyed = (
            2 * twice * hidden * cache.indexer + hidden * keys.size("index_n_heads") if cache.indexer else 0
        )
        return [Part("attention", 2 * twice * hidden * cache.rank + chosen + keyed, WHOLE)]
    low, groups, out = keys.size("q_lora_rank"), keys.size("o_groups", default=1), keys.size("o_lora_rank")
    wide = cache.heads * cache.rank
    return [
        Part("attention", low * wide + wide * out + groups * out * hidden),
        Part("attention", hidden * (low + cache.rank), WHOLE),
    ]


def _state(keys: Keys, cache: State, hidden: int) -> list[Part]:
    if cache.kind == "delta":
        keyed = keys.size("linear_num_key_heads") * keys.size("linear_key_head_dim")
        heads = keys.size("linear_num_value_heads")
        valued = heads * keys.size("linear_value_head_dim")
        kernel = keys.size("linear_conv_kernel_dim", default=4)
        count = hidden * (2 * keyed + 3 * valued + 2 * heads) + (2 * keyed + valued) * kernel
        return [Part("state", count), Part("norm", 2 * heads, WHOLE)]
    if cache.kind == "kimi":
        return _kimi(keys, hidden)
    if cache.kind == "convolution":
        channels = cache.tensors[0].parts
        return [
            Part("state", hidden * 3 * channels + channels * hidden + channels * keys.size("conv_L_cache"))
        ]
    if cache.kind == "mamba2":
        return _mamba2(keys, cache, hidden)
    if cache.kind == "mamba":
        return _mamba(keys, hidden)
    width = cache.tensors[0].parts
    return [Part("state", 5 * hidden * width * isqrt(cache.tensors[0].size))]


def _kimi(keys: Keys, hidden: int) -> list[Part]:
    linear = keys.inner("linear_attn_config")
    heads, head = linear.size("num_heads"), linear.size("head_dim")
    width = heads * head
    gate = hidden * width if linear.flag("use_full_rank_gate") else head * (hidden + width)
    kernel = linear.size("short_conv_kernel_size", default=4)
    return [
        Part("state", hidden * (4 * width + heads) + gate + head * width + 3 * width * kernel),
        Part("state", hidden * head, WHOLE),
    ]


def _mamba2(keys: Keys, cache: State, hidden: int) -> list[Part]:
    width, heads = inner_width(keys, hidden), cache.tensors[2].parts
    remembered = max(keys.size("conv_kernel", "mamba_d_conv", "conv_kernel_size", default=4) - 1, 1)
    grouped = cache.tensors[1].parts * cache.tensors[1].size // remembered
    kernel = remembered + 2  # and its bias
    groups = cache.tensors[1].parts
    count = hidden * (2 * width + heads) + width * hidden + width * kernel
    return [
        Part("state", count),
        Part("state", (hidden + kernel) * grouped, groups),
        Part("norm", width + 3 * heads),
    ]


def _mamba(keys: Keys, hidden: int) -> list[Part]:
    width = inner_width(keys, hidden)
    states = keys.size("mamba_d_state", "state_size")
    rank = keys.count("mamba_dt_rank", "time_step_rank") or -(-hidden // 16)
    kernel = keys.size("mamba_d_conv", "conv_kernel", default=4) + 1
    count = 3 * hidden * width + width * kernel + width * (rank + 2 * states) + rank * width
    return [Part("state", count), Part("norm", width * (states + 2))]


def _per_layer_input(keys: Keys, hidden: int) -> tuple[Part, ...]:
    """Return gate and projection of each layer's own embedding (Gemma 3n and 4), and 3n's low-rank branch."""
    narrow, branch = keys.size("hidden_size_per_layer_input"), keys.size("laurel_rank")
    parts = (Part("mlp", 2 * hidden * narrow, WHOLE), Part("mlp", 2 * hidden * branch))
    return tuple(p for p in parts if p.count)


def drafts(keys: Keys) -> int:
    """Return the number of layers for multi-token prediction."""
    return keys.size("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")


def head_count(keys: Keys) -> int:
    """Return the heads of the model, at least one."""
    return keys.count(*HEADS) or 1


def parts(config: Mapping[str, object], hidden: int) -> tuple[Part, ...]:
    """Return the parameters of a config's towers, estimated from its keys."""
    folded = Keys.of(config).size("scale_factor", "pixel_shuffle_factor", default=1)
    counts = [_tower(keys, hidden, folded) for keys in _towers(config)]
    most = WHOLE if str(config.get("model_type") or "").startswith(COPIED) else None
    return tuple(Part("tower", n, most) for n in counts if n)


def pictures(config: Mapping[str, object]) -> Pictures | None:
    """Return what the encoder of pictures holds while it runs; ``None`` without a described one."""
    towers = _towers(config, "vis")
    return next((held for keys in towers if (held := _pictures(keys, Keys.of(config)))), None)


def _towers(config: Mapping[str, object], begin: str = "") -> list[Keys]:
    """Return the described towers, of the model and of Qwen-Omni's thinker, whose keys begin so."""
    names = [name for name in CONFIGS if name.startswith(begin)]
    owners = (config, mapping(config.get("thinker_config")))
    return [Keys.inside(o, name) for o in owners for name in names if isinstance(o.get(name), Mapping)]


def _pictures(keys: Keys, outer: Keys) -> Pictures | None:
    """Return the values of all patches of a token, in attention or in the feed-forward part, and pixels."""
    _, width = _size(keys)
    patch, merged = _patch(keys), keys.count("spatial_merge_size") or outer.size("spatial_merge_size")
    side = max(
        merged, keys.size("pooling_kernel_size"), outer.size("scale_factor", "pixel_shuffle_factor"), 1
    )
    patches, tokens = _positions(keys, patch), outer.size("mm_tokens_per_image")
    each = max(patches // tokens, 1) if patches and tokens and side == 1 else side**2
    fed = 2 * width + _matrices_of(keys) * _inner(keys, width)
    widest = max(7 * width, fed)  # in attention, and in the feed-forward part
    image = keys.size("image_size") // patch // side if patch else 0
    most = (image**2 or LARGEST) if merged > 1 else 0
    return Pictures(each * (widest + PIXELS * _pixels(keys, patch)), most) if width else None


def hinted(config: Mapping[str, object]) -> bool:
    """Return whether the name of any key hints at a tower."""
    return any(HINT.search(name) and value not in (None, False, {}) for name, value in config.items())


def _tower(keys: Keys, hidden: int, folded: int) -> int:
    depth, width = _size(keys)
    if not width:
        return 0
    layer = 4 * width * width + _matrices_of(keys) * width * _inner(keys, width) + 9 * width
    patch = _patch(keys)
    embedded = (_pixels(keys, patch) + _positions(keys, patch)) * width
    return depth * layer + embedded + _projection(keys, width, hidden, folded)


def _size(keys: Keys) -> tuple[int, int]:
    """Return the layers of a tower and their width; zeros where the keys do not say them."""
    depth, width = keys.size(*DEPTH), keys.count("embed_dim") or keys.size(*WIDTH)
    return (depth, width) if depth and width and depth <= MOST_LAYERS_OF_TOWER else (0, 0)


def _inner(keys: Keys, width: int) -> int:
    ratio = keys.get("mlp_ratio")
    times = ratio if isinstance(ratio, int | float) and 0 < ratio < 64 else 4
    return _glm(keys) or keys.count(*INNER) or int(width * times)


def _matrices_of(keys: Keys) -> int:
    return 3 if keys.word("hidden_act", "hidden_activation") in GATED or _gated_tower(keys) else 2


def _patch(keys: Keys) -> int:
    return keys.size("patch_size", "spatial_patch_size", default=14)


def _pixels(keys: Keys, patch: int) -> int:
    """Return the values of one patch, of all its channels and frames."""
    channels = keys.size("in_channels", "in_chans", "num_channels", default=3)
    return channels * patch * patch * keys.size("temporal_patch_size", default=1)


def _glm(keys: Keys) -> int | None:
    """Return the width of GLM-4V's blocks, equal to the output's; ``None`` for other models."""
    named = keys.size("intermediate_size") > 2 * keys.size(
        "out_hidden_size", default=keys.size("intermediate_size")
    )
    return keys.count("out_hidden_size") if named and keys.word("hidden_act") == "silu" else None


def _gated_tower(keys: Keys) -> bool:
    return keys.word("model_type") in {"gemma4_vision", "pixtral", "qwen2_5_vl"}


def _positions(keys: Keys, patch: int) -> int:
    count = keys.count("num_position_embeddings", "position_embedding_size")
    image = keys.count("image_size")
    return count or ((image // patch) ** 2 if image and patch else 0)


def _projection(keys: Keys, width: int, hidden: int, folded: int) -> int:
    """Return two matrices for merged patches; once more for each additional output layer (Qwen3-VL)."""
    if folded > 1:
        return width * folded**2 * hidden
    merged = keys.size("spatial_merge_size", default=1) ** 2 * width
    listed = keys.numbers("deepstack_visual_indexes")
    return (merged * merged + merged * keys.size("out_hidden_size", default=hidden)) * (1 + len(listed))
