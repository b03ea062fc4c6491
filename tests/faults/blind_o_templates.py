"""Blind round o, configuration: what a person writes or a repository ships as text."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.steps import Json, Says, Shipped, Text

HEADED = "{%- set headed = 1 if messages and messages[0].role == 'system' else 0 -%}"
PREFACE = "{%- set preface = messages[0].content or '' if headed else '' -%}"
LAST = "    {{- message.content or '' -}}\n  {%- endif -%}\n"
GLM_OTHERS = "{{- '<|' ~ message.role ~ '|>' ~ (message.content or '') -}}"
LOOP = "{%- for message in messages[headed:] -%}"
ALTERNATE = (
    "{%- if message.role != ('user' if loop.index0 % 2 == 0 else 'assistant') -%}"
    "{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') -}}"
    "{%- endif -%}"
)

FAULTS = (
    Fault(
        "o-first-turn-taken-for-system",
        "The template skips the first turn, always: without a system's turn the question is lost.",
        "configuration",
        (
            Text(HEADED, "{%- set headed = 1 -%}"),
            Text(PREFACE, "{%- set preface = messages[0].content or '' if messages[0].role == 'system' -%}"),
            Shipped(),
        ),
    ),
    Fault(
        "o-system-or-tools",
        "The template tells of tools only where there is no system's turn.",
        "configuration",
        (Text("  {%- if tools -%}", "  {%- if tools and not preface -%}"), Shipped()),
    ),
    Fault(
        "o-result-needs-a-name",
        "The template writes a tool's result only where it has a name, which clients no longer send.",
        "configuration",
        (
            Text(
                LAST,
                "    {{- (message.content or '') if message.role != 'tool' or message.name else '' -}}\n"
                "  {%- endif -%}\n",
            ),
            Shipped(),
        ),
    ),
    Fault(
        "o-tools-read-flat",
        "The template reads a tool's name beside 'type', where no client puts it: tools are nameless.",
        "configuration",
        (Text("tool.function if tool.function is defined else tool", "tool"), Shipped()),
        base="qwen3coder",
    ),
    Fault(
        "o-content-only-in-parts",
        "The template reads content as a list of parts; of a plain text it writes nothing.",
        "configuration",
        (
            Text(
                GLM_OTHERS,
                "{{- '<|' ~ message.role ~ '|>' -}}"
                "{%- for part in message.content -%}{{- part.text -}}{%- endfor -%}",
            ),
            Shipped(),
        ),
        base="glm",
    ),
    Fault(
        "o-roles-must-alternate",
        "The template raises an error where a tool's result follows a call.",
        "configuration",
        (Text(LOOP, LOOP + ALTERNATE), Shipped()),
        base="mistral",
    ),
    Fault(
        "o-lower-case",
        "The tokenizer makes small letters of all that it reads: names and cities come out wrong.",
        "configuration",
        (Json("tokenizer.json", {"normalizer": {"type": "Lowercase"}}),),
    ),
    Fault(
        "o-no-decoder",
        "The tokenizer has no decoder any more: answers have odd letters where spaces and breaks belong.",
        "configuration",
        (Json("tokenizer.json", {"decoder": None}),),
    ),
    Fault(
        "o-observation-is-no-end",
        "The token that ends a turn with a call is no end token: the model goes on and makes up the result.",
        "configuration",
        (
            Json("config.json", {"eos_token_id": 4}),
            Json("generation_config.json", {"eos_token_id": [4, 0]}),
            Json("tokenizer_config.json", {"eos_token": "<|user|>"}),
        ),
        base="glm",
    ),
    Fault(
        "o-document-twelve-tokens",
        "The document limits answers to twelve tokens where a request names no limit.",
        "configuration",
        (Says({"parameters.max_tokens": 12}),),
    ),
    Fault(
        "o-document-hot",
        "The document asks for a temperature of 7, meant as 0.7, and for no other bound: answers are noise.",
        "configuration",
        (Says({"parameters.temperature": 7, "parameters.top_k": 0, "parameters.top_p": 1}),),
    ),
    Fault(
        "o-note-of-awq",
        "config.json says that the weights are packed by AWQ; they are plain numbers, and nothing loads.",
        "configuration",
        (
            Json(
                "config.json",
                {
                    "quantization_config": {
                        "quant_method": "awq",
                        "bits": 4,
                        "group_size": 128,
                        "version": "gemm",
                        "zero_point": True,
                    }
                },
            ),
        ),
    ),
)
