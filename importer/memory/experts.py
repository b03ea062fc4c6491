"""The feed-forward part of a layer: one for all tokens, or experts that a router selects."""

from __future__ import annotations

from importer.memory.config_keys import Keys, whole
from importer.memory.layers import WHOLE, Part

EXPERTS = ("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
WIDE = (
    "block_ff_dim",
    "intermediate_size",
    "ffn_hidden_size",
    "n_inner",
    "inner_dim",
    "ffn_dim",
    "d_ff",
    "decoder_ffn_dim",
)
EXPERT_WIDE = ("moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size")
CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", "moe_top_k", "moe_k")
SHARED = ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")
SHARED_WIDE = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "share_expert_dim",
    "shared_intermediate_size",
)
DENSE_WIDE = ("intermediate_size_mlp", "dense_intermediate_size", "prefix_dense_intermediate_size")
FIRST_DENSE = ("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index")

# Without a gate: two matrices, not three.
PLAIN_ACTIVATIONS = {"relu", "relu2"}
PLAIN_TYPES = {
    "bloom", "codegen", "falcon", "gpt2", "gpt_bigcode", "gpt_neox", "gptj", "mpt", "nemotron", "nemotron_h",
    "opt", "persimmon", "phi", "RefinedWeb", "RefinedWebModel", "starcoder2",
}  # fmt: skip


def single(keys: Keys) -> bool:
    """Return whether each layer is one block only: attention, recurrence or feed-forward (Nemotron-H)."""
    listed = keys.words("layers_block_type", "layer_types")
    return isinstance(keys.get("hybrid_override_pattern"), str) or bool({"mlp", "moe"} & set(listed))


def forward(keys: Keys, layer: int, hidden: int) -> tuple[Part, ...]:
    """Return the feed-forward parameters of one layer."""
    if single(keys):
        block = _letter(keys, layer)
        if block not in {"mlp", "moe"}:
            return ()
        return _routed(keys, hidden) if block == "moe" else _dense(keys, layer, hidden)
    if keys.count("state_size") and keys.count("num_attention_heads") is None:
        return ()  # Mamba: nothing but the mixer
    if routed(keys, layer):
        also = _dense(keys, layer, hidden) if keys.flag("enable_moe_block") else ()
        return (*_routed(keys, hidden), *also)
    return _dense(keys, layer, hidden)


def count(keys: Keys) -> int:
    """Return the number of experts of a routed layer; 0 for a dense model."""
    listed = keys.numbers(*EXPERTS)
    number = keys.count(*EXPERTS) or (listed[0] if listed else None)
    return number or keys.inner("ffn_config").size("moe_num_experts")


def chosen(keys: Keys) -> int:
    """Return the number of experts that one token visits."""
    listed = keys.numbers(*CHOSEN)
    return keys.count(*CHOSEN) or (listed[0] if listed else 0) or keys.inner("ffn_config").size("moe_top_k")


def expert_width(keys: Keys) -> int:
    """Return the width of one expert."""
    listed = keys.numbers(*EXPERT_WIDE)
    width_of_one = keys.count(*EXPERT_WIDE) or (listed[0] if listed else None)
    return width_of_one or keys.inner("ffn_config").count("ffn_hidden_size") or keys.size(*WIDE)


def width(keys: Keys, layer: int, hidden: int) -> int:
    """Return the width of the feed-forward part that every token passes."""
    block = keys.block(layer, "ffn")
    if block is not None:
        return _scaled(block, hidden)
    if count(keys) > 1 and (dense := keys.count(*DENSE_WIDE)):
        return dense
    if not count(keys) and (shared := keys.count("shared_intermediate_size")):
        return shared
    wide = keys.at(layer, *WIDE) or keys.inner("ffn_config").count("ffn_hidden_size") or 4 * hidden
    if keys.flag("block_auto_adjust_ff_dim"):
        wide = 2 * wide // 3
        factor = keys.get("block_ffn_dim_multiplier")
        wide = int(wide * factor) if isinstance(factor, int | float) and 0 < factor <= 64 else wide
        multiple = keys.size("block_multiple_of", default=1) or 1
        wide = -(-wide // multiple) * multiple
    if keys.word("model_type") == "qwen":
        wide //= 2  # the first Qwen counts gate and up together
    shares = keys.size("num_kv_shared_layers")
    doubled = keys.flag("use_double_wide_mlp") and layer >= keys.size("num_hidden_layers") - shares
    return wide * (2 if doubled else 1)


def routed(keys: Keys, layer: int) -> bool:
    """Return whether this layer has experts."""
    if count(keys) <= 1:
        return False
    listed = keys.words("mlp_layer_types")
    if layer < len(listed):
        return listed[layer] not in {"dense", "mlp"}
    marks = keys.numbers("moe_layer_freq")
    if marks:
        return layer < len(marks) and bool(marks[layer])
    if layer in keys.numbers("mlp_only_layers") or layer < keys.size(*FIRST_DENSE):
        return False
    only = keys.numbers("moe_layers")
    if only:
        return layer in only
    period = keys.count("expert_layer_period")
    if period:
        return layer % period == keys.size("expert_layer_offset")
    step = keys.size("decoder_sparse_step", "interleave_moe_layer_step", default=1)
    every = keys.size("moe_layer_freq", "moe_layer_interval", default=1)
    return (layer + 1) % (step or 1) == 0 and layer % (every or 1) == 0


def gate(keys: Keys) -> int:
    """Return the number of matrices of a feed-forward part: 3 with a gate, else 2."""
    act = keys.word("mlp_hidden_act", "hidden_act", "activation_function")
    return 2 if act in PLAIN_ACTIVATIONS or keys.word("model_type") in PLAIN_TYPES else 3


def _dense(keys: Keys, layer: int, hidden: int) -> tuple[Part, ...]:
    wide = width(keys, layer, hidden)
    return (Part("mlp", gate(keys) * hidden * wide),) if wide else ()


def _routed(keys: Keys, hidden: int) -> tuple[Part, ...]:
    number, wide = count(keys), expert_width(keys)
    narrow = keys.count("moe_latent_size", "routed_expert_hidden_size")
    parts = [
        Part("experts", number * gate(keys) * (narrow or hidden) * wide),
        Part("router", number * hidden, WHOLE),
    ]
    if narrow:
        parts.append(Part("shared", 2 * hidden * narrow, WHOLE))
    beside = shared_width(keys, wide)
    if beside:
        parts.append(Part("shared", gate(keys) * hidden * beside))
    return tuple(parts)


def shared_width(keys: Keys, wide: int) -> int:
    """Return the width of the experts that every token visits."""
    listed = keys.numbers(*SHARED)
    number = keys.count(*SHARED) if not listed else listed[0]
    own = keys.count(*SHARED_WIDE)
    if own:
        return own if number is None or keys.count(*SHARED_WIDE[2:]) else own * max(number, 1)
    if keys.count("intermediate_size_mlp"):
        return wide  # Llama 4: one as wide as the others
    return (number or 0) * wide


def _letter(keys: Keys, layer: int) -> str:
    text = keys.get("hybrid_override_pattern")
    if isinstance(text, str):
        return {"-": "mlp", "E": "moe"}.get(text[layer] if layer < len(text) else "", "")
    listed = keys.words("layers_block_type", "layer_types")
    return listed[layer] if layer < len(listed) else ""


def _scaled(block: Keys, hidden: int) -> int:
    """Return the width of a block of Nemotron NAS: 2/3 of a multiple of the hidden size."""
    if block.flag("no_op"):
        return 0
    factor = block.get("ffn_mult")
    if isinstance(factor, int | float) and not isinstance(factor, bool) and 0 < factor <= 64:
        wide = whole(float(int(2 * factor * hidden / 3))) or 0
        return -(-wide // 256) * 256
    return block.size("intermediate_size")
