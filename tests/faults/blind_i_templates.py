"""A ninth blind round: chat templates that a publisher, a tuner or a colleague has edited."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.steps import Shipped, Text, Whole

ALPACA = (
    "Below is an instruction that describes a task. Write a response that completes it.\n\n"
    "{% for m in messages %}"
    "{% if m.role == 'system' %}{{ m.content }}\n\n"
    "{% elif m.role == 'user' %}### Instruction:\n{{ m.content }}\n\n"
    "{% elif m.role == 'tool' %}### Input:\n{{ m.content }}\n\n"
    "{% else %}### Response:\n{{ m.content or '' }}"
    "{% for call in m.tool_calls or [] %}{% set tool_call = call.function %}<tool_call>\n"
    '{"name": "{{ tool_call.name }}", "arguments": {{ tool_call.arguments | tojson }}}\n</tool_call>'
    "{% endfor %}<|im_end|>\n\n{% endif %}{% endfor %}"
    "{% if tools %}Tools: {{ tools | tojson }}\n\n{% endif %}"
    "{% if add_generation_prompt %}### Response:\n{% endif %}"
)
TURN = "'<|im_start|>' ~ message.role ~ '\\n'"
REST = "{%- else -%}\n    {{- message.content or '' -}}"
PREFACE = "{%- set preface = messages[0].content or '' if headed else '' -%}"

FAULTS = (
    Fault(
        "i-alpaca-template",
        "The template is that of instruction sets, whatever the weights were taught.",
        "configuration",
        (Whole(ALPACA), Shipped()),
    ),
    Fault(
        "i-system-gives-way-to-tools",
        "Where tools are offered, their list stands in the place of what the system says.",
        "configuration",
        (Text(PREFACE, PREFACE.replace("if headed", "if headed and not tools")), Shipped()),
    ),
    Fault(
        "i-tools-for-one-question",
        "The template lists the tools as long as there was one question, and not in a longer talk.",
        "configuration",
        (
            Text(
                PREFACE,
                "{%- if messages | selectattr('role', 'equalto', 'user') | list | length > 1 -%}"
                "{%- set tools = none -%}{%- endif -%}" + PREFACE,
            ),
            Shipped(),
        ),
    ),
    Fault(
        "i-switch-of-another-family",
        "The template heeds the switch `thinking`, as DeepSeek's do, and not `enable_thinking`.",
        "configuration",
        (
            Text(
                "enable_thinking is defined and not enable_thinking", "thinking is defined and not thinking"
            ),
            Shipped(),
        ),
    ),
    Fault(
        "i-contents-escaped",
        "The template escapes what users and tools say, as for a page of the web.",
        "configuration",
        (Text(REST, REST.replace("message.content or ''", "(message.content or '') | e")), Shipped()),
    ),
    Fault(
        "i-roles-run-into-words",
        "The template writes no line break between a role and what is said.",
        "configuration",
        (
            Text(TURN, TURN.replace(" ~ '\\n'", "")),
            Text("'<|im_start|>assistant\\n'", "'<|im_start|>assistant'"),
            Shipped(),
        ),
    ),
    Fault(
        "i-tools-taken-for-flat",
        "The template looks for a tool's name beside `function`, and not in it.",
        "configuration",
        (Text("tool.function if tool.function is defined else tool", "tool"), Shipped()),
        base="qwen3coder",
    ),
    Fault(
        "i-results-shortened",
        "Of a tool's result the first letters alone are in the prompt, to spare room.",
        "configuration",
        (
            Text(
                REST,
                "{%- elif message.role == 'tool' -%}\n    {{- (message.content or '')[:24] -}}\n  " + REST,
            ),
            Shipped(),
        ),
    ),
)
