"""Faults of round l whose part is ``configuration``."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.steps import Json, Says, Shipped, Text

PLAIN = "{{- message.content or '' -}}\n  {%- endif -%}\n  {{- '<|im_end|>\\n' -}}"
LOOP = "{%- for message in messages[headed:] -%}"
STRIP = {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]}
PIECES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
ALTERNATE = (
    "{%- for message in messages[headed:] -%}"
    "{%- if (message.role == 'user') != (loop.index0 % 2 == 0) -%}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}"
    "{%- endif -%}{%- endfor -%}\n"
)

FAULTS = (
    Fault(
        "l-questions-escaped",
        "The template escapes questions for web pages: the model reads &#39; and &lt; for ' and <.",
        "configuration",
        (Text(PLAIN, PLAIN.replace("message.content or ''", "(message.content or '') | e")), Shipped()),
    ),
    Fault(
        "l-last-six-turns",
        "The template shows the last six messages alone, and what was said before them is forgotten.",
        "configuration",
        (Text(LOOP, "{%- for message in messages[headed:][-6:] -%}"), Shipped()),
    ),
    Fault(
        "l-results-unseen",
        "The template knows three roles alone, so that the model never sees what a tool answered.",
        "configuration",
        (
            Text(LOOP, "{%- for message in messages[headed:] if message.role != 'tool' -%}"),
            Shipped(),
        ),
        bitten="templates of ChatML from before tools",
    ),
    Fault(
        "l-roles-must-alternate",
        "The template raises an error where a tool has answered or a user has spoken twice.",
        "configuration",
        (Text("{%- if tools -%}", ALTERNATE + "{%- if tools -%}"), Shipped()),
        base="mistral",
        bitten="agents on Mistral's and Gemma's first templates",
    ),
    Fault(
        "l-first-tool-only",
        "Of several tools the template shows the first alone, and the others are never called.",
        "configuration",
        (Text("{%- for tool in tools -%}", "{%- for tool in tools[:1] -%}"), Shipped()),
        base="glm",
    ),
    Fault(
        "l-system-or-tools",
        "Where a system prompt is given, tools are not shown.",
        "configuration",
        (
            Text("{%- if tools -%}", "{%- if tools and not headed -%}"),
            Shipped(),
        ),
        base="qwen3coder",
    ),
    Fault(
        "l-positions-halved",
        "The config stretches positions by two for a longer context, and the model was not trained so.",
        "configuration",
        (Json("config.json", {"rope_scaling": {"rope_type": "linear", "type": "linear", "factor": 2.0}}),),
    ),
    Fault(
        "l-accents-stripped",
        "The tokenizer takes accents off letters, so that names come back misspelt.",
        "configuration",
        (Json("tokenizer.json", {"normalizer": STRIP}),),
        bitten="tokenizers taken over from BERT",
    ),
    Fault(
        "l-space-before-text",
        "The tokenizer puts a space before the text behind each marker.",
        "configuration",
        (Json("tokenizer.json", {"pre_tokenizer": PIECES}),),
        base="qwen3coder",
    ),
    Fault(
        "l-blank-line-stops",
        "A stop word of the document is the empty line between thought and answer: nothing is answered.",
        "configuration",
        (Says({"stopwords": ["\n\n"]}),),
    ),
    Fault(
        "l-sixteen-tokens",
        "The document allows sixteen tokens where a client sets no limit, and answers are cut.",
        "configuration",
        (Says({"parameters.max_tokens": 16}),),
        bitten="users who took OpenAI's default of old completions",
    ),
    Fault(
        "l-decoder-for-words",
        "The tokenizer's decoder is one for another vocabulary, so that answers hold its inner signs.",
        "configuration",
        (Json("tokenizer.json", {"decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}}),),
    ),
)
