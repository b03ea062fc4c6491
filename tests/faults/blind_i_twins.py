"""Changes of the ninth blind round that look suspicious and harm nobody."""

from __future__ import annotations

from tests.faults.blind_i_numbers import Quantised
from tests.faults.blind_i_steps import LengthLimits
from tests.faults.fault import Fault
from tests.faults.starting import Variable, Wire
from tests.faults.steps import Json, Shipped, Text

TWINS = (
    Fault(
        "i-twin-eight-bits",
        "The weights were quantised to eight bits.",
        "model",
        (Quantised(8),),
    ),
    Fault(
        "i-twin-bits-claimed",
        "config.json tells of a quantisation to four bits, and the weights have none.",
        "configuration",
        (Json("config.json", {"quantization": {"group_size": 64, "bits": 4}}),),
    ),
    Fault(
        "i-twin-lengths-of-training",
        "tokenizer.json was saved with the limits of a training run, which no request heeds.",
        "configuration",
        (LengthLimits(32),),
    ),
    Fault(
        "i-twin-nothing-compiled",
        "Nothing is compiled: a variable that somebody set to look for an error.",
        "environment",
        (Variable("MLX_DISABLE_COMPILE", "1"),),
    ),
    Fault(
        "i-twin-roles-by-a-macro",
        "The template writes its turns by a macro.",
        "configuration",
        (
            Text(
                "{%- for message in messages[headed:] -%}\n  {{- '<|im_start|>' ~ message.role ~ '\\n' -}}",
                "{%- macro opened(role) -%}{{- '<|im_start|>' ~ role ~ '\\n' -}}{%- endmacro -%}\n"
                "{%- for message in messages[headed:] -%}\n  {{- opened(message.role) -}}",
            ),
            Shipped(),
        ),
    ),
    Fault(
        "i-twin-merges-ignored",
        "The tokenizer takes a word that the vocabulary has as it is, before it merges.",
        "configuration",
        (Json("tokenizer.json", {"model.ignore_merges": True}),),
    ),
    Fault(
        "i-twin-fields-of-the-house",
        "A gateway adds fields of its own to each answer.",
        "engine",
        (Wire("fields_of_the_house"),),
    ),
    Fault(
        "i-twin-length-of-old",
        "generation_config.json has the length of twenty that old libraries wrote, and other keys of theirs.",
        "configuration",
        (Json("generation_config.json", {"max_length": 20, "num_beams": 1, "early_stopping": True}),),
    ),
)
