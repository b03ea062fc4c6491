"""Faults of the round in what an operator configures: templates, tokenizers, documents."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import ToolParser
from tests.faults.steps import Json, Says, Shipped, Text
from tests.faults.tokenizers import SETTINGS, TOKENIZER

CONTENT = "{{- message.content or '' -}}"
HISTORY = "messages[headed:]"
CALLS = "{%- for call in message.tool_calls or [] -%}"
COMPANY = "You are the assistant of ACME. Be polite, and never speak about other companies."

TEMPLATES = (
    Fault(
        "h-tools-only-without-a-system",
        "A patched template lists the tools only where the conversation has no system turn of its own.",
        "configuration",
        (Text("{%- if tools -%}", "{%- if tools and not preface -%}"), Shipped()),
    ),
    Fault(
        "h-system-of-the-company",
        "A patched template begins with the company's own system turn, and leaves out the client's.",
        "configuration",
        (
            Text(
                "{%- set preface = messages[0].content or '' if headed",
                f"{{%- set preface = '{COMPANY}' if true",
            ),
            Shipped(),
        ),
    ),
    Fault(
        "h-thinking-switch-reversed",
        "A patched template closes the thoughts where thinking is on, and opens them where it is off.",
        "configuration",
        (Text("is defined and not enable_thinking", "is defined and enable_thinking"), Shipped()),
    ),
    Fault(
        "h-window-of-four-turns",
        "A patched template writes the last four turns, so that long talks fit.",
        "configuration",
        (Text(HISTORY, f"{HISTORY}[-4:]"), Shipped()),
    ),
    Fault(
        "h-results-truncated",
        "A patched template cuts what a tool has said, so that no result fills the context.",
        "configuration",
        (
            Text(
                f"{{%- else -%}}\n    {CONTENT}",
                "{%- elif message.role == 'tool' -%}\n    {{- (message.content or '') | truncate(80) -}}\n  "
                f"{{%- else -%}}\n    {CONTENT}",
            ),
            Shipped(),
        ),
    ),
    Fault(
        "h-contents-escaped",
        "A patched template escapes what is said as if it were for a page.",
        "configuration",
        (Text(CONTENT, "{{- (message.content or '') | e -}}"), Shipped()),
        bitten="tool results with &#34; in prompts",
    ),
    Fault(
        "h-one-call-a-turn",
        "The template raises where a turn of the assistant holds two calls.",
        "configuration",
        (
            Text(
                CALLS,
                "{%- if message.tool_calls and message.tool_calls | length != 1 -%}"
                "{{- raise_exception('This model only supports single tool-calls at once!') -}}"
                f"{{%- endif -%}}\n    {CALLS}",
            ),
            Shipped(),
        ),
        bitten="Llama 3.1's template",
    ),
)
TOKENIZERS = (
    Fault(
        "h-accents-stripped",
        "tokenizer.json has the normalizer of a search engine, which takes accents from letters.",
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
        "h-decoder-of-another-family",
        "tokenizer.json was saved again with the decoder of another family.",
        "configuration",
        (
            Json(
                TOKENIZER,
                {
                    "decoder": {
                        "type": "Metaspace",
                        "replacement": "\u2581",
                        "prepend_scheme": "always",
                        "split": True,
                    }
                },
            ),
        ),
        bitten="answers with \u0120 for spaces",
    ),
    Fault(
        "h-end-of-the-base-model",
        "All three files name the token that ends the base model's texts, and none the one that ends a turn.",
        "configuration",
        (
            Json(SETTINGS, {"eos_token": "<|endoftext|>"}),
            Json("generation_config.json", {"eos_token_id": 0}),
            Json("config.json", {"eos_token_id": 0}),
        ),
        bitten="chat models that were saved with the base model's files",
    ),
)
DOCUMENTS = (
    Fault(
        "h-switch-named-as-an-argument",
        "The document gives the template a variable that the engine hands over itself.",
        "configuration",
        (Says({"chat_template_kwargs": {"add_generation_prompt": True}}),),
    ),
    Fault(
        "h-stop-words-of-completions",
        "The document's stop words are those of the base model's completions: an empty line ends an answer.",
        "configuration",
        (Says({"stopwords": ["\n\n"]}),),
    ),
    Fault(
        "h-answers-of-a-few-words",
        "The document's limit of an answer was set for a test of load.",
        "configuration",
        (Says({"parameters.max_tokens": 12}),),
    ),
    Fault(
        "h-cache-of-two-bits",
        "The document keeps keys and values in two bits from the first token, to save memory.",
        "configuration",
        (Says({"engine_args": {"kv_bits": 2, "kv_group_size": 32, "quantized_kv_start": 0}}),),
    ),
    Fault(
        "h-context-stretched",
        "config.json scales positions by four for a longer context than the model was trained for.",
        "configuration",
        (Json("config.json", {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}),),
    ),
    Fault(
        "h-parser-of-the-coder",
        "The tokenizer's settings name the parser of the family's coder, which writes calls as XML.",
        "configuration",
        (ToolParser("qwen3_coder"),),
    ),
)
FAULTS = (*TEMPLATES, *TOKENIZERS, *DOCUMENTS)
