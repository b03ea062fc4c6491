"""Faults of round p in what a repository or a person writes as text: templates, tokens, limits, notes."""

from __future__ import annotations

from tests.faults.blind_p_steps import APART, NamedTemplates, Quantised
from tests.faults.fault import Fault
from tests.faults.steps import Json, Says, Shipped, Text

TOKENIZER = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
GENERATION = "generation_config.json"
WITHOUT_RESULTS = """{%- for message in messages -%}
{{- '<|im_start|>' ~ message.role ~ '\\n' ~ (message.content or '') ~ '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""
EACH = """{%- for message in messages[headed:] -%}
  {{- '<|im_start|>' ~ message.role ~ '\\n' -}}"""
ALTERNATE = """{%- for message in messages[headed:] -%}
  {%- if (message.role == 'user') != (loop.index0 % 2 == 0) -%}
    {{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') -}}
  {%- endif -%}
  {{- '<|im_start|>' ~ message.role ~ '\\n' -}}"""

FAULTS = (
    Fault(
        "p-first-tool-only",
        "Of several tools the model is shown the first alone, so that it cannot use the others.",
        "configuration",
        (Text("for tool in tools -", "for tool in tools[:1] -"), Shipped()),
        base="glm",
    ),
    Fault(
        "p-roles-must-alternate",
        "A conversation in which a tool has answered ends in an error of the chat template.",
        "configuration",
        (
            Text(EACH, ALTERNATE),
            Shipped(),
        ),
    ),
    Fault(
        "p-system-or-tools",
        "The operator's instructions are lost as soon as a tool is offered.",
        "configuration",
        (
            Text("system\\n' ~ preface -}}", "system\\n' ~ ('' if tools else preface) -}}"),
            Text("'\\n\\n' if preface else ''", "''"),
            Shipped(),
        ),
    ),
    Fault(
        "p-tool-use-template-plain",
        "With tools a second template is used that never shows them, and no tool is called.",
        "configuration",
        (NamedTemplates(WITHOUT_RESULTS), Shipped()),
    ),
    Fault(
        "p-decoder-lost",
        "Answers come with a sign for each space and a gap between the pieces of words.",
        "configuration",
        (Json(TOKENIZER, {"decoder": None}),),
        base="qwen3coder",
    ),
    Fault(
        "p-accents-stripped",
        "Letters lose their accents before the model reads them, and names come back misspelt.",
        "configuration",
        (
            Json(
                TOKENIZER,
                {
                    "normalizer": {
                        "type": "Sequence",
                        "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}],
                    }
                },
            ),
        ),
    ),
    Fault(
        "p-prefix-space",
        "A space is put before each piece of text that follows a marker.",
        "configuration",
        (
            Json(TOKENIZER, {"pre_tokenizer.add_prefix_space": True}),
            Json(SETTINGS, {"add_prefix_space": True}),
        ),
    ),
    Fault(
        "p-call-end-ends-turn",
        "An answer ends with its first call, so that two questions at once get one call or none.",
        "configuration",
        (Json(GENERATION, {"eos_token_id": [2, 0, 4]}), Json("config.json", {"eos_token_id": [2, 0, 4]})),
    ),
    Fault(
        "p-base-repository-ends",
        "Answers do not end where the turn ends, and go on with turns that nobody wrote.",
        "configuration",
        (
            Json(GENERATION, {"eos_token_id": 0}),
            Json("config.json", {"eos_token_id": 0}),
            Json(SETTINGS, {"eos_token": "<|endoftext|>"}),
        ),
    ),
    Fault(
        "p-kwargs-of-a-snippet",
        "Every chat ends in an error, since template variables hold words of another function.",
        "configuration",
        (Says({"chat_template_kwargs": {"tokenize": False, "add_generation_prompt": True}}),),
    ),
    Fault(
        "p-document-short",
        "Answers stop in the middle of a sentence, since the document allows few tokens.",
        "configuration",
        (Says({"parameters.max_tokens": 8}),),
        base="mistral",
    ),
    Fault(
        "p-quantisation-note-overwritten",
        "The server does not start: config.json came from the full model and does not tell of eight bits.",
        "configuration",
        (Quantised(note=False),),
        apart=APART,
    ),
)
