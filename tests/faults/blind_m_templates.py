"""Faults of round m in what the publisher or the user wrote: templates, tokenizers, configs, the document."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.steps import Json, Says, Shipped, Text

TURNS = "{%- for message in messages[headed:] -%}"
ALTERNATE = """
  {%- if (message.role in ['user', 'tool']) != (loop.index0 % 2 == 0) -%}
    {{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') -}}
  {%- endif -%}"""
FUNCTION = "{%- set function = tool.function if tool.function is defined else tool -%}"
KEYS = "{%- set keys = function.parameters.properties.keys() | list -%}"
BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
PLAIN = {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]}

FAULTS: tuple[Fault, ...] = (
    Fault(
        "m-window-of-turns",
        "The template writes the last three turns alone; what was said before is lost.",
        "configuration",
        (Text(TURNS, "{%- for message in messages[headed:][-3:] -%}"), Shipped()),
    ),
    Fault(
        "m-tools-need-parameters",
        "A tool without parameters ends each request that offers it in an error.",
        "configuration",
        (Text(FUNCTION, FUNCTION + KEYS), Shipped()),
    ),
    Fault(
        "m-text-as-html",
        "Quotes, ampersands and angle brackets of messages reach the model as entities.",
        "configuration",
        (Text("{{- message.content or '' -}}", "{{- (message.content or '') | e -}}"), Shipped()),
    ),
    Fault(
        "m-roles-alternate",
        "Two results in a row, and two questions in a row, are refused by the template.",
        "configuration",
        (Text(TURNS, TURNS + ALTERNATE), Shipped()),
        bitten="users of Mistral's and Gemma's templates with parallel calls",
    ),
    Fault(
        "m-system-lost-with-tools",
        "Where tools are offered the system's words do not reach the model.",
        "configuration",
        (
            Text(
                "messages[0].content or '' if headed else ''", "messages[0].content if headed and not tools"
            ),
            Shipped(),
        ),
    ),
    Fault(
        "m-ends-at-call",
        "The token that closes a call ends the answer: a second call never comes.",
        "configuration",
        (Json("generation_config.json", {"eos_token_id": [2, 0, 4]}),),
    ),
    Fault(
        "m-observation-not-an-end",
        "Behind a call the model goes on and invents the tool's result.",
        "configuration",
        (
            Json("generation_config.json", {"eos_token_id": [4, 0]}),
            Json("config.json", {"eos_token_id": [4, 0]}),
        ),
        "glm",
        bitten="users of GLM-4 conversions",
    ),
    Fault(
        "m-space-in-front",
        "Each piece of text is cut as if a space stood before it.",
        "configuration",
        (Json("tokenizer.json", {"pre_tokenizer": BYTES}),),
    ),
    Fault(
        "m-accents-stripped",
        "Letters with accents reach the model without them: names are written wrong.",
        "configuration",
        (Json("tokenizer.json", {"normalizer": PLAIN}),),
    ),
    Fault(
        "m-positions-stretched",
        "The config stretches positions for a length that the model was not trained for.",
        "configuration",
        (Json("config.json", {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}),),
    ),
    Fault(
        "m-stop-at-blank-line",
        "A stop word of the document ends answers at the first empty line, right behind the thought.",
        "configuration",
        (Says({"stopwords": ["\n\n"]}),),
    ),
    Fault(
        "m-continues-last-turn",
        "A template variable of the document forbids the beginning of an answer: no chat is answered.",
        "configuration",
        (Says({"chat_template_kwargs": {"continue_final_message": True}}),),
    ),
)
