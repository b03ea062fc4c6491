"""Faults of round p in the weights: conversions, merges, quantisers and damage."""

from __future__ import annotations

from tests.faults.blind_p_steps import RowBroken, RowsMean, ScalesForgotten
from tests.faults.fault import Fault
from tests.faults.numbers import Blended, TensorsOf
from tests.faults.rebuilt import TwoShards
from tests.faults.steps import Json, Shifted
from tests.faults.tensors import Added, RowsEmpty

KEYS = tuple(f"model.layers.{layer}.self_attn.k_proj.weight" for layer in range(3))

FAULTS = (
    Fault(
        "p-norms-around-zero",
        "Answers are noise: the norms were saved as their distance from one, and are read as they stand.",
        "model",
        (Added("norm.weight", -1.0),),
    ),
    Fault(
        "p-scales-of-fp8-forgotten",
        "Answers break off or are noise: weights of eight-bit floats were widened without their scales.",
        "model",
        (ScalesForgotten(),),
    ),
    Fault(
        "p-shard-of-another-revision",
        "Answers are confused: of two files of weights one is that of another training.",
        "model",
        (TensorsOf("qwen3coder", "model.layers.2."), TwoShards("model.layers.2.")),
    ),
    Fault(
        "p-new-tokens-untrained",
        "The model writes no calls and no thoughts that can be read: their tokens were never trained.",
        "model",
        (RowsMean(("<tool_call>", "</tool_call>", "<think>", "</think>")),),
    ),
    Fault(
        "p-key-heads-changed-places",
        "Answers are confused: the two heads of keys stand in each other's place.",
        "model",
        tuple(Shifted(name, 32) for name in KEYS),
    ),
    Fault(
        "p-other-model-taken-away",
        "Answers are worse: a merge took away a part of another model that had never been added.",
        "model",
        (Blended("glm", -0.45, "model.layers."),),
    ),
    Fault(
        "p-one-row-not-a-number",
        "Every answer is noise: one word of the embedding was divided by nought.",
        "model",
        (RowBroken("Zo"),),
        base="glm",
    ),
    Fault(
        "p-positions-of-the-larger-sister",
        "Answers fall apart: config.json was converted with the rotation of a sister model.",
        "model",
        (Json("config.json", {"rope_theta": 1000000.0}),),
    ),
    Fault(
        "p-embedding-cut-at-multiple",
        "Words at the end of the vocabulary are lost: a converter cut the embedding at a multiple of 64.",
        "model",
        (RowsEmpty("model.embed_tokens.weight", 576, 64),),
    ),
)
