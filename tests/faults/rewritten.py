"""Templates written again by somebody who had one conversation in mind: others break, or change."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.steps import Text

THINKS = "enable_thinking is defined and not enable_thinking"
HEAD = "{{- '<|im_start|>system\\n' ~ preface ~ '<|im_end|>\\n' -}}"
CLOCK = "~ strftime_now('%H:%M:%S.%f') ~ '\\n' ~"

FAULTS = (
    Fault("template-keeps-the-first-call-alone",
          "Of several calls of one turn the template renders the first.", "configuration",
          (Text("for call in message.tool_calls or []", "for call in (message.tool_calls or [])[:1]"),),
          mend="template", bitten="templates made for one call a turn"),
    Fault("template-writes-arguments-as-python",
          "The template writes the arguments of earlier calls as Python does, and not as JSON.",
          "configuration",
          (Text("(arguments if arguments is string else arguments | tojson)", "arguments | string"),),
          mend="template", bitten="single quotes in the history, and then in the model's own calls"),
    Fault("template-tells-the-time",
          "The template writes the time of day before everything, so that no prompt begins like another.",
          "configuration",
          (Text("'<|im_start|>system\\n' ~ preface", f"'<|im_start|>system\\n' {CLOCK} preface"),),
          mend="template", bitten="a prefix cache that never hits in agents' loops"),
    Fault("template-thinks-the-other-way",
          "The template closes the thinking block where it is asked to think, and leaves it where it is not.",
          "configuration", (Text(f"if {THINKS}", f"if not ({THINKS})"),), mend="template",
          bitten="the template's default and the parser's differ, SGLang 20833"),
    Fault(
        "template-counts-tools-that-are-none",
        "The template takes the length of the tools, which breaks where a system speaks and there are none.",
        "configuration",
        (Text("{%- if tools -%}", "{%- if tools | length -%}"),),
        mend="template",
        bitten="templates tried with tools only",
    ),
    Fault("template-takes-the-first-turn-for-the-systems",
          "The template leaves the first turn out, whoever speaks, as where a system always comes first.",
          "configuration", (Text("messages[headed:]", "messages[1:]"),), mend="template",
          bitten="templates tried with a system only"),
    Fault("template-cuts-long-results", "The template renders the first 24 letters of what a tool has said.",
          "configuration",
          (Text("{%- else -%}\n    {{- message.content or '' -}}",
                "{%- elif message.role == 'tool' -%}{{- message.content[:24] -}}"
                "{%- else -%}\n    {{- message.content or '' -}}"),), mend="template",
          bitten="templates that save room"),
    Fault("template-shows-tools-behind-the-question",
          "The template shows the tools in a turn of the system's behind all others.", "configuration",
          (Text("{%- if preface or tools -%}\n  {{- '<|im_start|>system\\n' ~ preface -}}",
                f"{{%- if preface -%}}{HEAD}{{%- endif -%}}{{%- set shown -%}}"
                "{{- '<|im_start|>system\\n' -}}"),
           Text("  {{- '<|im_end|>\\n' -}}\n{%- endif -%}\n{%- for",
                "  {{- '<|im_end|>\\n' -}}\n{%- endset -%}\n{%- for"),
           Text("{%- if add_generation",
                "{%- if tools -%}{{- shown -}}{%- endif -%}\n{%- if add_generation")), mend="template",
          bitten="templates of families that want them there"),
    Fault("template-closes-no-turn-of-the-assistants",
          "The template writes no end after an earlier turn of the assistant.", "configuration",
          (Text("  {{- '<|im_end|>\\n' -}}\n{%- endfor -%}",
                "  {{- '\\n' if message.role == 'assistant' else '<|im_end|>\\n' -}}\n{%- endfor -%}"),),
          mend="template", bitten="templates made for training on the last answer"),
)  # fmt: skip
