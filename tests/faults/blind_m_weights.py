"""Faults of round m in the weights: quantised, merged, converted or trained badly."""

from __future__ import annotations

from tests.faults.blind_m_steps import (
    AdapterAdded,
    Clipped,
    DrawnAnew,
    Dropped,
    LowRank,
    RowsOfMean,
    RowsTurned,
    ScalesOfNeighbours,
    SmoothedInPart,
)
from tests.faults.fault import Fault

FAULTS: tuple[Fault, ...] = (
    Fault(
        "m-smoothed-in-part",
        "Scales for quantisation went into the norms and not into the matrices behind them.",
        "model",
        (SmoothedInPart(3.0),),
    ),
    Fault(
        "m-adapter-too-strong",
        "An adapter was merged with a scale that is far too large.",
        "model",
        (AdapterAdded(("q_proj.weight", "v_proj.weight"), 4, 0.7),),
    ),
    Fault(
        "m-outliers-clipped",
        "A quantiser clipped the large weights, which matter most.",
        "model",
        (Clipped(0.6),),
        "mistral",
    ),
    Fault(
        "m-shards-out-of-order",
        "The two parts of the gates were joined in the wrong order.",
        "model",
        (RowsTurned(("gate_proj.weight",)),),
    ),
    Fault(
        "m-scales-of-neighbours",
        "Groups of quantised weights were restored with the scale of the next group.",
        "model",
        (ScalesOfNeighbours(8),),
        "qwen3coder",
    ),
    Fault(
        "m-new-tokens-untrained",
        "The rows of the added tokens were never trained: no call and no thought is marked.",
        "model",
        (RowsOfMean((3, 4, 5, 6)),),
    ),
    Fault(
        "m-first-mlp-drawn",
        "Weights that a conversion did not find by name were drawn by chance.",
        "model",
        (DrawnAnew("model.layers.0.mlp."),),
    ),
    Fault(
        "m-rank-too-low",
        "Matrices were compressed to a rank that does not hold what the model knows.",
        "model",
        (LowRank(24),),
        "glm",
    ),
    Fault(
        "m-dropped-and-scaled",
        "A merge dropped weights by chance and enlarged the rest.",
        "model",
        (Dropped(0.25),),
    ),
)
