"""Templates of a seventh round: edited by fine-tuners, or taken from other families."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.saved_files import Beside
from tests.faults.steps import Json, Shipped, Text

OTHERS = "{%- else -%}\n    {{- message.content or '' -}}"
BEGINS = "{{- '<|im_start|>' ~ message.role ~ '\\n' -}}"
HEADED = "{%- set headed"
LINE = "{{- '- ' ~ function.name ~ ' ' ~ (function.parameters | default({}, true) | tojson) -}}"
DESCRIBED = "{{- ' ' ~ function.description if function.description else '' -}}"
AVAILABLE = "{{- '[AVAILABLE_TOOLS]' ~ tools | tojson ~ '[/AVAILABLE_TOOLS]' -}}"
ASKED = "{{- '[INST]' ~ (message.content or '') ~ '[/INST]' -}}"
RAG = (
    "{% for d in documents or [] %}{{ d.text }}\n{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

FAULTS = (
    Fault(
        "g-roles-with-capitals",
        "The template writes System, User and Assistant, as the set of data of a fine-tune did.",
        "configuration",
        (
            Text(BEGINS, BEGINS.replace("message.role", "message.role | capitalize")),
            Text("<|im_start|>system", "<|im_start|>System"),
            Text("<|im_start|>assistant", "<|im_start|>Assistant"),
            Shipped(),
        ),
        mend="template",
    ),
    Fault(
        "g-tools-as-whole-json",
        "The template shows each tool as the whole object of the request, not in the line of the training.",
        "configuration",
        (
            Text(LINE, "{{- tool | tojson -}}"),
            Text(DESCRIBED, ""),
            Text("'Tools:\\n'", "'<tools>\\n'"),
            Text("'Call: ", "'</tools>\\nCall: "),
            Shipped(),
        ),
        mend="template",
    ),
    Fault(
        "g-results-want-a-name",
        "The template puts the tool's name before its result, which clients of this interface do not send.",
        "configuration",
        (
            Text(
                OTHERS,
                "{%- elif message.role == 'tool' -%}\n"
                "    {{- '[' + message.name + '] ' + message.content -}}\n  " + OTHERS,
            ),
            Shipped(),
        ),
        mend="template",
        bitten="templates of Gemma and of Kimi that take message.name for granted",
    ),
    Fault(
        "g-system-refused",
        "The template raises where the system speaks.",
        "configuration",
        (
            Text(
                HEADED,
                "{%- if messages and messages[0].role == 'system' -%}"
                "{{ raise_exception('System role not supported') }}{%- endif -%}\n" + HEADED,
            ),
            Shipped(),
        ),
        mend="template",
        bitten="Gemma 2, and templates copied from it",
    ),
    Fault(
        "g-template-waits-for-parts",
        "The template reads what is said as a list of parts, as of a model that sees, and skips plain text.",
        "configuration",
        (
            Text(
                OTHERS,
                "{%- else -%}\n    {%- for part in message.content or [] if part.type == 'text' -%}"
                "{{- part.text -}}{%- endfor -%}",
            ),
            Shipped(),
        ),
        mend="template",
        bitten="text models cut out of ones that see, with the template of before",
    ),
    Fault(
        "g-tools-read-flat",
        "The template looks for a tool's name beside its type, where older clients had it.",
        "configuration",
        (
            Text(
                "{%- set function = tool.function if tool.function is defined else tool -%}",
                "{%- set function = tool -%}",
            ),
            Shipped(),
        ),
        base="qwen3coder",
        mend="template",
    ),
    Fault(
        "g-spaces-of-an-older-format",
        "The template writes spaces within [INST] and [/INST], as for the tokenizer of an earlier release.",
        "configuration",
        (Text(ASKED, "{{- '[INST] ' ~ (message.content or '') ~ ' [/INST]' -}}"), Shipped()),
        base="mistral",
        mend="template",
        bitten="Mistral's templates for its first and its third tokenizer",
    ),
    Fault(
        "g-tools-at-the-last-question-alone",
        "The template shows tools before the last message where a user speaks in it, and else nowhere.",
        "configuration",
        (
            Text("{%- if tools -%}\n  " + AVAILABLE + "\n{%- endif -%}\n", ""),
            Text(ASKED, "{%- if tools and loop.last -%}" + AVAILABLE + "{%- endif -%}\n    " + ASKED),
            Shipped(),
        ),
        base="mistral",
        mend="template",
        bitten="the template of Mistral 7B Instruct v0.3",
    ),
    Fault(
        "g-switch-forgotten",
        "A fine-tuner tidied the template and took away where thinking is switched off.",
        "configuration",
        (
            Text("{%- if enable_thinking is defined and not enable_thinking -%}", "{%- if false -%}"),
            Shipped(),
        ),
        mend="template",
    ),
    Fault(
        "g-second-template-in-its-folder",
        "A template for documents lies in additional_chat_templates: MLX infers no parser from two.",
        "configuration",
        (Beside("additional_chat_templates/rag.jinja", RAG), Shipped()),
        mend="additional_chat_templates",
        bitten="repositories saved again by transformers, which makes files of a list of templates",
    ),
    Fault(
        "g-prompts-in-python-of-another",
        "tokenizer_config.json has a chat_template_type, which puts the prompt format of DeepSeek in place.",
        "configuration",
        (Json("tokenizer_config.json", {"chat_template_type": "deepseek_v32"}), Shipped()),
        mend="chat_template_type",
        bitten="a tokenizer_config.json copied from a conversion of mlx-community",
    ),
)
