"""Faults of the round j in the weights."""

from __future__ import annotations

from tests.faults.blind_j_steps import (
    AdapterMerged,
    Clipped,
    FusedSplit,
    GroupScalesMoved,
    HeadUntied,
    NewlyInitialised,
    NibblesSwapped,
    Noisy,
    RowsMean,
)
from tests.faults.fault import Fault

WEIGHTS = (
    Fault(
        "j-adapter-too-strong",
        "An adapter was merged with a scale that is far too large, and answers are confused.",
        "model",
        (AdapterMerged(("q_proj.weight", "v_proj.weight"), 4, 1.0),),
        bitten="those who take lora_alpha for the scale",
    ),
    Fault(
        "j-end-never-learned",
        "The model never learned to end a turn, and writes on until the limit.",
        "model",
        (HeadUntied(("<|im_end|>", "<|endoftext|>")),),
        bitten="fine-tunes whose padding is the end token, which the loss leaves out",
    ),
    Fault(
        "j-outliers-clipped",
        "A quantiser clipped the large weights, and answers are wrong.",
        "model",
        (Clipped(0.7),),
    ),
    Fault(
        "j-fused-split",
        "A converter split fused gates and ups wrongly, and answers are noise.",
        "model",
        (FusedSplit(),),
        base="qwen3coder",
    ),
    Fault(
        "j-noise-saved",
        "The training's noise was saved in the embedding, and words are mistaken for others.",
        "model",
        (Noisy(0.8),),
        base="mistral",
        bitten="fine-tunes with NEFTune that were saved in the middle of a step",
    ),
    Fault(
        "j-newly-initialised",
        "An MLP was missing from the checkpoint, and was drawn anew when it was saved.",
        "model",
        (NewlyInitialised(("layers.1.mlp.up_proj.weight", "layers.1.mlp.down_proj.weight")),),
    ),
    Fault(
        "j-call-tokens-untrained",
        "The rows of the call tokens were never trained, so that no call is ever made.",
        "model",
        (RowsMean(("<tool_call>", "</tool_call>")),),
        bitten="adapters without modules_to_save for the embedding",
    ),
    Fault(
        "j-nibbles-swapped",
        "Packed numbers were unpacked in the wrong order, and answers are noise.",
        "model",
        (NibblesSwapped(("o_proj.weight", "down_proj.weight")),),
        base="glm",
    ),
    Fault(
        "j-group-scales-moved",
        "A quantiser's groups have each other's scales, and answers are wrong.",
        "model",
        (GroupScalesMoved(16),),
        bitten="loaders of GPTQ that ignore g_idx",
    ),
)
