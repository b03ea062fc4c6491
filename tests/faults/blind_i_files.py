"""A ninth blind round: tokenizer, config.json and the document, edited by hand or saved by another tool."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.steps import Json, Says

TOKENIZER = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
PLAIN_LETTERS = {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]}

FAULTS = (
    Fault(
        "i-dropout-left-on",
        "The tokenizer was saved with the dropout of merges that its training used.",
        "configuration",
        (Json(TOKENIZER, {"model.dropout": 0.1}),),
    ),
    Fault(
        "i-accents-stripped",
        "The tokenizer's normalizer takes the accents off all letters.",
        "configuration",
        (Json(TOKENIZER, {"normalizer": PLAIN_LETTERS}),),
    ),
    Fault(
        "i-yarn-by-hand",
        "config.json stretches positions for texts that are four times as long, by hand.",
        "configuration",
        (
            Json(
                "config.json",
                {
                    "rope_scaling": {
                        "rope_type": "yarn",
                        "type": "yarn",
                        "factor": 4.0,
                        "original_max_position_embeddings": 512,
                    }
                },
            ),
        ),
    ),
    Fault(
        "i-end-of-the-base",
        "config.json and generation_config.json name the end of the base model, not that of turns.",
        "configuration",
        (
            Json("config.json", {"eos_token_id": 0}),
            Json("generation_config.json", {"eos_token_id": 0}),
            Json(SETTINGS, {"eos_token": "<|endoftext|>"}),
        ),
    ),
    Fault(
        "i-thoughts-stopped",
        "A colleague made the end of thoughts a stop word, to be rid of the thoughts.",
        "configuration",
        (Says({"stopwords": ["</think>"]}),),
    ),
    Fault(
        "i-cache-in-two-bits",
        "A colleague let the engine keep its cache in two bits.",
        "configuration",
        (Says({"engine_args": {"kv_bits": 2, "kv_group_size": 32, "quantized_kv_start": 0}}),),
    ),
    Fault(
        "i-answers-cut-by-the-document",
        "A colleague lowered the document's max_tokens to a dozen, to try something.",
        "configuration",
        (Says({"parameters.max_tokens": 12}),),
    ),
    Fault(
        "i-sampling-of-a-poet",
        "A colleague made the document's sampling as free as it can be.",
        "configuration",
        (Says({"parameters.temperature": 1.5, "parameters.top_p": 1.0, "parameters.top_k": -1}),),
    ),
)
