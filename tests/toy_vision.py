"""A small model that sees: the demo model's language under a random eye, laid out as Qwen3-VL is.

Text is answered as the demo model answers it; what it says of an image is noise.
``python -m tests.toy_vision FOLDER``.
"""

from __future__ import annotations

import json
import random
import shutil
import struct
import sys
from pathlib import Path
from typing import Any

from importer.demo import MODEL

SIGHT = {"depth": 1, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "patch_size": 16}
GRID = 16  # positions, four by four
TOKENS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
PICTURE = "".join(TOKENS[i] for i in (0, 2, 1))
PARTS = (
    "{%- macro said(content) -%}{%- if content is string -%}{{- content -}}{%- else -%}"
    "{%- for part in content or [] -%}{%- if part.type in ('image', 'image_url') -%}"
    f"{{{{- '{PICTURE}' -}}}}{{%- else -%}}{{{{- part.text or '' -}}}}{{%- endif -%}}{{%- endfor -%}}"
    "{%- endif -%}{%- endmacro -%}\n"
)


def make(folder: Path, *, shows: bool = True) -> Path:
    """Write it; without ``shows`` its template drops images."""
    shutil.copytree(MODEL, folder)
    first = _tokens(folder)
    text = _json(folder / "config.json")
    _config(folder, text, first)
    _weights(folder / "model.safetensors", text["hidden_size"])
    processor = {"image_processor_type": "Qwen2VLImageProcessorFast", "processor_class": "Qwen3VLProcessor",
                 "patch_size": SIGHT["patch_size"], "temporal_patch_size": 2, "merge_size": 2,
                 "min_pixels": 32 * 32, "max_pixels": 128 * 128,
                 "size": {"shortest_edge": 32 * 32, "longest_edge": 128 * 128},
                 "image_mean": [0.5] * 3, "image_std": [0.5] * 3}  # fmt: skip
    _write(folder / "preprocessor_config.json", processor)
    template = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    spoken = template.replace("message.content or ''", "said(message.content)")
    parts = PARTS if shows else PARTS.replace(PICTURE, "")
    (folder / "chat_template.jinja").write_text(parts + spoken, encoding="utf-8")
    return folder


def _tokens(folder: Path) -> int:
    """Add the tokens of images; the first one's number."""
    data = _json(folder / "tokenizer.json")
    first = 1 + max(*data["model"]["vocab"].values(), *(t["id"] for t in data["added_tokens"]))
    settings = _json(folder / "tokenizer_config.json")
    for number, token in enumerate(TOKENS, first):
        made = {"content": token, "special": True, "lstrip": False, "rstrip": False,
                "normalized": False, "single_word": False}  # fmt: skip
        data["added_tokens"].append({"id": number, **made})
        settings["added_tokens_decoder"][str(number)] = made
    _write(folder / "tokenizer.json", data)
    _write(folder / "tokenizer_config.json", settings)
    return first


def _config(folder: Path, text: dict[str, Any], first: int) -> None:
    part = text["head_dim"] // 2
    sections = [part - 2 * (part // 3), part // 3, part // 3]
    language = {k: v for k, v in text.items() if k != "architectures"}
    scaling = {"rope_type": "default", "mrope_section": sections, "mrope_interleaved": True}
    language |= {"model_type": "qwen3_vl_text", "rope_scaling": scaling}
    sight = {"model_type": "qwen3_vl", **SIGHT, "out_hidden_size": text["hidden_size"], "in_channels": 3,
             "spatial_merge_size": 2, "temporal_patch_size": 2, "num_position_embeddings": GRID,
             "deepstack_visual_indexes": [0], "hidden_act": "gelu_pytorch_tanh"}  # fmt: skip
    numbers = ("vision_start_token_id", "vision_end_token_id", "image_token_id", "video_token_id")
    config = {"architectures": ["Qwen3VLForConditionalGeneration"], "model_type": "qwen3_vl",
              "text_config": language, "vision_config": sight, "tie_word_embeddings": True,
              "torch_dtype": "bfloat16", "eos_token_id": text["eos_token_id"],
              **{name: first + i for i, name in enumerate(numbers)}}  # fmt: skip
    _write(folder / "config.json", config)


def _shapes(out: int) -> dict[str, tuple[int, ...]]:
    size, wide, patch = SIGHT["hidden_size"], SIGHT["intermediate_size"], SIGHT["patch_size"]
    merged = 4 * size
    shapes: dict[str, tuple[int, ...]] = {
        "patch_embed.proj.weight": (size, 3, 2, patch, patch),
        "patch_embed.proj.bias": (size,),
        "pos_embed.weight": (GRID, size),
    }
    linear = {"attn.qkv": (3 * size, size), "attn.proj": (size, size),
              "mlp.linear_fc1": (wide, size), "mlp.linear_fc2": (size, wide)}  # fmt: skip
    for layer in range(SIGHT["depth"]):
        for name, shape in linear.items():
            shapes |= {f"blocks.{layer}.{name}.weight": shape, f"blocks.{layer}.{name}.bias": shape[:1]}
        for name in ("norm1", "norm2"):
            shapes |= {f"blocks.{layer}.{name}.{kind}": (size,) for kind in ("weight", "bias")}
    for merger, normed in (("merger", size), ("deepstack_merger_list.0", merged)):
        shapes |= {f"{merger}.norm.{kind}": (normed,) for kind in ("weight", "bias")}
        shapes |= {f"{merger}.linear_fc1.weight": (merged, merged), f"{merger}.linear_fc1.bias": (merged,)}
        shapes |= {f"{merger}.linear_fc2.weight": (out, merged), f"{merger}.linear_fc2.bias": (out,)}
    return shapes


def _weights(path: Path, out: int) -> None:
    """The language's tensors under their new names, and random ones in bfloat16 for the eye."""
    body = path.read_bytes()
    length = struct.unpack("<Q", body[:8])[0]
    known = json.loads(body[8 : 8 + length])
    known.pop("__metadata__", None)
    tensors: dict[str, tuple[str, list[int], bytes]] = {}
    for name, entry in known.items():
        start, end = (8 + length + offset for offset in entry["data_offsets"])
        renamed = name.replace("model.", "model.language_model.", 1)
        tensors[renamed] = (entry["dtype"], entry["shape"], body[start:end])
    dice = random.Random(7)
    for name, shape in _shapes(out).items():
        count = 1
        for size in shape:
            count *= size
        values = (dice.gauss(0, 0.02) for _ in range(count))
        data = b"".join(struct.pack("<f", value)[2:] for value in values)
        tensors[f"model.visual.{name}"] = ("BF16", list(shape), data)
    header, at = {}, 0
    for name, (dtype, dims, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": dims, "data_offsets": [at, at + len(data)]}
        at += len(data)
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + b"".join(data for _, _, data in tensors.values()))


def _json(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


def _write(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data), encoding="utf-8")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
