"""Faults of the round ``n`` in what was written about a model."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.saved_files import Beside
from tests.faults.steps import Json, Says, Shipped, Text

# The template that is taken where a request has tools; it is of an earlier model.
TOOL_USE = """{%- for message in messages -%}
  {{- '<|im_start|>' ~ message.role ~ '\\n' ~ (message.content or '') ~ '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""
NINE = """{%- if call.id is not defined or call.id | length != 9 -%}
        {{- raise_exception('Tool call IDs should be alphanumeric strings with length 9!') -}}
      {%- endif -%}
      """
SINGLE = """{%- if (message.tool_calls or []) | length > 1 -%}
      {{- raise_exception('This model only supports single tool-calls at once!') -}}
    {%- endif -%}
    """
LATE = """
  {%- if message.role == 'system' -%}
    {{- raise_exception('System message must be at the beginning.') -}}
  {%- endif -%}"""
CONTENT = "{{- message.content or '' -}}"
PARTS = "{%- for part in message.content or [] -%}{{- part.text -}}{%- endfor -%}"
CALLS = "{%- for call in message.tool_calls or [] -%}"
TURNS = "{%- for message in messages[headed:] -%}"
FUNCTION = "{%- set tool_call = call.function if call.function is defined else call -%}"
ACCENTS = {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]}
WORDS = {
    "type": "Sequence",
    "pretokenizers": [
        {
            "type": "Split",
            "pattern": {"Regex": "\\p{L}+|\\p{N}|\\s+|[^\\s\\p{L}\\p{N}]+"},
            "behavior": "Isolated",
            "invert": False,
        },
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
    ],
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}
CACHE = {"engine_args.kv_bits": 2, "engine_args.kv_group_size": 32, "engine_args.quantized_kv_start": 0}

FAULTS = (
    Fault(
        "n-tool-use-template",
        "A second template, for requests with tools, is of an earlier model and shows no tools.",
        "configuration",
        (Beside("additional_chat_templates/tool_use.jinja", TOOL_USE), Shipped()),
        bitten="repositories with named templates of which one was forgotten",
    ),
    Fault(
        "n-ids-of-nine",
        "The template refuses ids of calls that are not nine letters long, and the engine's are longer.",
        "configuration",
        (Text(FUNCTION, FUNCTION + "\n      " + NINE), Shipped()),
        base="mistral",
        bitten="Mistral's templates with clients and servers that write other ids",
    ),
    Fault(
        "n-tools-need-system",
        "Tools are shown only where there is a system's turn.",
        "configuration",
        (Text("{%- if preface or tools -%}", "{%- if preface -%}"), Shipped()),
        bitten="templates that write tools into the branch of the system's turn",
    ),
    Fault(
        "n-history-needs-thought",
        "Of earlier answers only what stands behind a thought is shown, so plain answers vanish.",
        "configuration",
        (
            Text(
                f"    {CONTENT}\n    {CALLS}",
                f"    {{{{- (message.content or '').split('</think>')[1] -}}}}\n    {CALLS}",
            ),
            Shipped(),
        ),
        bitten="templates that cut thoughts out of the history by their end",
    ),
    Fault(
        "n-parts-only",
        "The template reads contents in parts alone, and a plain text is nothing.",
        "configuration",
        (Text(f"  {{%- else -%}}\n    {CONTENT}", f"  {{%- else -%}}\n    {PARTS}"), Shipped()),
        bitten="templates of models that see, copied to models that do not",
    ),
    Fault(
        "n-system-only-first",
        "The template refuses a conversation in which a system's turn comes later.",
        "configuration",
        (Text(TURNS, TURNS + LATE), Shipped()),
        bitten="coding agents that send reminders as system turns",
    ),
    Fault(
        "n-one-call-at-once",
        "The template refuses a history with two calls in one turn, which the model itself writes.",
        "configuration",
        (Text(CALLS, SINGLE + CALLS), Shipped()),
        base="qwen3coder",
        bitten="templates of Llama 3",
    ),
    Fault(
        "n-accents-stripped",
        "The tokenizer takes accents off, so that names reach the model misspelt.",
        "configuration",
        (Json("tokenizer.json", {"normalizer": ACCENTS}),),
        bitten="tokenizers converted with the normalizer of BERT",
    ),
    Fault(
        "n-words-split-otherwise",
        "The tokenizer parts words by another family's pattern, and the model reads pieces it never saw.",
        "configuration",
        (Json("tokenizer.json", {"pre_tokenizer": WORDS}),),
        base="qwen3coder",
        bitten="conversions with a wrong pattern for words, as of Mistral's and Llama 3's",
    ),
    Fault(
        "n-template-type",
        "The tokenizer's settings name a built-in renderer of another model, which is used for the template.",
        "configuration",
        (Json("tokenizer_config.json", {"chat_template_type": "deepseek_v32"}),),
        bitten="conversions that copied tokenizer_config.json from another one for MLX",
    ),
    Fault(
        "n-yarn-left-on",
        "Positions are scaled for a context four times as long, which the model was not trained for.",
        "configuration",
        (Json("config.json", {"rope_scaling": YARN}),),
        bitten="publishers that leave YaRN on to show a larger context",
    ),
    Fault(
        "n-cache-of-two-bits",
        "The cache of keys and values has two bits for each number, to save memory.",
        "configuration",
        (Says(CACHE),),
        bitten="users who save memory on small machines",
    ),
)
