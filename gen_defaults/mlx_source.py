"""The models and formats that a version of mlx-lm or mlx-vlm can load, read from its released sources."""

from __future__ import annotations

import ast
import re
from typing import Any

from gen_defaults.syntax import Sources, compared, functions, literal

FP8_SCALES = "weight_scale_inv"  # a model that reads these turns FP8 weights into its own
LOADING = ("utils.py", "fp8.py", "quantization/checkpoint.py")


def is_needed(package: str, path: str) -> bool:
    """Return whether the file is needed."""
    return path.startswith(f"{package}/models/") or path in {f"{package}/{name}" for name in LOADING}


def abilities(package: str, sources: Sources) -> dict[str, Any]:
    """Return all abilities, in the order of the file."""
    loading = [sources[f"{package}/{name}"] for name in LOADING if f"{package}/{name}" in sources]
    return {
        "model_types": sorted(models(package, sources)),
        "remapped": literal(loading[0], "MODEL_REMAPPING", {}),
        "methods": sorted({m for text in loading for m in _methods(text)}),
        "formats": sorted({f for text in loading for f in _formats(text)}),
        "fp8_types": sorted(name for name, text in models(package, sources).items() if FP8_SCALES in text),
    }


def models(package: str, sources: Sources) -> dict[str, str]:
    """Return the text of each model type's module, or of all modules of its package."""
    by_name: dict[str, str] = {}
    for path, text in sources.items():
        match = re.fullmatch(rf"{package}/models/(?:(\w+)/\w+|(\w+))\.py", path)
        if match:
            name = match[1] or match[2]
            by_name[name] = f"{by_name.get(name, '')}\n{text}"
    return {name: text for name, text in by_name.items() if name != "__init__" and _has_model(text)}


def _has_model(source: str) -> bool:
    """Return whether a module, or one of a package's, brings the class ``Model`` that is loaded by name."""
    for node in ast.walk(ast.parse(source)):
        names = [node.name] if isinstance(node, ast.ClassDef) else []
        if isinstance(node, ast.ImportFrom):
            names = [alias.asname or alias.name for alias in node.names]
        elif isinstance(node, ast.Assign):
            names = [t.id for t in node.targets if isinstance(t, ast.Name)]
        if "Model" in names:
            return True
    return False


def _methods(source: str) -> set[str]:
    """Return the names that ``quant_method`` is compared with, apart from those for the log."""
    tree = ast.parse(source)
    refused = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and all(_is_log(one) for one in node.body)
        for name in compared(node.test, "quant_method")
    }
    return compared(tree, "quant_method") - refused


def _is_log(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and ast.unparse(node).startswith("logging.")


def _formats(source: str) -> set[str]:
    """Return the formats of compressed-tensors: texts that are compared with the block's ``format``."""
    named = {*functions(source, "_compressed_tensors_quantization")}
    formats = {f for node in named for f in compared(node, "fmt")}
    also = {*functions(source, "_transform_compressed_tensors_weights"), *functions(source, "load_model")}
    return formats | {f for node in also for f in compared(node, "format")}
