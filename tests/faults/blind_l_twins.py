"""Twins of round l: changes that look suspicious and harm nobody."""

from __future__ import annotations

from tests.faults.blind_l_steps import HeadApart, Packed
from tests.faults.fault import Fault
from tests.faults.saved_files import Beside
from tests.faults.starting import Variable, Wire
from tests.faults.steps import Json, Shipped, Text

HARMLESS = "Nothing is harmed."
LOOP = "{%- for message in messages[headed:] -%}\n  {{- '<|im_start|>' ~ message.role ~ '\\n' -}}"
MACRO = (
    "{%- macro opened(role) -%}{{- '<|im_start|>' ~ role ~ '\\n' -}}{%- endmacro -%}\n"
    "{%- for message in messages[headed:] -%}\n  {{- opened(message.role) -}}"
)
CUT = {"direction": "Right", "max_length": 512, "strategy": "LongestFirst", "stride": 0}

TWINS = (
    Fault(
        "l-twin-eight-bits",
        HARMLESS,
        "model",
        (Packed(8, 32),),
        bitten="nobody: the usual form of MLX's models",
    ),
    Fault(
        "l-twin-head-apart",
        HARMLESS,
        "model",
        (HeadApart(),),
        base="mistral",
        bitten="nobody: exports that untie",
    ),
    Fault("l-twin-macro", HARMLESS, "configuration", (Text(LOOP, MACRO), Shipped())),
    Fault(
        "l-twin-truncation-saved",
        HARMLESS,
        "configuration",
        (Json("tokenizer.json", {"truncation": CUT}),),
        base="qwen3coder",
        bitten="nobody: what training scripts leave in tokenizer.json",
    ),
    Fault("l-twin-told-by-gateway", HARMLESS, "engine", (Wire("l_told_by_gateway"),)),
    Fault("l-twin-comments-between", HARMLESS, "engine", (Wire("l_comments_between"),), base="glm"),
    Fault(
        "l-twin-variables",
        HARMLESS,
        "environment",
        (
            Variable("OMP_NUM_THREADS", "1"),
            Variable("TOKENIZERS_PARALLELISM", "false"),
            Variable("HF_HUB_OFFLINE", "1"),
            Variable("PYTHONUNBUFFERED", "1"),
        ),
    ),
    Fault(
        "l-twin-notes-beside",
        HARMLESS,
        "environment",
        (
            Beside(".DS_Store", "Bud1"),
            Beside("._model.safetensors", "Mac OS X"),
            Beside("notes.txt", "Try again with rope_theta 1e6?"),
            Beside("logs/train.log", "step 1 loss 7.1\n"),
        ),
        base="qwen3coder",
    ),
)
