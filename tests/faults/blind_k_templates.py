"""Faults of the round k in what publishers and users wrote: templates, tokenizers, configs, documents."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.saved_files import Beside
from tests.faults.steps import Json, Says, Shipped, Text

OLD_TOOL_TEMPLATE = """{{- '<|im_start|>system\\n' -}}
{{- 'You may call one function: ' ~ tools | tojson ~ '\\nAnswer Action: NAME and Input: JSON.' -}}
{{- '<|im_end|>\\n' -}}
{%- for message in messages -%}
  {{- '<|im_start|>' ~ message.role ~ '\\n' ~ (message.content or '') ~ '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""
PLAIN_TURN = """  {%- else -%}
    {{- message.content or '' -}}
  {%- endif -%}
  {{- '<|im_end|>\\n' -}}"""
ESCAPED_TURN = PLAIN_TURN.replace("message.content or ''", "(message.content or '') | e")
STRIPPED = {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]}

FAULTS = (
    Fault(
        "k-contents-escaped",
        "Quotes and angle brackets of questions and results reach the model as HTML entities.",
        "configuration",
        (
            Shipped(),
            Text(PLAIN_TURN, PLAIN_TURN.replace("message.content or ''", "(message.content or '') | e")),
        ),
        bitten="a fine-tune whose template was taken from a web page's",
    ),
    Fault(
        "k-tools-for-questions-only",
        "When a tool has answered the model no longer sees its tools, so that it cannot call the next.",
        "configuration",
        (
            Shipped(),
            Text(
                "{%- if preface or tools -%}",
                "{%- set shown = tools if messages[-1].role == 'user' -%}\n{%- if preface or shown -%}",
            ),
            Text("  {%- if tools -%}", "  {%- if shown -%}"),
        ),
        bitten="Mistral's early templates",
    ),
    Fault(
        "k-system-or-tools",
        "Where tools are offered the operator's system text does not reach the model.",
        "configuration",
        (
            Shipped(),
            Text(
                "{%- set preface = messages[0].content or '' if headed else '' -%}",
                "{%- set preface = messages[0].content or '' if headed and not tools else '' -%}",
            ),
        ),
    ),
    Fault(
        "k-second-template",
        "An old template for tools lies in a folder of its own, and is taken wherever tools are offered.",
        "configuration",
        (Beside("additional_chat_templates/tool_use.jinja", OLD_TOOL_TEMPLATE),),
        bitten="a repository converted by a new release of transformers",
    ),
    Fault(
        "k-switch-inverted",
        "The model thinks when it is told not to, and does not when it is told to.",
        "configuration",
        (
            Shipped(),
            Text(
                "{%- if enable_thinking is defined and not enable_thinking -%}",
                "{%- if enable_thinking is defined and enable_thinking -%}",
            ),
        ),
    ),
    Fault(
        "k-schema-names-only",
        "Of parameters the model sees the names only: no types, no choices, no word of what is required.",
        "configuration",
        (
            Shipped(),
            Text(
                "(function.parameters | default({}, true) | tojson)",
                "((function.parameters | default({}, true)).properties | default({}) | list | tojson)",
            ),
        ),
        base="glm",
    ),
    Fault(
        "k-accents-stripped",
        "The tokenizer takes accents off what users write: names arrive as other names.",
        "configuration",
        (
            Json(
                "tokenizer.json",
                {
                    "normalizer": {
                        "type": "Sequence",
                        "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}],
                    }
                },
            ),
        ),
        bitten="a tokenizer rebuilt with a recipe for BERT",
    ),
    Fault(
        "k-spaces-prefixed",
        "The tokenizer puts a space before each piece behind a marker, which the model has never seen.",
        "configuration",
        (Json("tokenizer.json", {"pre_tokenizer.add_prefix_space": True}),),
    ),
    Fault(
        "k-end-at-call",
        "The end of a call counts as the end of the answer: of several calls only the first is made.",
        "configuration",
        (Json("generation_config.json", {"eos_token_id": [2, 4, 0]}),),
        bitten="those who wanted agents to stop at a call",
    ),
    Fault(
        "k-quant-config-left",
        "A note on a quantisation that these weights no longer have keeps the engine from loading them.",
        "configuration",
        (
            Beside(
                "hf_quant_config.json",
                '{"producer": {"name": "modelopt", "version": "0.29.0"}, "quantization": '
                '{"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}, "quant_method": "modelopt"}\n',
            ),
        ),
    ),
    Fault(
        "k-kv-two-bits",
        "The document keeps keys and values in two bits to save memory: answers get words and sums wrong.",
        "configuration",
        (
            Says(
                {
                    "engine_args.kv_bits": 2,
                    "engine_args.kv_group_size": 32,
                    "engine_args.quantized_kv_start": 0,
                }
            ),
        ),
    ),
    Fault(
        "k-stop-at-break",
        "The document stops each answer at a line break, which is where thoughts begin.",
        "configuration",
        (Says({"stopwords": ["\n"]}),),
    ),
)
