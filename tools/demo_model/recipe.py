"""The recipe of a small model: its shape, its lessons and the number of steps. No heavy import.

``digest`` changes with anything that the model learns from; ``training.json`` beside the weights records it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from importer.demo import MODEL
from tools.demo_model.conversations import Lesson, lessons

SEED = 7
STEPS = 2600
BATCH = 8
LESSONS = 6000
HELD_OUT = 200  # lessons of another seed, scored after training
RATE = 5e-3
VOCABULARY = 640
WARM_UP = 30  # steps until the full rate
RECORD = "training.json"
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
    "pad_token_id": 0,
    "torch_dtype": "bfloat16",
}
SAMPLING = {"do_sample": True, "temperature": 0.1, "top_p": 0.95, "top_k": 1}


@dataclass(frozen=True, slots=True)
class Recipe:
    """One model: the folder with its chat template, where the weights go, and how it writes.

    ``special``  tokens that are never text, padding first; ``markers`` are text, but one token each.
    ``end``      the special token after a turn; ``call_end`` the one after calls, where it differs.
    ``written``  whether the template itself writes that token at the end of a turn.
    ``thinks``   ``always``, ``switched`` (a quarter of the lessons with the switch off) or ``never``.
    """

    folder: Path
    special: tuple[str, ...]
    markers: tuple[str, ...]
    end: str
    call_end: str = ""
    written: bool = True
    thinks: str = "switched"
    steps: int = STEPS
    course: Callable[[int], Iterator[Lesson]] = lessons
    config: Mapping[str, Any] = field(default_factory=dict)
    seed: int = SEED

    @property
    def template(self) -> Path:
        """Return the path of the chat template."""
        return self.folder / "chat_template.jinja"

    @property
    def ends(self) -> list[int]:
        """Return the ids of the tokens that end a turn, the usual one first, padding last."""
        tokens = dict.fromkeys((self.end, self.call_end or self.end, self.special[0]))
        return [self.special.index(token) for token in tokens]

    def files(self) -> dict[str, dict[str, Any]]:
        """Return the settings for engines, by file."""
        length = CONFIG["max_position_embeddings"]
        flags = {"lstrip": False, "rstrip": False, "normalized": False, "single_word": False}
        declared = {
            str(i): {"content": token, "special": token in self.special} | flags
            for i, token in enumerate(self.special + self.markers)
        }
        return {
            "config.json": CONFIG | {"eos_token_id": self.ends[0]} | dict(self.config),
            "generation_config.json": SAMPLING | {"eos_token_id": self.ends, "pad_token_id": 0},
            "tokenizer_config.json": {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "bos_token": None,
                "eos_token": self.end,
                "pad_token": self.special[0],
                "clean_up_tokenization_spaces": False,
                "model_max_length": length,
                "added_tokens_decoder": declared,
            },
        }

    def digest(self) -> str:
        """Return the sha256 over settings, lessons and template."""
        settings = [self.seed, self.steps, BATCH, LESSONS, RATE, WARM_UP, self.special, self.markers]
        settings += [self.end, self.call_end, self.written, self.thinks, self.files()]
        taught = [
            (lesson.messages, lesson.tools, lesson.thought, lesson.content, lesson.calls)
            for lesson in islice(self.course(self.seed), LESSONS)
        ]
        content = json.dumps([settings, taught, self.template.read_text(encoding="utf-8")], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


DEMO = Recipe(
    MODEL,
    ("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    ("<tool_call>", "</tool_call>", "<think>", "</think>"),
    "<|im_end|>",
)


def file_digests(directory: Path) -> dict[str, str]:
    """Return the sha256 of every file of a model's folder but its training record."""
    return {
        p.name: hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(directory.iterdir())
        if p.name != RECORD
    }
