"""Generated repositories of an organisation, with an even mixture of kinds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from benchmarks.traffic import TEMPLATES
from tests.hubserver import Content, Repo

NAME = "org"
TEMPLATE_SHARE = 0.03  # distinct templates for each repository: 300 of 10,000
SHAPES = tuple((layers, hidden) for layers in (16, 24, 28, 32, 36, 48) for hidden in (1024, 2048, 4096))
# What an organisation holds, of 100: the kind and its number.
MIXTURE = {
    "chat": 56,
    "base": 12,
    "gguf": 15,
    "gated": 8,
    "image": 3,
    "embedding": 3,
    "gone": 2,
    "hostile": 1,
}
KINDS = [kind for kind, number in MIXTURE.items() for _ in range(number)]


def repositories(number: int) -> tuple[dict[str, Repo], set[str]]:
    """Return generated repositories with an even mixture, and those that are gone when they are asked for."""
    chosen, repos, gone = random.Random(number), {}, set()
    templates = max(10, int(number * TEMPLATE_SHARE))
    kinds = (KINDS * (number // len(KINDS) + 1))[:number]
    chosen.shuffle(kinds)
    for place, kind in enumerate(kinds):
        name = f"{NAME}/model-{place}"
        repos[name] = _repository(place, kind, chosen.randrange(templates), chosen)
        if kind == "gone":
            gone.add(name)
    return repos, gone


def _repository(place: int, kind: str, template: int, chosen: random.Random) -> Repo:
    if kind == "gguf":
        return Repo({"model-Q4_K_M.gguf": b"GGUF", "README.md": f"# {place}"}, info={"tags": ["gguf"]})
    files: dict[str, Content] = {
        "config.json": _config(place, template, chosen),
        "model.safetensors": b"\2" + bytes(7),
    }
    if chosen.random() < 0.8:
        files["README.md"] = f"---\nlicense: apache-2.0\n---\n# Model {place}\nMade by {NAME}.\n"
    files |= {
        "tokenizer_config.json": _tokenizer(template % 40),
        "generation_config.json": _sampling(template % 12),
    }
    if kind == "image":
        files["model_index.json"] = {"_class_name": "FluxPipeline"}
        del files["config.json"]
    elif kind == "embedding":
        files |= {"modules.json": "[]", "sentence_bert_config.json": {"max_seq_length": 512}}
    elif kind == "hostile":
        hostile: Sequence[Content] = (
            "[" * 5000,
            "{",
            {"model_type": "x" * 10000},
            {"num_hidden_layers": 10**9},
        )
        files["config.json"] = hostile[place % len(hostile)]
    if kind in {"chat", "gated", "hostile"}:
        text = TEMPLATES[template % len(TEMPLATES)]
        files["chat_template.jinja"] = f"{{# format {template} #}}" + text
    config = files.get("config.json")
    shown = (
        {k: config[k] for k in ("model_type", "architectures") if k in config}
        if isinstance(config, dict)
        else {}
    )
    return Repo(files, gated=kind == "gated", info={"config": shown, "downloads": place, "tags": []})


def _config(place: int, template: int, chosen: random.Random) -> dict[str, Any]:
    layers, hidden = SHAPES[template % len(SHAPES)]
    own = {"_name_or_path": f"{NAME}/model-{place}"} if chosen.random() < 0.5 else {}
    return own | {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": hidden,
        "num_hidden_layers": layers, "num_attention_heads": hidden // 64, "num_key_value_heads": 8,
        "head_dim": 64,
        "vocab_size": 151936, "intermediate_size": 3 * hidden, "torch_dtype": "bfloat16",
        "max_position_embeddings": 40960,
    }  # fmt: skip


def _tokenizer(number: int) -> dict[str, Any]:
    words = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", f"<own_{number}>")
    added = {str(i): {"content": w, "special": w.startswith("<|")} for i, w in enumerate(words, 151643)}
    return {"eos_token": "<|im_end|>", "bos_token": "<s>", "added_tokens_decoder": added}


def _sampling(number: int) -> dict[str, Any]:
    return {"temperature": round(0.1 * number, 1), "top_p": 0.95, "do_sample": True}
