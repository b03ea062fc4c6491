"""Templates and documents that somebody has edited: each change looks harmless where it was made."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.steps import Says, Text

QUICK = (
    "{% for turn in messages %}<|im_start|>{{ turn['role'] }}\n{{ turn['content'] }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n"
)
ANOTHER_FOLLOWS = "message.role == 'tool' and loop.nextitem is defined and loop.nextitem.role == 'tool'"

FAULTS = (
    Fault("template-escapes-as-a-page",
          "The template writes JSON as for a web page: every quotation mark is &#34;.", "configuration",
          (Text("| tojson", "| tojson | e"),), mend="template",
          bitten="template engines that escape by default"),
    Fault("template-shows-the-first-tool-alone",
          "Of the tools that are offered the template shows the first.", "configuration",
          (Text("for tool in tools -%}", "for tool in tools[:1] -%}"),), mend="template"),
    Fault("template-keeps-the-last-result-alone",
          "Where several tools have answered the template renders what the last one said.", "configuration",
          (Text("{{- '<|im_start|>' ~ message.role ~ '\\n' -}}",
                f"{{%- if not ({ANOTHER_FOLLOWS}) -%}}{{{{- '<|im_start|>' ~ message.role ~ '\\n' -}}}}"),
           Text("{{- '<|im_end|>\\n' -}}\n{%- endfor -%}",
                "{{- '<|im_end|>\\n' -}}{%- endif -%}\n{%- endfor -%}")), mend="template",
          bitten="templates made for one call a turn"),
    Fault("template-forbids-tools",
          "The template puts a sentence of its own before everything: tools must not be called.",
          "configuration",
          (Text("set preface = messages[0].content or '' if headed else ''",
                "set preface = 'Answer in words. Never call a tool.'"
                " ~ (' ' ~ messages[0].content if headed else '')"),), mend="template",
          bitten="default system prompts in templates"),
    Fault("engine-argument-brings-a-template",
          "An engine argument in the document hands the engine a template without tools.", "configuration",
          (Says({"engine_args": {"chat_template": QUICK}}),),
          apart={"mlx-vlm": "its server takes no template as an argument"}, mend="chat_template",
          bitten="a --chat-template left over from another model"),
    Fault("switch-in-quotes",
          "The document switches thinking off by the text 'false', which a template takes for yes.",
          "configuration", (Says({"chat_template_kwargs": {"enable_thinking": "false"}}),),
          given=(Says({"chat_template_kwargs": {"enable_thinking": False}}),), mend="enable_thinking",
          bitten="values that went through a shell or a form"),
)  # fmt: skip
