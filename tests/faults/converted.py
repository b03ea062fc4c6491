"""Repositories that a script has converted: tokens moved, numbers lost, tensors under another's name."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.steps import Json, NotNumbers, Recorded, Says, Shifted, TensorsSwapped, TokensSwapped

ROOM = (Says({"max_model_len": 600}),)
TEXT, END = {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<|im_end|>", "type_id": 0}}
ENDED = {
    "type": "TemplateProcessing",
    "single": [TEXT, END],
    "pair": [TEXT, END, {"Sequence": {"id": "B", "type_id": 1}}, END],
    "special_tokens": {"<|im_end|>": {"id": "<|im_end|>", "ids": [2], "tokens": ["<|im_end|>"]}},
}
SPACED = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}

FAULTS = (
    Fault(
        "added-tokens-in-another-order",
        "Added tokens were added again in another order: </think> and <tool_call> have each other's number.",
        "configuration",
        (TokensSwapped("</think>", "<tool_call>"),),
        given=ROOM,
        mend="tokenizer",
        bitten="tokens added by a script, in the order of a set",
    ),
    Fault("merges-lost", "The tokenizer was saved again without its merges: every word is spelled.",
          "configuration", (Json("tokenizer.json", {"model.merges": []}),), given=ROOM, mend="tokenizer",
          bitten="merges written in a form that the reader does not know"),
    Fault("space-before-every-text", "The tokenizer was saved again with a space before every text.",
          "configuration", (Json("tokenizer.json", {"pre_tokenizer": SPACED}),), mend="tokenizer",
          bitten="add_prefix_space, and legacy tokenizers converted again"),
    Fault("letters-made-small",
          "The tokenizer was saved again with a normalizer that writes all letters small.", "configuration",
          (Json("tokenizer.json", {"normalizer": {"type": "Lowercase"}}),), mend="tokenizer",
          bitten="do_lower_case of another family"),
    Fault("positions-of-a-sibling",
          "config.json is a sibling's with a longer context: its rope_theta is a hundred times the model's.",
          "environment", (Json("config.json", {"rope_theta": 1_000_000.0}), Recorded()), given=ROOM,
          mend="config.json", bitten="config.json copied between sizes of a family"),
    Fault("head-of-its-own-that-is-not-there",
          "config.json says that the model has an output layer of its own; the weights hold none.",
          "configuration", (Json("config.json", {"tie_word_embeddings": False}),), mend="config.json",
          bitten="tie_word_embeddings left out by a converter"),
    Fault("layers-in-another-order", "Two layers of the weights have each other's name.", "model",
          (TensorsSwapped("model.layers.0.", "model.layers.2."),), given=ROOM, mend="weights",
          bitten="merges of layers, sorted by name: 10 before 2"),
    Fault("weights-hold-no-numbers",
          "A tensor holds no numbers: it grew too large for the type it was saved in.", "model",
          (NotNumbers("model.layers.1.mlp.down_proj.weight"),), given=ROOM, mend="weights",
          bitten="bfloat16 saved as float16"),
    Fault("rows-one-further", "The embedding's rows stand one further down: somebody put a token in front.",
          "model", (Shifted("model.embed_tokens.weight", 1),), given=ROOM, mend="weights",
          bitten="embeddings resized from the wrong end"),
    Fault("end-added-to-each-text",
          "The tokenizer still ends each text as in its training: a text to be completed is over at once.",
          "configuration", (Json("tokenizer.json", {"post_processor": ENDED}),), mend="tokenizer",
          bitten="add_eos_token left at true"),
    Fault("suffix-of-another-kind",
          "The tokenizer was saved again with a suffix that no word of the vocabulary has.", "configuration",
          (Json("tokenizer.json", {"model.end_of_word_suffix": "</w>"}),), mend="tokenizer"),
)  # fmt: skip
