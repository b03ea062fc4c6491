"""Blind round o: setups that look odd, and are right."""

from __future__ import annotations

from tests.faults.blind_o_steps import ShardOfEachLayer, Variables, VocabularyInOtherOrder
from tests.faults.fault import Fault
from tests.faults.rebuilt import Widened
from tests.faults.saved_files import Beside
from tests.faults.starting import Wire
from tests.faults.steps import Json, Says, Shipped, Whole

MISTRAL = """{#- The same as the vendor's, written in another hand. -#}
{%- macro call_text(call) -%}
  {%- set f = call.function if call.function is defined else call -%}
  {"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}}
{%- endmacro -%}
{%- set system, rest = '', messages -%}
{%- if messages and messages[0]['role'] == 'system' -%}
  {%- set system = '[SYSTEM_PROMPT]' + (messages[0]['content'] or '') + '[/SYSTEM_PROMPT]' -%}
  {%- set rest = messages[1:] -%}
{%- endif -%}
<s>{{ system }}
{%- if tools %}{{ '[AVAILABLE_TOOLS]' }}{{ tools | tojson }}{{ '[/AVAILABLE_TOOLS]' }}{% endif -%}
{%- for m in rest -%}
  {%- set text = m['content'] or '' -%}
  {%- if m['role'] == 'user' %}{{ '[INST]' + text + '[/INST]' }}
  {%- elif m['role'] == 'tool' %}{{ '[TOOL_RESULTS]' + m['content'] + '[/TOOL_RESULTS]' }}
  {%- elif m['tool_calls'] -%}
    {{ '[TOOL_CALLS][' }}
    {%- for call in m['tool_calls'] %}{{ call_text(call) }}{{ '' if loop.last else ', ' }}{% endfor -%}
    {{ ']</s>' }}
  {%- else %}{{ text + '</s>' }}
  {%- endif -%}
{%- endfor -%}
"""

TWINS = (
    Fault(
        "o-twin-other-hand",
        "The template is written in another hand and renders the same.",
        "configuration",
        (Whole(MISTRAL), Shipped()),
        base="mistral",
    ),
    Fault(
        "o-twin-shard-of-each-layer",
        "The weights come in a file for each layer.",
        "model",
        (ShardOfEachLayer(),),
    ),
    Fault(
        "o-twin-wide-numbers",
        "The weights are saved as float32, and config.json says so; the numbers are the same.",
        "model",
        (Widened(), Json("config.json", {"torch_dtype": "float32"})),
        base="glm",
    ),
    Fault(
        "o-twin-vocabulary-sorted",
        "tokenizer.json is indented, its words sorted by letters, each with the number that it had.",
        "configuration",
        (VocabularyInOtherOrder(),),
    ),
    Fault(
        "o-twin-further-keys",
        "Files of the model, the document and the folder hold further things that say nothing new.",
        "configuration",
        (
            Json(
                "config.json",
                {"transformers_version": "4.57.1", "dtype": "bfloat16", "use_mrope": False},
            ),
            Json("tokenizer_config.json", {"extra_special_tokens": {}, "split_special_tokens": False}),
            Says({"description": "The office's helper, asked for by sales"}),
            Beside("README.md", "# A helper\n\nQuantised with AWQ elsewhere; these are plain weights.\n"),
            Beside("original/params.json", '{"dim": 64, "n_layers": 3}'),
        ),
        base="qwen3coder",
    ),
    Fault(
        "o-twin-gateway-in-parts",
        "A gateway sends text on as a list of one part, and adds fields to answers that no client reads.",
        "engine",
        (Wire("o_content_in_parts"), Wire("o_extras_added")),
    ),
    Fault(
        "o-twin-gateway-keeps-alive",
        "A proxy puts comments between the events of a stream.",
        "engine",
        (Wire("o_keeps_alive"),),
        base="qwen3coder",
    ),
    Fault(
        "o-twin-variables",
        "The machine has variables that change speed, clock and messages, and no answer.",
        "environment",
        (
            Variables(
                {
                    "OMP_NUM_THREADS": "1",
                    "TZ": "Pacific/Auckland",
                    "LC_ALL": "C.UTF-8",
                    "PYTHONHASHSEED": "7",
                    "TOKENIZERS_PARALLELISM": "false",
                    "HF_HUB_OFFLINE": "1",
                }
            ),
        ),
    ),
)
