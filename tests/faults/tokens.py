"""End tokens, special tokens, tokenizers."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.steps import FileOf, Json, Says, TokenLost

FAULTS = (
    Fault("end-token-unknown", "Nothing says that <|im_end|> ends a turn.", "configuration",
          (Json("config.json", {"eos_token_id": 0}), Json("generation_config.json", {"eos_token_id": 0}),
           Json("tokenizer_config.json", {"eos_token": "<|endoftext|>"})),
          given=(Says({"max_model_len": 600}),), mend="<|im_end|>",
          bitten="end token and template do not match, mlx-vlm 1191"),
    Fault("end-of-calls-unknown",
          "Only one of the two tokens that end a turn is known: after a call the model goes on.",
          "configuration", (Json("generation_config.json", {"eos_token_id": [4, 0]}),), base="glm",
          apart={"vllm-mlx": "its parser for GLM ends an answer there by itself"}, mend="<|observation|>"),
    Fault("tokenizer-of-another-model", "The tokenizer beside the weights is another model's.",
          "configuration", (FileOf("mistral", "tokenizer.json"),), given=(Says({"max_model_len": 600}),),
          mend="tokenizer"),
    Fault("marker-is-no-token",
          "The token that begins a turn is no token of the tokenizer's: it is cut into pieces.",
          "configuration", (TokenLost("<|im_start|>"),), given=(Says({"max_model_len": 600}),),
          mend="tokenizer", bitten="special tokens as plain text"),
)  # fmt: skip
