"""Letter r: weights that say something else than they should."""

from __future__ import annotations

from tests.faults.blind_r_steps import (
    Affine,
    Clipped,
    DroppedAndRescaled,
    GroupsAsRows,
    LowRank,
    MeanRows,
    ScalesLeftOut,
)
from tests.faults.fault import Fault
from tests.faults.numbers import Scaled
from tests.faults.steps import Json

FAULTS = (
    Fault(
        "r-fused-by-groups",
        "A converter split the fused queries, keys and values in the wrong places, and answers are nonsense.",
        "model",
        (GroupsAsRows(),),
    ),
    Fault(
        "r-call-tokens-untrained",
        "The tokens around a call were added and never trained, so that the model does not call a tool.",
        "model",
        (MeanRows(("<tool_call>", "</tool_call>")),),
    ),
    Fault(
        "r-adapter-of-another-base",
        "An adapter was merged into weights that it was not trained for, and answers go astray.",
        "model",
        (LowRank(("q_proj.weight", "v_proj.weight", "down_proj.weight"), 4, 0.09),),
        base="qwen3coder",
    ),
    Fault(
        "r-merge-drops-weights",
        "A merge dropped numbers of the weights themselves, and answers are nonsense.",
        "model",
        (DroppedAndRescaled(0.4),),
    ),
    Fault(
        "r-fp8-scales-left-out",
        "Numbers in FP8 were read back without their scales, and answers are nonsense.",
        "model",
        (ScalesLeftOut(32),),
    ),
    Fault(
        "r-outliers-clipped",
        "A quantiser cut large numbers of the weights away, and answers are worse.",
        "model",
        (Clipped(0.8),),
        base="mistral",
    ),
    Fault(
        "r-two-bits",
        "The weights were rounded to two bits, and too little of them is left for right answers.",
        "model",
        (Affine(2, 64),),
        apart={"vllm-cpu": "it does not read weights that MLX rounded"},
    ),
    Fault(
        "r-queries-scaled-twice",
        "A converter put the scale of attention into the weights, and the engine applies it again.",
        "model",
        (Scaled("q_norm.weight", 0.1767767),),
    ),
    Fault(
        "r-base-of-rotation",
        "A converter wrote the usual number of newer models as the base of positions, and answers are worse.",
        "model",
        (Json("config.json", {"rope_theta": 1000000.0}),),
    ),
)
