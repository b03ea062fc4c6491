"""What the demo model is made of: its shape, what it is taught and for how long. No heavy import.

``digest`` changes with anything that the model learns from; ``training.json`` beside the weights records it.
"""

from __future__ import annotations

import hashlib
import json
from itertools import islice
from pathlib import Path
from typing import Any

from importer.demo import MODEL
from importer.demo.conversations import lessons

SEED = 7
STEPS = 1000
BATCH = 8
LESSONS = 4000
HELD_OUT = 200  # lessons of another seed, asked after training
RATE = 5e-3
VOCABULARY = 640
WARM_UP = 30  # steps until the full rate
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKERS = ("<tool_call>", "</tool_call>", "<think>", "</think>")
CONFIG: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "max_position_embeddings": 2048,
    "vocab_size": VOCABULARY,
    "tie_word_embeddings": True,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "initializer_range": 0.02,
    "use_cache": True,
    "use_sliding_window": False,
    "bos_token_id": None,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "torch_dtype": "bfloat16",
}
GENERATION = {
    "do_sample": True,
    "temperature": 0.1,
    "top_p": 0.95,
    "top_k": 1,
    "eos_token_id": [2, 0],
    "pad_token_id": 0,
}
TOKENIZER: dict[str, Any] = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": None,
    "eos_token": "<|im_end|>",
    "pad_token": "<|endoftext|>",
    "clean_up_tokenization_spaces": False,
    "model_max_length": CONFIG["max_position_embeddings"],
}
TEMPLATE = MODEL / "chat_template.jinja"
RECORD = "training.json"


def digest() -> str:
    """sha256 over settings, lessons and template."""
    settings = [SEED, STEPS, BATCH, LESSONS, RATE, WARM_UP, SPECIAL, MARKERS, CONFIG, GENERATION, TOKENIZER]
    taught = [
        (lesson.messages, lesson.tools, lesson.thought, lesson.content, lesson.calls)
        for lesson in islice(lessons(SEED), LESSONS)
    ]
    told = json.dumps([settings, taught, TEMPLATE.read_text(encoding="utf-8")], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def file_digests(directory: Path) -> dict[str, str]:
    """sha256 of every file of a model's folder but its training record."""
    return {
        p.name: hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(directory.iterdir())
        if p.name != RECORD
    }
