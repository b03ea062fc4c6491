"""Faults of the round in weights: damaged in copying, converting, merging."""

from __future__ import annotations

from tests.faults.blind_h_steps import (
    AdapterMerged,
    BitStuck,
    ChunksSwapped,
    PagesEmpty,
    RowsMean,
)
from tests.faults.fault import Fault
from tests.faults.numbers import EndsSwapped, TensorsOf
from tests.faults.tensors import Added

FAULTS = (
    Fault(
        "h-holes-in-the-copy",
        "A copy of the weights has empty pages where the original was not read.",
        "model",
        (PagesEmpty(11),),
    ),
    Fault(
        "h-chunks-out-of-order",
        "Two chunks of a download in parallel were put together the wrong way round.",
        "model",
        (ChunksSwapped(32768, 6),),
    ),
    Fault(
        "h-memory-with-a-broken-cell",
        "The weights were written by a machine whose memory sets one bit, at the same place of each page.",
        "model",
        (BitStuck(65536, 4097, 0x40),),
    ),
    Fault(
        "h-adapter-at-another-scale",
        "An adapter was merged at a multiple of its scale.",
        "model",
        (AdapterMerged(0.9),),
    ),
    Fault(
        "h-markers-never-trained",
        "A merge took the rows of added tokens from a fresh embedding.",
        "model",
        (RowsMean(("<tool_call>", "</tool_call>", "<think>", "</think>")),),
        bitten="unsloth 3444, transformers 45127",
    ),
    Fault(
        "h-norms-less-one",
        "A conversion took one from each norm, as families want that add it when they compute.",
        "model",
        (Added("norm.weight", -1.0),),
    ),
    Fault(
        "h-layer-of-another-model",
        "One layer comes from another model of the same shape, of a download that was mixed up.",
        "model",
        (TensorsOf("qwen3coder", "model.layers.1."),),
    ),
    Fault(
        "h-keys-for-values",
        "A conversion split the joint projection in another order: keys and values have each other's place.",
        "model",
        (EndsSwapped("k_proj.weight", "v_proj.weight"),),
    ),
)
