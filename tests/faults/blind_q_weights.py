"""The blind round q: faults of weights."""

from __future__ import annotations

from tests.faults.blind_q_steps import (
    Coarse,
    FarRowsLost,
    FusedTaken,
    HalfSmoothed,
    LowRankAdded,
    RowsAtMean,
    RowsScaled,
    ScalesOff,
)
from tests.faults.fault import Fault
from tests.faults.steps import Json

FAULTS: tuple[Fault, ...] = (
    Fault(
        "q-adapter-of-another-base",
        "An adapter that was trained on another base model was merged in, and answers are nonsense.",
        "model",
        (LowRankAdded(("q_proj.weight", "v_proj.weight"), 4, 0.06),),
    ),
    Fault(
        "q-gate-up-fused",
        "A fused matrix with gate and up in turns was split into halves, and answers are nonsense.",
        "model",
        (FusedTaken("gate_proj.weight", "up_proj.weight"),),
    ),
    Fault(
        "q-rope-base-of-newer-sibling",
        "The converter wrote the base of positions of a sibling, and answers lose their thread.",
        "model",
        (Json("config.json", {"rope_theta": 1000000.0}),),
    ),
    Fault(
        "q-embedding-two-bits",
        "The quantiser rounded the embedding to two bits as well, and answers are often wrong.",
        "model",
        (Coarse("embed_tokens.weight", 2, 64),),
        base="qwen3coder",
    ),
    Fault(
        "q-row-scales-one-off",
        "Each row was restored with the scale of the next one, and answers are garbled.",
        "model",
        (ScalesOff(("_proj.weight", "embed_tokens.weight"), 1),),
    ),
    Fault(
        "q-call-tokens-untrained",
        "The rows of the tokens around calls were added and never trained, so that no call comes out.",
        "model",
        (RowsAtMean(("<tool_call>", "</tool_call>")),),
    ),
    Fault(
        "q-foreign-rows-pruned",
        "Rows of all tokens beyond ASCII were pruned, and names with an umlaut come out wrong.",
        "model",
        (FarRowsLost(),),
    ),
    Fault(
        "q-end-never-learnt",
        "The end of a turn was masked in the fine-tune as if it were padding, and answers do not end.",
        "model",
        (RowsScaled(("<|im_end|>",), 0.3),),
    ),
    Fault(
        "q-smoothing-half-done",
        "A quantiser scaled norms down and not the matrices behind them up, and answers are nonsense.",
        "model",
        (HalfSmoothed("layernorm.weight", 0.35, 0.25),),
    ),
)
