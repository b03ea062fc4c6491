"""The models' recipes: one wire format each, its tokens, its way to end a turn and to think."""

from __future__ import annotations

from pathlib import Path

from tools.demo_model.recipe import DEMO, Recipe

HERE = Path(__file__).parent

# Turns between markers, arguments as XML parameters; never thinks.
QWEN3_CODER = Recipe(
    HERE / "qwen3coder",
    ("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    ("<tool_call>", "</tool_call>"),
    "<|im_end|>",
    thinks="never",
)
# Bare JSON with parameters; a turn that calls ends with a token of its own.
LLAMA3 = Recipe(
    HERE / "llama3",
    ("<|finetune_right_pad_id|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
     "<|eot_id|>", "<|eom_id|>", "<|python_tag|>"),
    (),
    "<|eot_id|>",
    "<|eom_id|>",
    thinks="never",
)  # fmt: skip
# A token in front of a JSON list of calls; ids of nine letters and digits.
MISTRAL = Recipe(
    HERE / "mistral",
    ("<pad>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
     "[/TOOL_RESULTS]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
    ("[TOOL_CALLS]",),
    "</s>",
    thinks="never",
)  # fmt: skip
# Keys and values in tags of their own, nothing between them; the prompt opens or closes the thinking block,
# and a turn ends where the next one's role begins.
GLM = Recipe(
    HERE / "glm",
    ("<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"),
    ("<think>", "</think>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>",
     "</arg_value>"),
    "<|user|>",
    "<|observation|>",
    written=False,
)  # fmt: skip
# The prompt opens the thinking block; calls between tokens, JSON arguments fenced.
DEEPSEEK = Recipe(
    HERE / "deepseek",
    ("<｜▁pad▁｜>", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"),
    ("<think>", "</think>", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>",
     "<｜tool▁call▁end｜>", "<｜tool▁sep｜>", "<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>",
     "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
    "<｜end▁of▁sentence｜>",
    thinks="always",
)  # fmt: skip

FORMATS: dict[str, Recipe] = {
    "hermes": DEMO, "qwen3coder": QWEN3_CODER, "llama3": LLAMA3, "mistral": MISTRAL, "glm": GLM,
    "deepseek": DEEPSEEK,
}  # fmt: skip
