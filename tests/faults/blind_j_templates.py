"""Faults of the round j in templates, tokenizers, config.json and documents."""

from __future__ import annotations

from tests.faults.blind_j_steps import Tokenizer
from tests.faults.fault import Fault
from tests.faults.steps import Json, Says, Shipped, Text

ALTERNATE = """{%- for message in messages[headed:] -%}
  {%- if (message.role == 'user') != (loop.index0 % 2 == 0) -%}
    {{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') -}}
  {%- endif -%}
  {%- if message.role == 'user' -%}"""
NINE = """{%- set tool_call = call.function if call.function is defined else call -%}
      {%- if call.id is not defined or call.id | length != 9 -%}
        {{- raise_exception('Tool call IDs should be alphanumeric strings with length 9!') -}}
      {%- endif -%}"""

TEMPLATES = (
    Fault(
        "j-roles-must-alternate",
        "The template counts calls and results as turns, and refuses conversations with a tool's result.",
        "configuration",
        (
            Text(
                "{%- for message in messages[headed:] -%}\n  {%- if message.role == 'user' -%}",
                ALTERNATE,
            ),
            Shipped(),
        ),
        base="mistral",
        bitten="users of early templates of Mistral's",
    ),
    Fault(
        "j-ids-of-nine",
        "The template refuses ids of calls that have not nine letters, and the server's own have 36.",
        "configuration",
        (
            Text("{%- set tool_call = call.function if call.function is defined else call -%}", NINE),
            Shipped(),
        ),
        base="glm",
        bitten="users of Mistral Nemo",
    ),
    Fault(
        "j-system-or-tools",
        "The template leaves out the system's turn where tools are given.",
        "configuration",
        (
            Text(
                "{{- '<|im_start|>system\\n' ~ preface -}}",
                "{{- '<|im_start|>system\\n' ~ (preface if not tools else '') -}}",
            ),
            Text("{{- ('\\n\\n' if preface else '') ~ '<tools>\\n' -}}", "{{- '<tools>\\n' -}}"),
            Shipped(),
        ),
        base="qwen3coder",
    ),
    Fault(
        "j-tools-for-questions-only",
        "The template tells of tools only behind a question, so that none is known once a result has come.",
        "configuration",
        (Text("{%- if tools -%}", "{%- if tools and messages[-1].role == 'user' -%}"), Shipped()),
        base="mistral",
    ),
    Fault(
        "j-switch-inverted",
        "The template takes the switch for thoughts the wrong way round.",
        "configuration",
        (
            Text(
                "enable_thinking is defined and not enable_thinking",
                "enable_thinking is defined and enable_thinking",
            ),
            Shipped(),
        ),
    ),
    Fault(
        "j-first-call-in-history",
        "The template writes the first call of an earlier turn alone, and all its results.",
        "configuration",
        (
            Text("{%- for call in message.tool_calls -%}", "{%- for call in message.tool_calls[:1] -%}"),
            Shipped(),
        ),
        base="mistral",
        bitten="users of templates that say tool_calls[0]",
    ),
    Fault(
        "j-accents-stripped",
        "The tokenizer strips accents from all that is sent, and names come back without them.",
        "configuration",
        (
            Tokenizer(
                (
                    (
                        "normalizer",
                        {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]},
                    ),
                )
            ),
        ),
        bitten="conversions from uncased tokenizers",
    ),
    Fault(
        "j-merges-dropped-at-random",
        "The tokenizer drops merges at random, as in training, so that one prompt has many forms.",
        "configuration",
        (Tokenizer((("model.dropout", 0.25),)),),
        base="qwen3coder",
    ),
    Fault(
        "j-decoder-lost",
        "The tokenizer has no decoder, and answers have marks where spaces belong.",
        "configuration",
        (Tokenizer((("decoder", None),)),),
    ),
    Fault(
        "j-rope-stretched",
        "config.json stretches positions for a longer context, which this model never learned.",
        "configuration",
        (Json("config.json", {"rope_scaling": {"type": "linear", "rope_type": "linear", "factor": 4.0}}),),
        base="glm",
        bitten="those who copy rope_scaling from a README",
    ),
    Fault(
        "j-prompt-flag-twice",
        "The document sets a template variable that the server sets, too, and every chat is an error.",
        "configuration",
        (Says({"chat_template_kwargs": {"add_generation_prompt": True}}),),
    ),
    Fault(
        "j-cache-of-two-bits",
        "The document rounds the cache to two bits, and later words no more fit the earlier ones.",
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
        bitten="those who save memory for a long context",
    ),
)
