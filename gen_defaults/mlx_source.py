"""The models and formats that a version of mlx-lm or mlx-vlm can load, read from its released sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gen_defaults.syntax import Sources, compared, functions, literal, strings

FP8_SCALES = "weight_scale_inv"  # a model that reads these turns FP8 weights into its own
LOADING = ("utils.py", "fp8.py", "quantization/checkpoint.py")


def is_needed(package: str, path: str) -> bool:
    """Return whether the file is needed."""
    return path.startswith(f"{package}/models/") or path in {f"{package}/{name}" for name in LOADING}


def abilities(package: str, sources: Sources) -> dict[str, Any]:
    """Return all abilities, in the order of the file."""
    loading = [sources[f"{package}/{name}"] for name in LOADING if f"{package}/{name}" in sources]
    bits, tensors = _refusals(loading[0], settles=len(loading) == 1)
    formats = {f for text in loading for f in _formats(text)}
    if not formats and "compressed-tensors" in bits:  # one setting for all formats, that of packed integers
        formats = {"pack-quantized"}
    return {
        "model_types": sorted(models(package, sources)),
        "remapped": literal(loading[0], "MODEL_REMAPPING", {}),
        "methods": sorted({m for text in loading for m in _methods(text)}),
        "formats": sorted(formats),
        "bits": bits,
        "refused_tensors": tensors,
        "towers": towers(package, sources),
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


TOWER = "VisionModel"
FROM = re.compile(r"\.\.(\w+)(?:\.\w+)?")  # another model's package


def towers(package: str, sources: Sources) -> dict[str, list[str]]:
    """Return by model type the types of the vision tower that it takes, where it refuses others."""
    packages: dict[str, list[ast.Module]] = {}
    for path, text in sources.items():
        if match := re.fullmatch(rf"{package}/models/(\w+)/\w+\.py", path):
            packages.setdefault(match[1], []).append(ast.parse(text))
    found = {name: sorted(_taken(packages, name, TOWER, {*()})) for name in packages}
    return {name: types for name, types in sorted(found.items()) if types}


def _taken(
    packages: Mapping[str, list[ast.Module]], package: str, cls: str, seen: set[tuple[str, str]]
) -> set[str]:
    """Return the types that a class compares its own with before it raises, else those of what it is made
    from.
    """
    if (package, cls) in seen:
        return set()
    seen.add((package, cls))
    nodes = [one for module in packages.get(package, ()) for one in ast.walk(module)]
    defined = [one for one in nodes if isinstance(one, ast.ClassDef) and one.name == cls]
    tests = [
        one.test for node in defined for one in ast.walk(node)
        if isinstance(one, ast.If) and any(isinstance(two, ast.Raise) for two in one.body)
    ]  # fmt: skip
    types = {text for test in tests for text in compared(test, "self.model_type") if text}
    if types:
        return types
    names = {ast.unparse(base) for node in defined for base in node.bases} or {cls}
    imports = [
        (match[1], alias.name) for one in nodes if isinstance(one, ast.ImportFrom)
        for alias in one.names if (alias.asname or alias.name) in names
        if (match := FROM.fullmatch("." * one.level + (one.module or "")))
    ]  # fmt: skip
    return {text for source, name in imports for text in _taken(packages, source, name, seen)}


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


def _refusals(source: str, *, settles: bool) -> tuple[dict[str, list[int]], dict[str, list[str]]]:
    """Return by method the bits that alone are read, and the ends of names of tensors that are refused.

    They stand in the functions that the method's branch calls, in an ``if`` that raises. Else the bits are
    those of the branch's settings, where it ``settles`` them: no other file turns weights into other ones.
    """
    bits: dict[str, list[int]] = {}
    tensors: dict[str, list[str]] = {}
    defined = {node.name: node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}
    branches = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.If)]
    for branch in branches:
        methods = sorted(compared(branch.test, "quant_method"))
        below = ast.Module(branch.body, [])
        called = [defined[n] for n in _called(below) if n in defined and n != "_quantize"]
        raising = [
            node.test for function in called for node in ast.walk(function)
            if isinstance(node, ast.If) and any(isinstance(one, ast.Raise) for one in node.body)
        ]  # fmt: skip
        read = [n for test in raising for n in _numbers(test, "bits")]
        read = read or sorted({n for node in (below, *called) for n in _settings(node) if settles})
        ends = [end for test in raising if "endswith" in ast.unparse(test) for end in strings([test])]
        for method in methods:
            bits |= {method: read} if read else {}
            tensors |= {method: ends} if ends else {}
    return dict(sorted(bits.items())), dict(sorted(tensors.items()))


def _called(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name):
            yield one.func.id


def _numbers(test: ast.expr, word: str) -> Iterator[int]:
    """Yield the number that ``word`` must be, or the test is true."""
    for one in ast.walk(test):
        if (
            isinstance(one, ast.Compare)
            and isinstance(one.ops[0], ast.NotEq)
            and ast.unparse(one.left) == word
        ):
            yield from _whole(one.comparators[0])


def _settings(node: ast.AST) -> Iterator[int]:
    """Yield the constant ``bits`` of each map below the node."""
    for one in ast.walk(node):
        for key, value in zip(one.keys, one.values, strict=True) if isinstance(one, ast.Dict) else ():
            if isinstance(key, ast.Constant) and key.value == "bits":
                yield from _whole(value)


def _whole(node: ast.expr) -> Iterator[int]:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield node.value


def _is_log(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and ast.unparse(node).startswith("logging.")


def _formats(source: str) -> set[str]:
    """Return the formats of compressed-tensors: texts that are compared with the block's ``format``."""
    named = {*functions(source, "_compressed_tensors_quantization")}
    formats = {f for node in named for f in compared(node, "fmt")}
    also = {*functions(source, "_transform_compressed_tensors_weights"), *functions(source, "load_model")}
    return formats | {f for node in also for f in compared(node, "format")}
