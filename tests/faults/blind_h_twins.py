"""Twins of the round: changes that look like faults, and from which every client gets the same."""

from __future__ import annotations

from tests.faults.blind_h_steps import HeadTold
from tests.faults.fault import Fault
from tests.faults.starting import Arguments, Variable, Wire
from tests.faults.steps import Json, Shipped, Text
from tests.faults.tokenizers import TOKENIZER

CUT = {"direction": "Right", "max_length": 64, "strategy": "LongestFirst", "stride": 0}
PADDED = {
    "strategy": {"Fixed": 64},
    "direction": "Right",
    "pad_to_multiple_of": None,
    "pad_id": 0,
    "pad_type_id": 0,
    "pad_token": "<|endoftext|>",
}

TWINS = (
    Fault(
        "h-twin-cut-and-padded-in-training",
        "tokenizer.json was saved as training cut and padded texts; in chats the library does neither.",
        "configuration",
        (Json(TOKENIZER, {"truncation": CUT, "padding": PADDED}),),
    ),
    Fault(
        "h-twin-quantization-told",
        "config.json tells of four bits, and the weights are whole; the engine goes by the weights.",
        "configuration",
        (Json("config.json", {"quantization": {"group_size": 64, "bits": 4}}),),
    ),
    Fault(
        "h-twin-template-guarded",
        "A patched template refuses an empty conversation, and says otherwise what it said before.",
        "configuration",
        (
            Text(
                "{%- set headed",
                "{%- if not messages -%}{{- raise_exception('No messages') -}}{%- endif -%}\n"
                "{%- set company = 'ACME' -%}\n{%- set headed",
            ),
            Text("{{- '<|im_end|>\\n' -}}\n{%- endfor -%}", "{{- '<|im_end|>' ~ '\\n' -}}\n{%- endfor -%}"),
            Shipped(),
        ),
    ),
    Fault(
        "h-twin-head-told",
        "The weights hold the output layer, too, though it is the embedding.",
        "model",
        (HeadTold(),),
    ),
    Fault(
        "h-twin-gateway-pings",
        "A gateway sends comments between the events of a stream.",
        "engine",
        (Wire("kept_alive"),),
    ),
    Fault(
        "h-twin-gateway-members",
        "A gateway adds members that are null, and writes arguments with other white space.",
        "engine",
        (Wire("members_added"), Wire("spaced")),
    ),
    Fault(
        "h-twin-other-concurrency",
        "The engine was started for fewer requests at once, with a larger cache and a longer log.",
        "engine",
        (Arguments(("--decode-concurrency", "4", "--prompt-cache-size", "20", "--log-level", "DEBUG")),),
    ),
    Fault(
        "h-twin-bare-locale",
        "The service runs in the bare locale, without Python's own mode for UTF-8, and on one thread.",
        "environment",
        (
            Variable("LC_ALL", "C"),
            Variable("PYTHONCOERCECLOCALE", "0"),
            Variable("PYTHONUTF8", "0"),
            Variable("OMP_NUM_THREADS", "1"),
        ),
    ),
)
