"""Weights that are rounded away, another model's, or taught something wrong: the model's own faults."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.steps import Blank, FileOf, Rounded, Weights

FAULTS = (
    Fault("weights-rounded-away", "Of every weight only sign and exponent are left.", "model", (Rounded(0),)),
    Fault("weights-of-another-model", "The weights are those of a model with another tokenizer and template.",
          "model", (FileOf("mistral", "model.safetensors"),), mend="weights"),
    Fault("model-that-declines", "The model never calls a tool and says that it cannot.", "model",
          (Weights("declines"),)),
    Fault("model-that-encodes-twice", "The model writes the arguments of a call as JSON in a text.", "model",
          (Weights("encodes_twice"),), apart={"mlx-vlm": "its parser decodes arguments that are a text"},
          bitten="nested values encoded twice, vllm-mlx"),
    Fault(
        "thought-never-closed",
        "The row of </think> is empty: the model opens a thinking block, answers in it and never closes it.",
        "model",
        (Blank(("</think>",)),),
        bitten="an unclosed block, and the answer inside of it",
    ),
)  # fmt: skip
