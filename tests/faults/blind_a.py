"""Faults by somebody who has not seen the probes: conversions of hobbyists, gateways of platforms."""

from __future__ import annotations

from tests.faults.blind_a_steps import (
    Adapter,
    AddedToken,
    Blended,
    BlocksSwapped,
    Clipped,
    Dangling,
    EndsSwapped,
    FarBytesLost,
    Flagged,
    LayerTaken,
    LayerTwice,
    Marked,
    MergesSorted,
    New,
    Ones,
    OneScale,
    Renamed,
    Stretched,
    Transposed,
    Typed,
)
from tests.faults.fault import Fault
from tests.faults.starting import Limited, Module, Variable, Wire
from tests.faults.steps import FileOf, Json, Says, Text

ROOM = (Says({"max_model_len": 600}),)
TURN = "{{- '<|im_start|>' ~ message.role ~ '\\n' -}}"
PLAIN = "{%- else -%}\n    {{- message.content or '' -}}"
OLDER = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ALTERNATE = (
    "{%- if not loop.first and loop.previtem.role == message.role and message.role != 'tool' -%}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{%- endif -%}"
)
PARAMETERS = "(function.parameters | default({}, true) | tojson)"
ARGUMENTS = "(arguments if arguments is string else arguments | tojson)"
EVERY = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>")
SPACES = {"type": "Replace", "pattern": {"Regex": "[ \\t]+"}, "content": " "}

FAULTS = (
    # Templates that were written by hand.
    Fault(
        "template-wants-turns-to-alternate",
        "The template raises where somebody speaks twice in a row.",
        "configuration",
        (Text(TURN, ALTERNATE + "\n  " + TURN),),
        bitten="Conversation roles must alternate, Mistral's and Gemma's templates behind agents",
    ),
    Fault(
        "template-drops-later-systems",
        "The template renders a system's turn in front only; reminders amid a conversation are left out.",
        "configuration",
        (
            Text(
                "{%- for message in messages[headed:] -%}",
                "{%- for message in messages[headed:] if message.role != 'system' -%}",
            ),
        ),
    ),
    Fault(
        "template-trims-what-is-said",
        "The template takes white space off both ends of what is said: indents and last lines are lost.",
        "configuration",
        (Text(PLAIN, "{%- else -%}\n    {{- (message.content or '') | trim -}}"),),
        bitten="content | trim in Llama's and Gemma's templates, over pieces of code and diffs",
    ),
    Fault(
        "template-takes-a-name-for-a-role",
        "Where a turn has a name the template writes it in the place of the role.",
        "configuration",
        (Text(TURN, "{{- '<|im_start|>' ~ (message.name or message.role) ~ '\\n' -}}"),),
        bitten="templates for groups of characters",
    ),
    Fault(
        "template-lists-names-of-parameters",
        "Of a tool's parameters the template shows the names, and no type, enum or what is required.",
        "configuration",
        (Text(PARAMETERS, "(function.parameters.properties | default({}) | join(', '))"),),
        bitten="templates that save room",
    ),
    Fault(
        "template-renders-words-or-calls",
        "An earlier turn that has both words and calls is rendered with its words alone.",
        "configuration",
        (
            Text(
                "{%- for call in message.tool_calls or [] -%}",
                "{%- for call in ([] if message.content else message.tool_calls or []) -%}",
            ),
        ),
        bitten="if content … elif tool_calls …, in many templates",
    ),
    Fault(
        "template-wraps-long-lines",
        "The template breaks lines of what is said after 79 letters.",
        "configuration",
        (Text(PLAIN, "{%- else -%}\n    {{- (message.content or '') | wordwrap(79) -}}"),),
    ),
    Fault(
        "template-strips-tags",
        "The template takes all that looks like a tag out of what users and tools say.",
        "configuration",
        (Text(PLAIN, "{%- else -%}\n    {{- (message.content or '') | striptags -}}"),),
        bitten="a sanitizer of a chat page, moved into the template",
    ),
    Fault(
        "template-with-a-mark-of-byte-order",
        "An editor has put a mark of byte order before the template: each prompt begins with it.",
        "configuration",
        (Marked(),),
    ),
    Fault(
        "template-for-tools-is-older",
        "Beside the template lies another one for requests with tools, from a release that knew none.",
        "configuration",
        (New("additional_chat_templates/tool_use.jinja", OLDER),),
        bitten="transformers takes tool_use where there are tools",
    ),
    Fault(
        "template-encodes-results-again",
        "The template writes a tool's result as JSON, which it is already.",
        "configuration",
        (
            Text(
                PLAIN,
                "{%- elif message.role == 'tool' -%}\n    {{- message.content | tojson -}}\n  " + PLAIN,
            ),
        ),
    ),
    Fault(
        "template-shows-tools-behind-a-system-alone",
        "The template shows tools only where a system speaks.",
        "configuration",
        (Text("{%- if preface or tools -%}", "{%- if preface -%}"),),
    ),
    Fault(
        "template-of-another-jinja",
        "The template uses a filter that the engine's Jinja lacks, where a call was made before.",
        "configuration",
        (Text("arguments | tojson)", "arguments | to_json)"),),
        bitten="templates written for another engine's renderer",
    ),
    Fault(
        "template-leaks-its-indents",
        "Somebody took the dashes out of the template's brackets: its indents are part of each prompt.",
        "configuration",
        (Text("{{-", "{{"), Text("-}}", "}}")),
    ),
    Fault(
        "template-keeps-every-thought",
        "The template renders the thoughts of all earlier turns.",
        "configuration",
        (Text("{%- if thought and loop.index0 + headed > latest.question -%}", "{%- if thought -%}"),),
    ),
    # Tokenizers.
    Fault(
        "letters-made-compatible",
        "The tokenizer was saved again with a normalizer that writes x² as x2.",
        "configuration",
        (Json("tokenizer.json", {"normalizer": {"type": "NFKC"}}),),
    ),
    Fault(
        "spaces-made-one",
        "The tokenizer was saved again with a normalizer that makes several spaces one.",
        "configuration",
        (Json("tokenizer.json", {"normalizer": SPACES}),),
        bitten="T5's and ALBERT's normalizers, under models that write code",
    ),
    Fault(
        "tokens-as-single-words",
        "The added tokens were saved as ones that count between spaces only.",
        "configuration",
        (Flagged("single_word", True, EVERY),),
        given=ROOM,
    ),
    Fault(
        "token-beyond-the-embedding",
        "The template writes a token that was added to the tokenizer and never to the weights.",
        "configuration",
        (
            AddedToken("<|tool_response|>", 640),
            Text(
                PLAIN,
                "{%- elif message.role == 'tool' -%}\n    {{- '<|tool_response|>' ~ message.content -}}\n  "
                + PLAIN,
            ),
        ),
        bitten="add_special_tokens without resize_token_embeddings",
    ),
    Fault(
        "far-bytes-lost",
        "The vocabulary was cut down to ASCII: letters beyond vanish from prompts.",
        "configuration",
        (FarBytesLost(),),
        bitten="vocabularies trimmed for one language",
    ),
    Fault(
        "merges-drawn-by-lot",
        "The tokenizer was saved with the dropout of its training: merges are left out by chance.",
        "configuration",
        (Json("tokenizer.json", {"model.dropout": 0.3}),),
        bitten="BPE dropout left in tokenizer.json",
    ),
    Fault(
        "merges-in-the-alphabets-order",
        "A script has sorted the tokenizer's merges.",
        "configuration",
        (MergesSorted(),),
        given=ROOM,
    ),
    Fault(
        "call-markers-are-special",
        "The tokens around a call were saved as special ones, which are left out of what is decoded.",
        "configuration",
        (Flagged("special", True, ("<tool_call>", "</tool_call>", "<think>", "</think>")),),
    ),
    Fault(
        "tokenizer-config-of-another-model",
        "tokenizer_config.json is another model's: its end token is none here.",
        "configuration",
        (FileOf("mistral", "tokenizer_config.json"),),
        given=ROOM,
    ),
    Fault(
        "class-of-another-family",
        "tokenizer_config.json names the class of another family's tokenizers.",
        "configuration",
        (Json("tokenizer_config.json", {"tokenizer_class": "LlamaTokenizer"}),),
        given=ROOM,
    ),
    # Weights.
    Fault("layer-cut-out", "A layer was cut out and nothing healed.", "model", (LayerTaken(1),), given=ROOM),
    Fault("layer-stacked-twice", "A layer stands twice.", "model", (LayerTwice(1),), given=ROOM),
    Fault(
        "merged-with-a-stranger",
        "The weights are the mean with a model of another tokenizer.",
        "model",
        (Blended("qwen3coder", 0.5),),
        given=ROOM,
    ),
    Fault(
        "shard-of-another-checkpoint",
        "The last layer's weights are another model's of the same shape.",
        "model",
        (Blended("qwen3coder", 1.0, "model.layers.2."),),
        given=ROOM,
    ),
    Fault(
        "gate-and-up-swapped",
        "A fused tensor was split the wrong way round: gate and up have each other's place.",
        "model",
        (EndsSwapped("mlp.gate_proj.weight", "mlp.up_proj.weight"),),
        given=ROOM,
    ),
    Fault(
        "keys-of-the-other-head",
        "The two heads of keys have each other's place, those of values do not.",
        "model",
        (BlocksSwapped(("k_proj.weight",), 32),),
        given=ROOM,
    ),
    Fault(
        "square-matrices-transposed",
        "A converter has turned square matrices over, where no shape could tell.",
        "model",
        (Transposed(("k_proj.weight", "v_proj.weight")),),
        given=ROOM,
    ),
    Fault(
        "norms-of-queries-lost",
        "The norms of queries and keys were not converted, and are one.",
        "model",
        (Ones(("q_norm.weight", "k_norm.weight")),),
        given=ROOM,
    ),
    Fault(
        "norms-of-a-layer-swapped",
        "The norms before attention and before the rest of a layer have each other's place.",
        "model",
        (EndsSwapped("input_layernorm.weight", "post_attention_layernorm.weight"),),
        given=ROOM,
    ),
    Fault("scales-forgotten", "Eight bits without their scales.", "model", (Stretched(),), given=ROOM),
    Fault("large-weights-clipped", "Outliers were clipped.", "model", (Clipped(0.8),), given=ROOM),
    Fault("one-scale-for-a-matrix", "Three bits, one scale for each.", "model", (OneScale(3),), given=ROOM),
    Fault("type-of-another-name", "The header says float16 of bfloat16.", "model", (Typed("F16"),), given=ROOM),
    Fault(
        "names-of-the-trainer",
        "The tensors have the names that they had in training, behind a prefix.",
        "model",
        (Renamed("base_model."),),
        given=ROOM,
    ),
    # Documents and starts.
    Fault("adapter-of-another-model", "The document names another model's adapter.", "configuration", (Adapter(),)),
    Fault(
        "architecture-of-a-cousin",
        "config.json names the kind of model before this one.",
        "configuration",
        (Json("config.json", {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}),),
    ),
    Fault(
        "variable-for-the-library",
        "A variable in the document has the name of one of the tokenizer's own arguments.",
        "configuration",
        (Says({"chat_template_kwargs": {"tokenize": False}}),),
    ),
    Fault(
        "default-template-wanted",
        "use_default",
        "configuration",
        (Says({"engine_args": {"use_default_chat_template": True}}),),
    ),
    Fault(
        "presence-penalty",
        "presence 2",
        "configuration",
        (Says({"parameters.presence_penalty": 2.0}),),
    ),
    Fault(
        "frequency-penalty",
        "frequency 2",
        "configuration",
        (Says({"parameters.frequency_penalty": 1.5}),),
    ),
    # Machines.
    Fault(
        "pythonhome-of-another-python",
        "PYTHONHOME names another Python's folder.",
        "environment",
        (Variable("PYTHONHOME", "/opt/miniconda3"),),
    ),
    Fault("warnings-are-errors", "PYTHONWARNINGS", "environment", (Variable("PYTHONWARNINGS", "error"),)),
    Fault("processor-time-limited", "cpu", "environment", (Limited("RLIMIT_CPU", 7),)),
    Fault("weights-link-to-nothing", "link", "environment", (Dangling("model.safetensors"),)),
    Fault(
        "clock-of-1970",
        "clock",
        "environment",
        (Module("sitecustomize", "import time\n_was, _at = time.time, time.time()\ntime.time = lambda: _was() - _at\n"),),
    ),
    Fault("tmp", "no TMPDIR", "environment", (Variable("TMPDIR", "/nonexistent"),)),
)
