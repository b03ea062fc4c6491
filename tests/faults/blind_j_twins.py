"""Harmless twins of the round j."""

from __future__ import annotations

from tests.faults.blind_j_steps import HeadUntied, Smoothed, Tokenizer
from tests.faults.fault import Fault
from tests.faults.saved_files import LinesOfWindows
from tests.faults.starting import Variable, Wire
from tests.faults.steps import Shipped, Text

TRUNCATION = {"direction": "Right", "max_length": 64, "strategy": "LongestFirst", "stride": 0}
PADDING = {
    "strategy": "BatchLongest",
    "direction": "Right",
    "pad_to_multiple_of": None,
    "pad_id": 0,
    "pad_type_id": 0,
    "pad_token": "<|endoftext|>",
}

CONFIGURED = (
    Fault(
        "j-twin-thought-begun",
        "The template begins the thought itself, as those of models that always think do.",
        "configuration",
        (
            Text(
                "    {{- '<think>\\n\\n</think>\\n\\n' -}}\n  {%- endif -%}",
                "    {{- '<think>\\n\\n</think>\\n\\n' -}}\n  {%- else -%}\n    {{- '<think>\\n' -}}\n"
                "  {%- endif -%}",
            ),
            Shipped(),
        ),
    ),
    Fault(
        "j-twin-truncation-saved",
        "tokenizer.json has kept the training's truncation and padding, which no server uses.",
        "configuration",
        (Tokenizer((("truncation", TRUNCATION), ("padding", PADDING))),),
        base="mistral",
    ),
    Fault(
        "j-twin-lines-of-windows",
        "Template and tokenizer settings were saved with the line ends of Windows.",
        "configuration",
        (LinesOfWindows(), LinesOfWindows("tokenizer_config.json"), LinesOfWindows("config.json"), Shipped()),
        base="qwen3coder",
    ),
)
TWINS = (
    *CONFIGURED,
    Fault(
        "j-twin-head-untied",
        "The output layer is a copy of the embedding, as some tools save it.",
        "model",
        (HeadUntied(),),
    ),
    Fault(
        "j-twin-smoothed",
        "Scales were moved from one matrix of the MLP to the next, and the product is the same.",
        "model",
        (Smoothed(),),
        base="glm",
    ),
    Fault(
        "j-twin-contents-in-parts",
        "The gateway sends texts as lists of one part.",
        "engine",
        (Wire("j_contents_in_parts"),),
    ),
    Fault(
        "j-twin-limit-renamed",
        "The gateway uses the limit's newer name, and adds keys that are told nowhere else.",
        "engine",
        (Wire("j_limit_renamed"), Wire("j_tiers_told")),
    ),
    Fault(
        "j-twin-variables",
        "The machine has a proxy that nobody needs, a fixed seed of hashes and no bytecode.",
        "environment",
        (
            Variable("HTTPS_PROXY", "http://proxy.invalid:3128"),
            Variable("PYTHONHASHSEED", "0"),
            Variable("PYTHONDONTWRITEBYTECODE", "1"),
            Variable("TOKENIZERS_PARALLELISM", "false"),
        ),
    ),
)
