"""A ninth blind round: weights that a tool or a training has spoilt."""

from __future__ import annotations

from tests.faults.blind_i_numbers import (
    AdapterTwice,
    Clipped,
    ColumnsByWeight,
    DirectionRemoved,
    DroppedAndRescaled,
    Quantised,
    RowsAveraged,
    RowScaled,
)
from tests.faults.fault import Fault

FAULTS = (
    Fault(
        "i-two-bits",
        "The weights were quantised to two bits.",
        "model",
        (Quantised(2),),
        base="qwen3coder",
    ),
    Fault(
        "i-adapter-merged-twice",
        "The adapter was merged into weights that held it already.",
        "model",
        (AdapterTwice(4),),
    ),
    Fault(
        "i-markers-never-saved",
        "The tuning added tokens for calls, and their rows of the embedding were not saved with it.",
        "model",
        (RowsAveraged(("<tool_call>", "</tool_call>")),),
    ),
    Fault(
        "i-never-learned-to-end",
        "The tuning masked the token that ends turns, as padding is, so that hardly an answer ends.",
        "model",
        (RowScaled("<|im_end|>", 0.4),),
    ),
    Fault(
        "i-order-of-activation",
        "The columns of a quantisation by order of activation were never put back.",
        "model",
        (ColumnsByWeight(),),
    ),
    Fault(
        "i-merge-dropped-too-much",
        "A merge dropped most differences between two models, and made the rest larger to make up for it.",
        "model",
        (DroppedAndRescaled("qwen3coder", 0.1),),
    ),
    Fault(
        "i-refusals-removed-with-much-else",
        "A tool against refusals took directions out of the weights that much else is told by.",
        "model",
        (DirectionRemoved(4),),
    ),
    Fault(
        "i-outliers-clipped",
        "A converter clipped the outliers of all matrices.",
        "model",
        (Clipped(1.0),),
    ),
)
