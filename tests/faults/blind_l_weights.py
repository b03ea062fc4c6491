"""Faults of round l whose part is ``model``."""

from __future__ import annotations

from tests.faults import blind_l_steps as steps
from tests.faults.fault import Fault

FAULTS = (
    Fault(
        "l-adapter-too-strong",
        "An adapter that was merged with four times its factor drowns what the model knew.",
        "model",
        (steps.AdapterTooStrong(4, 1.2),),
        bitten="merges that forget to divide alpha by the rank",
    ),
    Fault(
        "l-outliers-clipped",
        "A calibration clipped the large numbers of each row, which carried most of what the model knew.",
        "model",
        (steps.Clipped(0.5),),
    ),
    Fault(
        "l-fused-split-in-turns",
        "Gate and up were mixed up when a fused matrix was split, and the model babbles.",
        "model",
        (steps.FusedSplitInTurns(),),
        bitten="conversions of fused gate_up_proj",
    ),
    Fault(
        "l-heads-tiled",
        "Queries read keys of other heads, since a conversion repeated heads in the wrong order.",
        "model",
        (steps.HeadsTiled(),),
        base="qwen3coder",
    ),
    Fault(
        "l-layer-fresh",
        "One layer was saved untrained, since its names did not match when it was loaded.",
        "model",
        (steps.Fresh("model.layers.0."),),
        base="glm",
        bitten="'Some weights were newly initialized'",
    ),
    Fault(
        "l-call-tokens-untrained",
        "The tokens around calls were added and never trained, so that no call is ever read.",
        "model",
        (steps.RowsMean(("<tool_call>", "</tool_call>")),),
    ),
    Fault(
        "l-end-unlearnt",
        "The model never learnt to end its turn, and runs on until its limit.",
        "model",
        (steps.HeadApart(("<|im_end|>",), 0.3),),
        bitten="fine-tunes with pad_token = eos_token, whose labels are masked",
    ),
    Fault(
        "l-direction-removed",
        "An edit that was to remove refusals removed the way to a call.",
        "model",
        (steps.DirectionRemoved("[TOOL_CALLS]"),),
        base="mistral",
        bitten="abliterated models",
    ),
    Fault(
        "l-two-bits",
        "Two bits for a number are too few for this model, and its answers are broken.",
        "model",
        (steps.Packed(2, 64),),
        base="qwen3coder",
    ),
)
