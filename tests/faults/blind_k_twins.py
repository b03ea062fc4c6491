"""Harmless changes of the round k that look suspicious."""

from __future__ import annotations

from tests.faults.blind_k_steps import Packed
from tests.faults.fault import Fault
from tests.faults.saved_files import Beside
from tests.faults.starting import Variable, Wire
from tests.faults.steps import Json, Shipped, Text

CALLS = """    {%- for call in message.tool_calls or [] -%}
      {%- set tool_call = call.function if call.function is defined else call -%}
      {%- set arguments = tool_call.arguments -%}
      {{- '\\n' if message.content or not loop.first else '' -}}
      {{- '<tool_call>\\n{"name": ' ~ tool_call.name | tojson ~ ', "arguments": ' -}}
      {{- (arguments if arguments is string else arguments | tojson) ~ '}\\n</tool_call>' -}}
    {%- endfor -%}"""
WITH_MACRO = """    {%- for call in message.tool_calls or [] -%}
      {{- '\\n' if message.content or not loop.first else '' -}}
      {{- written(call.function if call.function is defined else call) -}}
    {%- endfor -%}"""
MACRO = """{%- macro written(tool_call) -%}
  {%- set arguments = tool_call.arguments -%}
  {{- '<tool_call>\\n{"name": ' ~ tool_call.name | tojson ~ ', "arguments": ' -}}
  {{- (arguments if arguments is string else arguments | tojson) ~ '}\\n</tool_call>' -}}
{%- endmacro -%}
{%- set latest = namespace(question=-1) -%}"""
TURNS_END = """    {%- endfor -%}
  {%- else -%}"""
MARKED_END = """    {%- endfor -%}
    {%- endgeneration -%}
  {%- else -%}"""
THOUGHT = "    {%- set thought = message.reasoning_content or message.reasoning -%}"

TWINS = (
    Fault(
        "k-twin-generation-marks",
        "The template marks what the model writes, for training: the text is the same.",
        "configuration",
        (Shipped(), Text(THOUGHT, f"    {{%- generation -%}}\n{THOUGHT}"), Text(TURNS_END, MARKED_END)),
    ),
    Fault(
        "k-twin-call-macro",
        "The template writes calls with a macro: the text is the same.",
        "configuration",
        (
            Shipped(),
            Text(CALLS, WITH_MACRO),
            Text("{%- set latest = namespace(question=-1) -%}", MACRO),
        ),
    ),
    Fault(
        "k-twin-truncation-left",
        "The tokenizer was saved with the cuts and the padding of training, which the library switches off.",
        "configuration",
        (
            Json(
                "tokenizer.json",
                {
                    "truncation": {
                        "direction": "Right",
                        "max_length": 64,
                        "strategy": "LongestFirst",
                        "stride": 0,
                    },
                    "padding": {
                        "strategy": {"Fixed": 64},
                        "direction": "Right",
                        "pad_to_multiple_of": None,
                        "pad_id": 0,
                        "pad_type_id": 0,
                        "pad_token": "<|endoftext|>",
                    },
                },
            ),
        ),
    ),
    Fault(
        "k-twin-eight-bits",
        "Weights were packed into eight bits, and answers are the same.",
        "model",
        (Packed(8),),
    ),
    Fault(
        "k-twin-fields-added",
        "A gateway adds fields to answers that clients do not know, or know as empty.",
        "engine",
        (Wire("k_fields_added"),),
    ),
    Fault(
        "k-twin-pings",
        "A gateway writes comments between events of a stream, as the format allows.",
        "engine",
        (Wire("k_pings"),),
    ),
    Fault(
        "k-twin-one-thread",
        "Variables hold libraries to one thread and take colours away.",
        "environment",
        (
            Variable("OMP_NUM_THREADS", "1"),
            Variable("NO_COLOR", "1"),
            Variable("TOKENIZERS_PARALLELISM", "false"),
            Variable("PYTHONDONTWRITEBYTECODE", "1"),
        ),
    ),
    Fault(
        "k-twin-files-beside",
        "Parameters of the original release and an older name of the model lie beside.",
        "configuration",
        (
            Beside("original/params.json", '{"dim": 64, "n_layers": 3, "n_heads": 4}\n'),
            Json(
                "config.json",
                {"transformers_version": "4.30.0.dev0", "max_window_layers": 3, "sliding_window": 1024},
            ),
        ),
    ),
)
