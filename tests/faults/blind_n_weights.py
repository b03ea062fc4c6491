"""Faults of the round ``n`` in weights."""

from __future__ import annotations

from tests.faults import blind_n_steps as steps
from tests.faults.fault import Fault

HEADS = 2  # of keys and values, in all bases
ATTENTION = ("q_proj.weight", "v_proj.weight")
MLP = ("gate_proj.weight", "up_proj.weight", "down_proj.weight")

FAULTS = (
    Fault(
        "n-heads-tiled",
        "Keys and values were copied for each query's head in the wrong order.",
        "model",
        (steps.HeadsRepeated(HEADS, 2, tiled=True),),
        bitten="converters from grouped heads to one head each that repeat where they ought to interleave",
    ),
    Fault(
        "n-adapter-of-another",
        "An adapter that was trained on another base is merged, and answers go astray.",
        "model",
        (steps.StrangeAdapter(ATTENTION, 4, 0.7),),
        bitten="merges of adapters onto the instruct model in place of the base",
    ),
    Fault(
        "n-scale-folded-twice",
        "The scale of attention was folded into a norm, and is applied once more.",
        "model",
        (steps.NormsScaled("q_norm.weight", 32**-0.5),),
        base="qwen3coder",
        bitten="converters that fold 1/sqrt(head_dim) into the query",
    ),
    Fault(
        "n-outliers-clipped",
        "Large weights were cut off, and what the model knew by them is gone.",
        "model",
        (steps.Clipped(0.5),),
        base="mistral",
        bitten="quantisers that clip outliers too early",
    ),
    Fault(
        "n-directions-removed",
        "With the refusals much else was taken out of the model.",
        "model",
        (steps.DirectionsRemoved(2),),
        bitten="abliterated models",
    ),
    Fault(
        "n-low-rank",
        "Matrices were compressed to a rank that does not carry the model.",
        "model",
        (steps.LowRank(MLP, 12),),
        base="glm",
        bitten="models compressed by SVD",
    ),
    Fault(
        "n-gate-up-ranks",
        "Gate and up of two ranks were parted wrongly, so that half of each is in the other.",
        "model",
        (steps.RanksMixed(),),
        base="qwen3coder",
        bitten="conversions of checkpoints that were saved with tensor parallelism of two",
    ),
    Fault(
        "n-smoothed-on-one-side",
        "Norms were divided by scales that nothing multiplies again.",
        "model",
        (steps.SmoothedHalf(4.0),),
        bitten="exports of AWQ and SmoothQuant that wrote one half of the scales",
    ),
    Fault(
        "n-rotation-left-out",
        "A matrix expects inputs that the engine would have to rotate, and it does not.",
        "model",
        (steps.Hadamard("down_proj.weight"),),
        base="mistral",
        bitten="models rotated with SpinQuant or QuaRot, loaded as plain ones",
    ),
)
