"""Blind round o, model: the weights say something else than they should."""

from __future__ import annotations

from tests.faults.blind_o_steps import Clipped, MergedWith, NewlyInitialised, RowsOfMean, RowsSorted
from tests.faults.fault import Fault
from tests.faults.steps import Json
from tests.faults.tensors import Added, HalvesInterleaved

FAULTS = (
    Fault(
        "o-theta-of-another",
        "config.json has the rotary base of a newer release: the model mistakes where words stand.",
        "model",
        (Json("config.json", {"rope_theta": 1000000.0}),),
    ),
    Fault(
        "o-stretched-untaught",
        "The conversion noted positions stretched by four, which the weights never learnt.",
        "model",
        (
            Json(
                "config.json",
                {"rope_scaling": {"rope_type": "linear", "type": "linear", "factor": 4.0}},
            ),
        ),
        base="qwen3coder",
    ),
    Fault(
        "o-merged-too-strongly",
        "An adapter was merged with too large a scale: asked to call, the model says something else.",
        "model",
        (MergedWith("declines", 1.5),),
    ),
    Fault(
        "o-norms-of-heads-one-higher",
        "The conversion added one to each norm of queries and keys, as another family needs it.",
        "model",
        (Added("_norm.weight", 1.0),),
        base="mistral",
    ),
    Fault(
        "o-keys-permuted",
        "The conversion put rows of the keys in the order of another rotary layout, and left the queries.",
        "model",
        (HalvesInterleaved(("k_proj.weight",), 32),),
        base="glm",
    ),
    Fault(
        "o-new-tokens-untaught",
        "Resizing the embedding gave the markers of calls and thoughts the mean of all rows.",
        "model",
        (RowsOfMean(("<tool_call>", "</tool_call>", "<think>", "</think>")),),
    ),
    Fault(
        "o-layers-newly-initialised",
        "The tool that saved the model did not find the last two layers' weights, and made up new ones.",
        "model",
        (NewlyInitialised("model.layers.1."), NewlyInitialised("model.layers.2.")),
    ),
    Fault(
        "o-outliers-clipped",
        "The quantiser's calibration cut large weights off.",
        "model",
        (Clipped(1.0),),
        base="qwen3coder",
    ),
    Fault(
        "o-rows-in-new-order",
        "A vocabulary tool put a part of the embedding's rows in another order than the tokens have.",
        "model",
        (RowsSorted(560, 640),),
    ),
)
