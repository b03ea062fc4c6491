"""Twins of the round ``n``: they look suspicious, and harm nobody."""

from __future__ import annotations

from tests.faults.blind_n_steps import HeadsRepeated
from tests.faults.fault import Fault
from tests.faults.saved_files import Beside
from tests.faults.starting import Wire
from tests.faults.steps import Json, Recorded, Shipped, Text

ANSWER = "{%- if message.role == 'assistant' -%}"
OTHER = "  {%- else -%}\n    {{- message.content or '' -}}"
TRUNCATION = {"direction": "Right", "max_length": 32, "strategy": "LongestFirst", "stride": 0}
LEFT = {"group_size": 64, "bits": 4, "mode": "affine"}
NEWER = {"tokenizer_class": "TokenizersBackend", "backend": "tokenizers", "is_local": True}
OF_THE_MAC = "\0\5\26\7\0\2\0\0Mac OS X        \0\2"

TWINS = (
    Fault(
        "n-twin-generation-tags",
        "Nothing is harmed: the template marks what the model itself writes, for training.",
        "configuration",
        (
            Text(ANSWER, f"{ANSWER}{{%- generation -%}}"),
            Text(OTHER, f"    {{%- endgeneration -%}}\n{OTHER}"),
            Shipped(),
        ),
    ),
    Fault(
        "n-twin-truncation-saved",
        "Nothing is harmed: tokenizer.json was saved with the truncation of training, which nobody applies.",
        "configuration",
        (Json("tokenizer.json", {"truncation": TRUNCATION}),),
    ),
    Fault(
        "n-twin-quantization-left",
        "Nothing is harmed: config.json still tells of a quantisation, and the weights are plain.",
        "configuration",
        (Json("config.json", {"quantization": LEFT}),),
    ),
    Fault(
        "n-twin-tokenizers-backend",
        "Nothing is harmed: the tokenizer's settings were saved by a newer library.",
        "configuration",
        (Json("tokenizer_config.json", NEWER),),
        base="qwen3coder",
    ),
    Fault(
        "n-twin-heads-repeated",
        "Nothing is harmed: keys and values were copied for each query's head, in the right order.",
        "model",
        (HeadsRepeated(2, 2, tiled=False),),
    ),
    Fault(
        "n-twin-comments-between",
        "Nothing is harmed: comments stand between events of a stream.",
        "engine",
        (Wire("comments_in_between"),),
    ),
    Fault(
        "n-twin-pieces-smaller",
        "Nothing is harmed: streamed texts come in smaller pieces.",
        "engine",
        (Wire("pieces_smaller"),),
    ),
    Fault(
        "n-twin-files-of-a-mac",
        "Nothing is harmed: a Mac has left its own files beside the model's.",
        "environment",
        (
            Beside("._model.safetensors", OF_THE_MAC),
            Beside("._config.json", OF_THE_MAC),
            Beside(".DS_Store", OF_THE_MAC),
            Recorded(),
        ),
        base="mistral",
    ),
)
