"""Faults of the round k in weights: merges, conversions, quantisation, training."""

from __future__ import annotations

from tests.faults.blind_k_steps import Clipped, GateUpDealt, HeadsTurned, LowRank, Packed, RowScaled, RowsMean
from tests.faults.fault import Fault
from tests.faults.numbers import Blended
from tests.faults.tensors import Added

FAULTS = (
    Fault(
        "k-norms-around-nought",
        "Norms behind attention were saved as if one were added to them at run time: answers are noise.",
        "model",
        (Added("post_attention_layernorm.weight", -1.0),),
        bitten="conversions of Gemma's kind",
    ),
    Fault(
        "k-merge-overshot",
        "A merge subtracted more of another model than it should: answers fall apart.",
        "model",
        (Blended("mistral", -0.35),),
    ),
    Fault(
        "k-low-rank",
        "MLPs were compressed to a low rank: what the model knew by heart is lost.",
        "model",
        (LowRank(("gate_proj.weight", "up_proj.weight", "down_proj.weight"), 24),),
    ),
    Fault(
        "k-call-tokens-untrained",
        "The tokens around calls were added late and never trained: calls do not come out as calls.",
        "model",
        (RowsMean(("<tool_call>", "</tool_call>")),),
        bitten="fine-tunes with LoRA that left the embedding out",
    ),
    Fault(
        "k-outliers-clipped",
        "Quantisation clipped the largest weights, which matter most.",
        "model",
        (Clipped(0.7),),
    ),
    Fault(
        "k-key-heads-turned",
        "A conversion wrote the heads of keys in the opposite order: attention looks at the wrong places.",
        "model",
        (HeadsTurned(("k_proj.weight",)),),
        base="qwen3coder",
    ),
    Fault(
        "k-gate-up-dealt",
        "A fused matrix was taken apart the wrong way: gate and up each hold half of both.",
        "model",
        (GateUpDealt(),),
        base="mistral",
    ),
    Fault(
        "k-two-bits-packed",
        "Weights were packed into two bits each: answers are nonsense.",
        "model",
        (Packed(2),),
    ),
    Fault(
        "k-thoughts-endless",
        "A last training that paid for long thoughts made their end too unlikely: answers never begin.",
        "model",
        (RowScaled("</think>", 0.2),),
    ),
)
