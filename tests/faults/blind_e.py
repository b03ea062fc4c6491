"""A blind round: faults by an author who has not seen the probes. What publishers and users do to models.

Here are the faults of configuration; ``blind_e_parts.py`` has the rest.
"""

from __future__ import annotations

from tests.faults.blind_e_mends import MENDS
from tests.faults.blind_e_parts import ELSEWHERE
from tests.faults.blind_e_steps import Edits, TemplateTwice
from tests.faults.blind_e_twins import TWINS
from tests.faults.fault import Fault, Part
from tests.faults.steps import Json, Says, Shipped, Text, Whole

ALPACA = (
    "{%- for m in messages -%}"
    "{%- if m.role == 'user' -%}{{- '### Instruction:\\n' ~ m.content ~ '\\n\\n' -}}"
    "{%- elif m.role == 'tool' -%}{{- '### Input:\\n' ~ m.content ~ '\\n\\n' -}}"
    "{%- elif m.role == 'assistant' -%}{{- '### Response:\\n' ~ (m.content or '') -}}"
    "{%- for call in m.tool_calls or [] -%}{%- set tool_call = call.function -%}"
    "{{- '<tool_call>\\n' ~ {'name': tool_call.name, 'arguments': tool_call.arguments} | tojson -}}"
    "{{- '\\n</tool_call>' -}}{%- endfor -%}{{- '\\n\\n' -}}"
    "{%- else -%}{{- m.content ~ '\\n\\n' -}}{%- endif -%}"
    "{%- if loop.first and tools -%}{{- 'Tools:\\n' ~ tools | tojson ~ '\\n\\n' -}}{%- endif -%}"
    "{%- endfor -%}{%- if add_generation_prompt -%}{{- '### Response:\\n' -}}{%- endif -%}"
)
LISTED = "{{- '- ' ~ function.name ~ ' ' ~ (function.parameters | default({}, true) | tojson) -}}"
DESCRIBED = "{{- ' ' ~ function.description if function.description else '' -}}"
BEGUN = "{{- '<|im_start|>' ~ message.role ~ '\\n' -}}"
OTHERWISE = "{%- else -%}\n    {{- message.content or '' -}}"
ASKED = "{{- '<|im_start|>assistant\\n' -}}"
BY: Part = "configuration"
__all__ = ("FAULTS", "MENDS", "TWINS")

TEMPLATES = (
    Fault(
        "role-words-of-another-family",
        "The template calls the assistant by the word of another family.",
        BY,
        (
            Shipped(),
            Edits(
                (
                    (
                        BEGUN,
                        BEGUN.replace(
                            "message.role", "{'assistant': 'model'}.get(message.role, message.role)"
                        ),
                    ),
                    (ASKED, "{{- '<|im_start|>model\\n' -}}"),
                )
            ),
        ),
    ),
    Fault(
        "turns-never-ended",
        "The template ends no turn of the history: the token that separates turns is missing.",
        BY,
        (Shipped(), Text("{{- '<|im_end|>\\n' -}}\n{%- endfor -%}", "{{- '\\n' -}}\n{%- endfor -%}")),
    ),
    Fault(
        "template-of-instructions",
        "The template has headings in plain words, as the first fine-tunes had.",
        BY,
        (Shipped(), Whole(ALPACA)),
    ),
    Fault(
        "template-escapes",
        "The template makes what users and tools say safe for a web page.",
        BY,
        (Shipped(), Text(OTHERWISE, "{%- else -%}\n    {{- (message.content or '') | e -}}")),
        bitten="arguments escaped for HTML, mistral-common 311",
    ),
    Fault(
        "template-cuts-results",
        "The template shows the first 40 letters of what a tool says.",
        BY,
        (
            Shipped(),
            Text(
                OTHERWISE,
                "{%- else -%}{%- set most = 40 if message.role == 'tool' else 4000 -%}"
                "{{- (message.content or '')[:most] -}}",
            ),
        ),
    ),
    Fault(
        "template-refuses-a-system-turn",
        "The template raises where the first turn is the system's.",
        BY,
        (
            Shipped(),
            Text(
                "{%- set preface =",
                "{%- if headed -%}{{- raise_exception('System role not supported') -}}{%- endif -%}"
                "{%- set preface =",
            ),
        ),
    ),
    Fault(
        "tools-listed-in-another-form",
        "The template lists tools as another family does, whole and between tags.",
        BY,
        (
            Shipped(),
            Edits(
                (
                    ("{{- 'Tools:\\n' -}}", "{{- '# Tools\\n\\n<tools>\\n' -}}"),
                    (LISTED, "{{- tool | tojson -}}"),
                    (DESCRIBED, ""),
                    (
                        "{{- 'Call: <tool_call>",
                        "{{- '</tools>\\n\\nReturn each call as a JSON object within tags:\\n<tool_call>",
                    ),
                )
            ),
        ),
    ),
    Fault(
        "a-second-template-for-tools",
        "A second template for chats with tools lies in the folder of further templates.",
        BY,
        (Shipped(), TemplateTwice("additional_chat_templates/tool_use.jinja")),
    ),
    Fault(
        "template-kind-of-another-family",
        "tokenizer_config.json names another family's template code.",
        BY,
        (Shipped(), Json("tokenizer_config.json", {"chat_template_type": "deepseek_v32"})),
    ),
)

TOKENIZERS = (
    Fault(
        "tokenizer-lowers-letters",
        "The tokenizer has a normalizer that makes all letters small.",
        BY,
        (Json("tokenizer.json", {"normalizer": {"type": "Lowercase"}}),),
    ),
    Fault(
        "tokenizer-without-a-decoder",
        "The tokenizer was saved without its decoder.",
        BY,
        (Json("tokenizer.json", {"decoder": None}),),
    ),
    Fault(
        "tokenizer-drops-merges-by-chance",
        "The tokenizer was saved with the dropout of its training.",
        BY,
        (Json("tokenizer.json", {"model.dropout": 0.3}),),
        bitten="each encoding is another, tokenizers 644",
    ),
    Fault(
        "ends-behind-the-first-call",
        "generation_config.json counts the token that closes a call among those that end an answer.",
        BY,
        (Json("generation_config.json", {"eos_token_id": [2, 0, 4]}),),
    ),
    Fault(
        "lengths-stretched",
        "config.json was given a factor for longer texts, which changes the short ones, too.",
        BY,
        (
            Json(
                "config.json",
                {
                    "rope_scaling": {
                        "rope_type": "yarn",
                        "factor": 4.0,
                        "original_max_position_embeddings": 512,
                    }
                },
            ),
        ),
    ),
)

DOCUMENTS = (
    Fault(
        "document-repeats-the-call",
        "The document gives the template what the library's own examples give the tokenizer.",
        BY,
        (Says({"chat_template_kwargs": {"tokenize": False, "add_generation_prompt": True}}),),
    ),
    Fault(
        "document-stops-at-lines",
        "A colleague made a line break a stop word.",
        BY,
        (Says({"stopwords": ["\n"]}),),
    ),
)

FAULTS: tuple[Fault, ...] = (*TEMPLATES, *TOKENIZERS, *DOCUMENTS, *ELSEWHERE)
