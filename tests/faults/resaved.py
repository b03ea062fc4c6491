"""Repositories that were converted, merged or copied: what gets lost between a good model and the folder."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.steps import Blank, Json, Text, Whole

POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:0f4c1f0a6b1de0c5a9a7a3a7a9f2f7a2a3b7d1c9d3f2e3b1a4c5d6e7f8091a2b\n"
    "size 268435456\n"
)
WITHOUT_ACCENTS = {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]}

FAULTS = (
    Fault("beginning-left-to-the-tokenizer",
          "The template no longer writes the token that begins a text, and the tokenizer never did.",
          "configuration", (Text("{{- '<s>' -}}", ""),), base="mistral",
          given=(Json("tokenizer_config.json", {"bos_token": "<s>"}),), mend="template",
          bitten="templates of files in which the loader adds the beginning"),
    Fault(
        "end-token-amid-words",
        "generation_config.json is a sibling's: one of its end tokens is a plain word here.",
        "configuration",
        (Json("generation_config.json", {"eos_token_id": [2, 0, 328]}),),  # 328 is " is"
        mend="generation_config.json",
        bitten="end tokens by number, copied between models with other vocabularies",
    ),
    Fault("end-token-amid-signs", "One of the end tokens in generation_config.json is the comma.",
          "configuration", (Json("generation_config.json", {"eos_token_id": [2, 0, 18]}),),  # 18 is ","
          mend="generation_config.json", bitten="end tokens by number, copied between models"),
    Fault("accents-stripped", "The tokenizer was saved again with a normalizer that takes accents off.",
          "configuration", (Json("tokenizer.json", {"normalizer": WITHOUT_ACCENTS}),), mend="tokenizer"),
    Fault("decoder-lost", "The tokenizer was saved again without its decoder: spaces come out as Ġ.",
          "configuration", (Json("tokenizer.json", {"decoder": None}),), mend="tokenizer",
          bitten="Ġ and Ċ in answers after a conversion"),
    Fault("markers-never-trained",
          "An adapter was merged without its embeddings: the rows of <tool_call> and </tool_call> are empty.",
          "model", (Blank(("<tool_call>", "</tool_call>")),),
          bitten="adapters that add tokens, merged without the saved embeddings"),
    Fault("weights-are-a-pointer",
          "The weights were cloned without Git LFS: three lines that name them lie in their place.",
          "environment", (Whole(POINTER, "model.safetensors"),),
          bitten="HeaderTooLarge after git clone without git lfs"),
)  # fmt: skip
