"""Harmless twins of a seventh round: a client gets the same from them."""

from __future__ import annotations

from tests.faults.blind_g_steps import TokenizerSays
from tests.faults.fault import Fault
from tests.faults.starting import Variable, Wire
from tests.faults.steps import Json, Shipped, Text

LEFT = {"group_size": 64, "bits": 4}
CUT = (
    '{"truncation": {"direction": "Right", "max_length": 64, "strategy": "LongestFirst", "stride": 0}, '
    '"padding": {"strategy": {"Fixed": 64}, "direction": "Left", "pad_to_multiple_of": null, '
    '"pad_id": 0, "pad_type_id": 0, "pad_token": "<|endoftext|>"}}'
)
SAYS = "{{- '<|im_start|>' ~ message.role ~ '\\n' -}}"
TURN = "{%- macro begin(who) -%}{{ '<|im_start|>' ~ who }}\n{% endmacro -%}\n{%- set headed"

TWINS = (
    Fault(
        "g-twin-padding-is-the-end",
        "A fine-tune made the token that ends a turn the one that pads.",
        "configuration",
        (
            Json("tokenizer_config.json", {"pad_token": "<|im_end|>"}),
            Json("config.json", {"pad_token_id": 2}),
        ),
    ),
    Fault(
        "g-twin-quantisation-left-in-config",
        "config.json tells of a quantisation; the weights were restored since, and have no scales.",
        "configuration",
        (Json("config.json", {"quantization": LEFT, "quantization_config": LEFT}),),
    ),
    Fault(
        "g-twin-lengths-of-training",
        "tokenizer.json was saved in the middle of a training, with truncation and padding to 64.",
        "configuration",
        (TokenizerSays(CUT),),
    ),
    Fault(
        "g-twin-class-of-another-family",
        "tokenizer_config.json names Llama's class; transformers sees that tokenizer.json is of another.",
        "configuration",
        (Json("tokenizer_config.json", {"tokenizer_class": "LlamaTokenizer"}),),
    ),
    Fault(
        "g-twin-turns-by-a-macro",
        "The template was tidied: a macro begins the turns, and the text is the same.",
        "configuration",
        (Text(SAYS, "{{- begin(message.role) -}}"), Text("{%- set headed", TURN), Shipped()),
    ),
    Fault(
        "g-twin-library-that-is-not-there",
        "LD_PRELOAD names a library that is not there: each process complains, and goes on.",
        "environment",
        (Variable("LD_PRELOAD", "/usr/lib/libjemalloc-none.so.2"),),
    ),
    Fault(
        "g-twin-comments-between-events",
        "A gateway writes comments between the events of a stream, and its costs into each answer.",
        "engine",
        (Wire("kept_alive"), Wire("costs_told")),
    ),
    Fault(
        "g-twin-arguments-indented",
        "A gateway writes the arguments of calls anew, with spaces and lines.",
        "engine",
        (Wire("arguments_indented"),),
    ),
)
