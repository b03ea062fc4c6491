"""Models of a few kilobytes that pool: an encoder and a decoder with random weights, written by hand."""

from __future__ import annotations

import json
import random
import shutil
from array import array
from pathlib import Path
from typing import Any

from importer.demo import MODEL

HIDDEN, LAYERS, HEADS, WIDE, POSITIONS = 64, 2, 2, 128, 512
Shapes = dict[str, tuple[int, ...]]


def encoder(folder: Path, **config: Any) -> Path:
    """Write a BERT; ``id2label`` makes it a classifier of sequences, one label a reranker."""
    labels = len(config.get("id2label") or ())
    name = "BertForSequenceClassification" if labels else "BertModel"
    whole = {
        "architectures": [name], "model_type": "bert", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "intermediate_size": WIDE, "max_position_embeddings": POSITIONS,
        "vocab_size": _vocabulary(), "type_vocab_size": 2, "torch_dtype": "float32", "hidden_act": "gelu",
        "layer_norm_eps": 1e-12, "position_embedding_type": "absolute", "pad_token_id": 0, **config,
    }  # fmt: skip
    shapes = _encoder_shapes("bert." if labels else "")
    if labels:
        shapes |= {"classifier.weight": (labels, HIDDEN), "classifier.bias": (labels,)}
    return _write(folder, whole, shapes)


def decoder(folder: Path, **config: Any) -> Path:
    """Write a Qwen3 that generates by its class name; sentence-transformers' files make it an embedder."""
    whole = {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": HIDDEN, "head_dim": 32,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": 1,
        "intermediate_size": WIDE, "max_position_embeddings": POSITIONS, "vocab_size": _vocabulary(),
        "torch_dtype": "float32", "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
        "tie_word_embeddings": True, **config,
    }  # fmt: skip
    shapes: Shapes = {"model.embed_tokens.weight": (_vocabulary(), HIDDEN), "model.norm.weight": (HIDDEN,)}
    for i in range(LAYERS):
        at = f"model.layers.{i}."
        shapes |= {
            f"{at}input_layernorm.weight": (HIDDEN,), f"{at}post_attention_layernorm.weight": (HIDDEN,),
            f"{at}self_attn.q_proj.weight": (64, HIDDEN), f"{at}self_attn.k_proj.weight": (32, HIDDEN),
            f"{at}self_attn.v_proj.weight": (32, HIDDEN), f"{at}self_attn.o_proj.weight": (HIDDEN, 64),
            f"{at}self_attn.q_norm.weight": (32,), f"{at}self_attn.k_norm.weight": (32,),
            f"{at}mlp.gate_proj.weight": (WIDE, HIDDEN), f"{at}mlp.up_proj.weight": (WIDE, HIDDEN),
            f"{at}mlp.down_proj.weight": (HIDDEN, WIDE),
        }  # fmt: skip
    return _write(folder, whole, shapes)


def as_sentence_encoder(folder: Path, pooling: str = "lasttoken") -> Path:
    """Add the files of sentence-transformers: pooling, then vectors of length one."""
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(
            (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
        )
    ]
    (folder / "modules.json").write_text(json.dumps(modules), "utf-8")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 256}', "utf-8")
    (folder / "1_Pooling").mkdir()
    settings = {"word_embedding_dimension": HIDDEN, f"pooling_mode_{pooling}": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings), "utf-8")
    return folder


def _encoder_shapes(begin: str) -> Shapes:
    embeds = f"{begin}embeddings."
    shapes: Shapes = {
        f"{embeds}word_embeddings.weight": (_vocabulary(), HIDDEN),
        f"{embeds}position_embeddings.weight": (POSITIONS, HIDDEN),
        f"{embeds}token_type_embeddings.weight": (2, HIDDEN), f"{embeds}LayerNorm.weight": (HIDDEN,),
        f"{embeds}LayerNorm.bias": (HIDDEN,), f"{begin}pooler.dense.weight": (HIDDEN, HIDDEN),
        f"{begin}pooler.dense.bias": (HIDDEN,),
    }  # fmt: skip
    square, wide, narrow = (HIDDEN, HIDDEN), (WIDE, HIDDEN), (HIDDEN, WIDE)
    parts = {f"attention.self.{part}": square for part in ("query", "key", "value")}
    parts |= {"attention.output.dense": square, "intermediate.dense": wide, "output.dense": narrow}
    for i in range(LAYERS):
        at = f"{begin}encoder.layer.{i}."
        for part, shape in parts.items():
            shapes |= {f"{at}{part}.weight": shape, f"{at}{part}.bias": (shape[0],)}
        for norm in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{at}{norm}.weight": (HIDDEN,), f"{at}{norm}.bias": (HIDDEN,)}
    return shapes


def _vocabulary() -> int:
    return int(json.loads((MODEL / "config.json").read_text("utf-8"))["vocab_size"])


def _write(folder: Path, config: dict[str, Any], shapes: Shapes) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(MODEL / name, folder / name)
    chance = random.Random(7)
    header: dict[str, Any] = {}
    data = array("f")
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        begin = len(data) * 4
        centre = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
        data.extend(centre + chance.gauss(0, 0.1) for _ in range(count))
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, len(data) * 4]}
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data.tobytes())
    return folder
