"""Made-up releases of every package that the tables are made from, and a checkout to make them in."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from gen_defaults.place import Place
from tests.package_index import PackageIndex, sdist, wheel

VLLM_TOOLS = '''
"""_TOOL_PARSERS_TO_REGISTER"""
_TOOL_PARSERS_TO_REGISTER = {
    "alpha": ("one_file", "OneParser"),
    "beta": ("one_file", "OneParser"),  # another name
    "gamma": ("two_file", "TwoParser"),
}
raise SystemExit("a source is never run")
'''
VLLM_REASONING = '_REASONING_PARSERS_TO_REGISTER = {"alpha": ("thinking", "Thinking")}\n'
VLLM = {
    "vllm/tool_parsers/__init__.py": VLLM_TOOLS,
    "vllm/reasoning/__init__.py": VLLM_REASONING,
    "vllm/unrelated.py": "broken(",
}
SGLANG = {
    "sglang/srt/function_call/function_call_parser.py": (
        "from sglang.srt.function_call.one import One\n"
        "class FunctionCallParser:\n    ToolCallParserEnum: dict = {'alpha': One, 'beta': One}\n"
    ),
    "sglang/srt/parser/reasoning_parser.py": (
        "class Two: ...\nclass ReasoningParser:\n"
        "    DetectorMap: dict = {'alpha': Two, 'beta': Two, 'gamma': Two}\n"
        "    def __init__(self, name):\n        if name.lower() in {'gamma'}: ...\n"
    ),
}
VLLM_MLX = {
    "vllm_mlx/tool_parsers/__init__.py": "from .one import One\n",
    "vllm_mlx/tool_parsers/one.py": """
@Manager.register_module(["beta", "alpha"])
class One(Parser):
    pass

@Manager.register_module("gamma")
class Two(One): ...

class Helper: ...
""",
    "vllm_mlx/reasoning/__init__.py": """
def register():
    from .thinking import Thinking
    register_parser("deep", Thinking)
""",
}


MLX_INFERENCE = """
def _infer_thinking(tokenizer):
    return ("<think>", "</think>")

def _infer_tool_parser(tokenizer):
    if "<one>" in chat_template and "<two>" in chat_template:
        return "own"
    elif '<a>' in chat_template or '<b>' in chat_template:
        return "other"
    elif tokenizer.odd:
        return "never"
    if _is_special(vocab):
        return "own"
    return None

def _is_special(vocab):
    return all(t in vocab for t in ("<x>", "<y>"))
"""
MLX_VLM_SPECS = """
SPECS: Tuple[Spec, ...] = (
    Spec("own", (("<a>",),), priority=0),
    Spec("best", (("<a>", "<b>"), ("<c>",))),
)
"""
MLX: dict[str, str] = {
    "mlx_lm/tool_parsers/__init__.py": "",
    "mlx_lm/tool_parsers/own.py": "def parse_tool_call(text, tools=None): ...\n",
    "mlx_lm/tool_parsers/other.py": "from .own import parse_tool_call, tool_call_start\n",
    "mlx_lm/tokenizer_utils.py": MLX_INFERENCE,
    "mlx_lm/tool_parsers/helping.py": "def shared(): ...\n",
}
MLX_VLM = {
    "mlx_vlm/tools/parsers/__init__.py": "",
    "mlx_vlm/tools/parsers/own.py": "def parse_tool_call(text, tools=None): ...\n",
    "mlx_vlm/tools/registry.py": MLX_VLM_SPECS,
    "mlx_vlm/tools/parsers/deep/other.py": "broken(",
    "mlx_vlm/server/responses_state.py": "class X:\n    _DEFAULT_OPEN_CLOSE_MARKERS = (('<a>', '</a>'),)\n",
}
FAMILIES: dict[str, dict[str, Any]] = {
    "acme-2": {"temperature": 0.4, "top_p": 0.9, "top_k": 30, "min_p": 0.01, "repetition_penalty": 1.1},
    "acme": {"temperature": 0.7, "top_p": 0.95, "top_k": -1, "min_p": 0.01, "repetition_penalty": 1.0},
    "zeta-1": {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "presence_penalty": 0.5},
}
CONFIGS = "studio/backend/assets/configs"
DEFAULT = "inference:\n  temperature: 0.7\n  top_p: 0.95\n  top_k: -1\n  min_p: 0.01\n"
MODEL = (
    "# Also applies to: acme/Acme-2-1B, other/Acme-2-1B-4bit\ninference:\n  temperature: 0.2\n  min_p: 0.2\n"
)
TOOL_PAGE = """# Tools
### One (`alpha`)
* `acme/Acme-2-1B`
* [`acme/Acme-2-Old`](https://huggingface.co/acme/Acme-2-Old) (`gamma`)
Flags: `--tool-call-parser alpha`
### Two
* `acme/Nobody`
Flags: `--tool-call-parser alpha` or `--tool-call-parser gamma`
"""
REASONING_PAGE = """
| Model | Parser | Tools |
| ----- | ------ | ----- |
| [Zeta](https://huggingface.co/zeta/Zeta-1) | `alpha` | yes |
| [All](https://huggingface.co/collections/zeta/all) | `alpha` | yes |
"""
RECIPE = """
model: {base_args: ["--trust-remote-code"]}
features:
  tool_calling: {args: [--enable-auto-tool-choice, --tool-call-parser, gamma]}
  reasoning: {args: [--reasoning-parser, alpha]}
"""
DOCS = {
    "docs/features/tool_calling.md": TOOL_PAGE, "docs/features/reasoning_outputs.md": REASONING_PAGE,
    "recipes/models/zeta/Zeta-1.yaml": RECIPE, "vllm/later.py": "nobody reads so far\n" * 9999,
}  # fmt: skip
PARSERS = {
    "engine": "vllm",
    "families": {
        "acme-2": {"tool_parser": "alpha", "reasoning_parser": "alpha", "source": "x"},
        "zeta-1": {"tool_parser": "beta", "reasoning_parser": None, "source": "x"},
        "gamma": {"tool_parser": "gamma", "source": "x"},
    },
    "patterns": ["acme-2", "zeta-1", "gamma"],
}
ROWS: dict[str, Any] = {
    "vendors": ["zeta/Zeta-1"],
    "skip": {},
    "families": {
        "by-hand": {"values": {"temperature": 1.2}, "says": "its card"},
        "acme-2-1b": {"unsloth": "acme/Acme-2-1B", "keys": ["temperature"], "also": "a file of its own"},
    },
}


def unsloth(families: dict[str, Any] | None = None, **more: str) -> dict[str, str]:
    """The files of its wheel; ``more`` are model files by name."""
    rows = FAMILIES if families is None else families
    files = {f"{CONFIGS}/inference_defaults.json": json.dumps({"families": rows, "patterns": [*rows]})}
    files |= {f"{CONFIGS}/model_defaults/default.yaml": DEFAULT}
    files |= {f"{CONFIGS}/model_defaults/acme/acme_Acme-2-1B.yaml": MODEL}
    return files | {f"{CONFIGS}/model_defaults/{name}.yaml": text for name, text in more.items()}


@cache
def archives() -> tuple[tuple[str, str, bytes, str], ...]:
    """A release of everything, the same bytes for every index: package, file, content, day."""
    return (
        ("unsloth", "unsloth-2026.1.0-py3-none-any.whl", wheel(unsloth()), "2026-01-05"),
        ("vllm", "vllm-0.9.9-cp38-abi3-linux_x86_64.whl", wheel(VLLM), "2026-01-06"),
        ("vllm", "vllm-0.9.10-cp38-abi3-linux_x86_64.whl", wheel(VLLM), "2026-01-06"),
        ("vllm", "vllm-0.9.10.tar.gz", sdist("vllm", "0.9.10", VLLM | DOCS), "2026-01-06"),
        ("mlx-lm", "mlx_lm-0.2.0-py3-none-any.whl", wheel(MLX), ""),
        ("mlx-vlm", "mlx_vlm-0.1.0-py3-none-any.whl", wheel(MLX_VLM), ""),
        ("vllm-mlx", "vllm_mlx-0.1.0.tar.gz", sdist("vllm_mlx", "0.1.0", VLLM_MLX), ""),
        ("sglang", "sglang-0.5.0-cp311-cp311-manylinux_2_34_x86_64.whl", wheel(SGLANG), ""),
    )


def fill(index: PackageIndex) -> None:
    """Put a release of everything into the index."""
    for package, file, data, day in archives():
        index.add(package, file, data, day=day)


def checkout(root: Path) -> Place:
    """A checkout without anything generated in it."""
    place = Place(root)
    place.registries.mkdir(parents=True)
    place.upstream("x").parent.mkdir(parents=True)
    place.parsers.write_text(json.dumps(PARSERS))
    place.rows.write_text(json.dumps(ROWS))
    return place


def everything(place: Place) -> dict[str, bytes]:
    """Every file of the checkout."""
    return {str(p.relative_to(place.root)): p.read_bytes() for p in place.root.rglob("*") if p.is_file()}
