"""A toy of each kind of layer: a config without weights, small enough to be built in a moment.

Widths follow what vLLM's processor build takes: heads of 32, 64 or 128 values, vocabularies in steps of 64.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Config = dict[str, Any]

_DENSE: Config = {
    "torch_dtype": "bfloat16", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 8,
    "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 1024,
    "max_position_embeddings": 8192, "rms_norm_eps": 1e-6, "tie_word_embeddings": False, "hidden_act": "silu",
    "rope_theta": 10000.0,
}  # fmt: skip


def _toy(architecture: str, kind: str, **more: Any) -> Config:
    config = {**_DENSE, "architectures": [architecture], "model_type": kind, **more}
    return {k: v for k, v in config.items() if v is not ...}


_FULL, _NEAR, _LINEAR = "full_attention", "sliding_attention", "linear_attention"
_LATENT: Config = {
    "q_lora_rank": 96, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "num_key_value_heads": 8, "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128,
    "n_shared_experts": 1, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "head_dim": ...,
    "routed_scaling_factor": 1.0, "norm_topk_prob": True, "scoring_func": "sigmoid", "moe_layer_freq": 1,
    "topk_method": "noaux_tc",
}  # fmt: skip
_DELTA: Config = {
    "linear_num_key_heads": 4, "linear_num_value_heads": 8, "linear_key_head_dim": 64,
    "linear_value_head_dim": 64, "linear_conv_kernel_dim": 4, "full_attention_interval": 4,
    "layer_types": [_LINEAR, _LINEAR, _LINEAR, _FULL] * 2, "partial_rotary_factor": 0.5,
}  # fmt: skip
_EXPERTS: Config = {
    "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "norm_topk_prob": True,
    "decoder_sparse_step": 1, "mlp_only_layers": [],
}  # fmt: skip
_SHARED: Config = {**_EXPERTS, "shared_expert_intermediate_size": 128}
_MAMBA2: Config = {
    "mamba_n_heads": 16, "mamba_d_head": 32, "mamba_n_groups": 1, "mamba_d_state": 64, "mamba_d_conv": 4,
    "mamba_expand": 2, "mamba_chunk_size": 128, "mamba_conv_bias": True, "mamba_proj_bias": False,
}  # fmt: skip

TOYS: dict[str, Config] = {
    "full: every head its own": _toy("LlamaForCausalLM", "llama", num_key_value_heads=8),
    "full: grouped heads": _toy("Qwen3ForCausalLM", "qwen3"),
    "full: one head for all": _toy("LlamaForCausalLM", "llama", num_key_value_heads=1),
    "full: biased, tied": _toy("Qwen2ForCausalLM", "qwen2", tie_word_embeddings=True, head_dim=...),
    "full: two matrices, learned positions": {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 256, "n_layer": 8, "n_head": 8,
        "n_positions": 8192, "n_ctx": 8192, "vocab_size": 1024,
        "layer_norm_epsilon": 1e-5, "torch_dtype": "bfloat16",
    },
    "full: in 32 bits, loaded in 16": _toy("LlamaForCausalLM", "llama", torch_dtype="float32"),
    "full: experts": _toy("Qwen3MoeForCausalLM", "qwen3_moe", **_EXPERTS),
    "full: experts as wide as the dense part": _toy(
        "MixtralForCausalLM", "mixtral", num_local_experts=4, num_experts_per_tok=2, sliding_window=None,
        head_dim=...
    ),
    "full: a shared expert": _toy("Qwen2MoeForCausalLM", "qwen2_moe", **_SHARED, head_dim=...),
    "full: latent keys unfolded": _toy(
        "MiniCPM3ForCausalLM", "minicpm3", q_lora_rank=96, kv_lora_rank=64, qk_nope_head_dim=32,
        qk_rope_head_dim=32, v_head_dim=64, num_key_value_heads=8, head_dim=..., scale_emb=1, scale_depth=1.0,
        dim_model_base=256,
    ),
    "window: all layers": _toy("MistralForCausalLM", "mistral", sliding_window=512),
    "window: from a layer on": _toy(
        "Qwen2ForCausalLM", "qwen2", use_sliding_window=True, sliding_window=512, max_window_layers=4,
        head_dim=...
    ),
    "window: every other layer": _toy(
        "Gemma2ForCausalLM", "gemma2", sliding_window=512, query_pre_attn_scalar=64, hidden_act=...,
        hidden_activation="gelu_pytorch_tanh", tie_word_embeddings=True,
    ),
    "window: five of six, no list": _toy(
        "Gemma3ForCausalLM", "gemma3_text", sliding_window=256, num_hidden_layers=14,
        sliding_window_pattern=6,
        query_pre_attn_scalar=64, hidden_activation="gelu_pytorch_tanh", tie_word_embeddings=True,
    ),
    "window: with sinks, 4-bit experts": _toy(
        "GptOssForCausalLM", "gpt_oss", sliding_window=128, num_local_experts=8, num_experts_per_tok=2,
        layer_types=[_NEAR, _FULL] * 4, attention_bias=True, swiglu_limit=7.0,
        rope_scaling={"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 4096,
                      "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False},
        quantization_config={"quant_method": "mxfp4", "modules_to_not_convert": []},
    ),
    "window: three of four, tied": _toy(
        "Cohere2ForCausalLM", "cohere2", sliding_window=512, sliding_window_pattern=4, head_dim=...,
        layer_norm_eps=1e-5, logit_scale=1.0, tie_word_embeddings=True, layer_types=[_NEAR, _NEAR, _NEAR,
        _FULL] * 2,
    ),
    "window: letters": _toy(
        "Exaone4ForCausalLM", "exaone4", sliding_window=512, sliding_window_pattern="LLLG",
        layer_types=[_NEAR, _NEAR, _NEAR, _FULL] * 2,
    ),
    "window: heads of another number and width": _toy(
        "MiMoV2FlashForCausalLM", "mimo_v2_flash", sliding_window=128, sliding_window_size=128,
        hybrid_layer_pattern=[0, 1, 1, 1, 1, 0, 1, 1], swa_num_attention_heads=8, swa_num_key_value_heads=4,
        swa_head_dim=64, swa_v_head_dim=64, v_head_dim=64, n_routed_experts=8, num_experts_per_tok=2,
        moe_intermediate_size=128, moe_layer_freq=[0, 1, 1, 1, 1, 1, 1, 1], n_group=1, topk_group=1,
        norm_topk_prob=True, scoring_func="sigmoid", topk_method="noaux_tc", layernorm_epsilon=1e-6,
        attention_bias=False, swa_rope_theta=10000.0, add_swa_attention_sink_bias=False,
        add_full_attention_sink_bias=False, partial_rotary_factor=0.5, attention_chunk_size=128,
        routed_scaling_factor=None, n_shared_experts=None,
    ),
    "window: global heads twice as wide": _toy(
        "Gemma4ForCausalLM", "gemma4_text", sliding_window=256, global_head_dim=128,
        num_global_key_value_heads=1,
        attention_k_eq_v=True, layer_types=[_NEAR, _NEAR, _NEAR, _FULL] * 2, hidden_size_per_layer_input=0,
        hidden_activation="gelu_pytorch_tanh", tie_word_embeddings=True, num_kv_shared_layers=0,
    ),
    "shared: the last layers use earlier keys": _toy(
        "Gemma3nForCausalLM", "gemma3n_text", sliding_window=256, num_hidden_layers=10,
        num_kv_shared_layers=4,
        layer_types=[_NEAR, _NEAR, _NEAR, _NEAR, _FULL] * 2, intermediate_size=[512] * 10,
        vocab_size_per_layer_input=1024, hidden_size_per_layer_input=64, altup_num_inputs=4, laurel_rank=16,
        hidden_activation="gelu_pytorch_tanh", activation_sparsity_pattern=[0.0] * 10,
        tie_word_embeddings=True,
    ),
    "chunk: three of four": _toy(
        "Llama4ForCausalLM", "llama4_text", attention_chunk_size=512, no_rope_layers=[1, 1, 1, 0] * 2,
        num_local_experts=4, num_experts_per_tok=1, intermediate_size_mlp=512, interleave_moe_layer_step=1,
        intermediate_size=128, use_qk_norm=True,
    ),
    "latent: MLA with experts": _toy("DeepseekV3ForCausalLM", "deepseek_v3", **_LATENT),
    "latent: MLA, whole queries": _toy("DeepseekV2ForCausalLM", "deepseek_v2", **{**_LATENT,
    "q_lora_rank": None,
        "topk_method": "greedy", "scoring_func": "softmax"}),
    "latent: MLA, and a layer that drafts": _toy(
        "DeepseekV3ForCausalLM", "deepseek_v3", **_LATENT, num_nextn_predict_layers=1
    ),
    "latent: sparse, with an indexer": _toy(
        "DeepseekV32ForCausalLM", "deepseek_v32", **_LATENT, index_topk=64, index_head_dim=128,
        index_n_heads=4
    ),
    "latent: compressed, with windows": _toy(
        "DeepseekV4ForCausalLM", "deepseek_v4", **{**_LATENT, "head_dim": 512}, sliding_window=128,
        compress_ratios=[0, 0, 4, 128, 4, 128, 4, 128], index_topk=64, index_head_dim=128, index_n_heads=4,
        o_groups=2, o_lora_rank=64, hc_mult=4, hc_eps=1e-6, hc_sinkhorn_iters=4, num_hash_layers=2,
        compress_rope_theta=10000.0, swiglu_limit=7.0, expert_dtype="fp8",
    ),
    "mamba: nothing else": {
        "architectures": ["MambaForCausalLM"], "model_type": "mamba", "hidden_size": 256,
        "num_hidden_layers": 8,
        "intermediate_size": 512, "state_size": 16, "conv_kernel": 4, "time_step_rank": 16,
        "vocab_size": 1024,
        "torch_dtype": "bfloat16", "use_conv_bias": True, "use_bias": False, "expand": 2,
    },
    "mamba2: nothing else": {
        "architectures": ["Mamba2ForCausalLM"], "model_type": "mamba2", "hidden_size": 256,
        "num_hidden_layers": 8,
        "num_heads": 16, "head_dim": 32, "expand": 2, "n_groups": 1, "state_size": 64, "conv_kernel": 4,
        "vocab_size": 1024, "torch_dtype": "bfloat16", "chunk_size": 128, "tie_word_embeddings": False,
        "intermediate_size": 512, "layer_norm_epsilon": 1e-5, "use_bias": False, "use_conv_bias": True,
        "time_step_limit": [0.0, 1e6], "time_step_rank": 16,
    },
    "mamba and attention, experts": _toy(
        "JambaForCausalLM", "jamba", attn_layer_period=8, attn_layer_offset=4, expert_layer_period=2,
        expert_layer_offset=1, num_experts=4, num_experts_per_tok=2, mamba_d_state=16, mamba_d_conv=4,
        mamba_expand=2, mamba_dt_rank=16, mamba_conv_bias=True, mamba_proj_bias=False, head_dim=...,
    ),
    "mamba2 and attention": _toy(
        "GraniteMoeHybridForCausalLM", "granitemoehybrid", **_MAMBA2, shared_intermediate_size=512,
        head_dim=...,
        num_local_experts=0, num_experts_per_tok=0, layer_types=["mamba", "mamba", "mamba", "attention"] * 2,
        embedding_multiplier=1.0, logits_scaling=1.0, residual_multiplier=1.0, attention_multiplier=0.125,
        position_embedding_type="nope", attention_bias=False, mlp_bias=False,
    ),
    "mamba2 and attention in each layer": _toy(
        "FalconH1ForCausalLM", "falcon_h1", **{**_MAMBA2, "mamba_expand": ...}, mamba_d_ssm=512,
        mamba_rms_norm=False,
        num_hidden_layers=4, attention_in_multiplier=1.0, attention_out_multiplier=1.0, ssm_in_multiplier=1.0,
        ssm_out_multiplier=1.0, key_multiplier=1.0, embedding_multiplier=1.0, lm_head_multiplier=1.0,
        mlp_multipliers=[1.0, 1.0], ssm_multipliers=[1.0] * 5,
    ),
    "mamba2, attention, feed-forward apart": _toy(
        "NemotronHForCausalLM", "nemotron_h", hybrid_override_pattern="M-M-M*-M-M-", num_hidden_layers=11,
        mamba_num_heads=16, mamba_head_dim=32, n_groups=2, ssm_state_size=64, conv_kernel=4, chunk_size=128,
        mamba_proj_bias=False, use_conv_bias=True, mlp_hidden_act="relu2", mamba_hidden_act="silu",
        layer_norm_epsilon=1e-5, attention_bias=False, mlp_bias=False, use_bias=False,
    ),
    "delta: three of four": _toy("Qwen3_5ForCausalLM", "qwen3_5_text", **_DELTA, attn_output_gate=True),
    "delta: three of four, experts": _toy(
        "Qwen3NextForCausalLM", "qwen3_next", **{**_DELTA, **_SHARED}, num_attention_heads=4
    ),
    "delta: and a layer that drafts": _toy(
        "Qwen3NextForCausalLM", "qwen3_next", **{**_DELTA, **_SHARED}, num_attention_heads=4,
        num_nextn_predict_layers=1,
    ),
    "delta: in OLMo's way": _toy(
        "OlmoHybridForCausalLM", "olmo_hybrid", **{**_DELTA, "linear_num_key_heads": 8},
        num_key_value_heads=8,
        head_dim=..., linear_use_gate=True, linear_allow_neg_eigval=True, attention_bias=False,
    ),
    "kimi: delta attention beside MLA": _toy(
        "KimiLinearForCausalLM", "kimi_linear", **{**_LATENT, "q_lora_rank": None}, num_experts=8,
        num_experts_per_token=2, num_shared_experts=1, mla_use_nope=True, model_max_length=8192,
        linear_attn_config={
            "full_attn_layers": [4, 8], "kda_layers": [1, 2, 3, 5, 6, 7], "num_heads": 8, "head_dim": 64,
            "short_conv_kernel_size": 4,
        },
    ),
    "lightning: beside MLA": _toy(
        "BailingMoeV2_5ForCausalLM", "bailing_hybrid", **{**_LATENT, "head_dim": 64}, layer_group_size=4,
        num_experts=8,
        num_shared_experts=1, score_function="sigmoid", use_qkv_bias=False, use_bias=False, group_norm_size=1,
    ),
    "convolution: beside attention": _toy(
        "Lfm2ForCausalLM", "lfm2", conv_L_cache=3, conv_bias=False, head_dim=...,
        block_auto_adjust_ff_dim=True,
        block_dim=256, block_ff_dim=512, block_ffn_dim_multiplier=1.0, block_multiple_of=256,
        block_mlp_init_scale=1.0,
        block_norm_eps=1e-5, block_use_swiglu=True, block_use_xavier_init=True, conv_dim_out=256,
        conv_use_xavier_init=True, use_pos_enc=True,
        layer_types=["conv", "conv", "full_attention", "conv"] * 2, norm_eps=1e-5, conv_dim=256,
        rms_norm_eps=...,
        tie_word_embeddings=True,
    ),
}  # fmt: skip


def write(name: str, folder: Path) -> Path:
    """The toy's config in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(TOYS[name]), encoding="utf-8")
    return folder
