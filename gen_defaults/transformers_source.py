"""The model types of a version of transformers, and the default lengths of each."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gen_defaults.syntax import Classes, Sources, assigned, compared, functions, keys, strings

TOKENIZERS = "models/auto/tokenization_auto.py"
UNKNOWN_CLASS = "does not exist or is not currently imported"  # the error of transformers 4
# Where configurations keep a length: what vLLM looks for, and the length before LongRoPE.
LENGTHS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length",
    "max_target_positions", "max_sequence_length", "max_seq_length", "seq_len",
    "original_max_position_embeddings",
)  # fmt: skip


def is_needed(path: str) -> bool:
    """Return whether the file is needed."""
    name = path.rpartition("/")[2]
    settings = name.startswith(("configuration_", "tokenization_")) or path.endswith(TOKENIZERS)
    return settings and ("transformers/models/" in path or "transformers/tokenization_" in path)


def model_types(sources: Sources) -> dict[str, dict[str, int]]:
    """Return every model type with the lengths that its class has by default."""
    classes = Classes.of(sources)
    lengths: dict[str, dict[str, int]] = {}
    for name, nodes in sorted(classes.nodes.items()):
        for node in nodes:
            model_type = _model_type(node)
            if model_type:
                lengths[model_type] = {
                    k: v for k in LENGTHS if (v := next(_defaults(classes, name, k), None))
                }
    return lengths


def tokenizers(sources: Sources) -> list[str]:
    """Return the model types with a tokenizer of their own."""
    text = next(t for p, t in sources.items() if p.endswith(TOKENIZERS))
    return sorted({*keys(assigned(text, "TOKENIZER_MAPPING_NAMES"))})


def tokenizer_classes(sources: Sources) -> list[str]:
    """Return the tokenizer classes that a tokenizer's settings may name; empty where any name loads one.

    Transformers 5 takes its own class in place of an unknown one.
    """
    text = next(t for p, t in sources.items() if p.endswith(TOKENIZERS))
    if UNKNOWN_CLASS not in text:
        return []
    named = {*strings([assigned(text, "TOKENIZER_MAPPING_NAMES") or ast.Pass()])}
    named |= {
        one for node in functions(text, "tokenizer_class_from_name") for one in compared(node, "class_name")
    }
    files = (t for p, t in sources.items() if p.rpartition("/")[2].startswith("tokenization_"))
    named |= {one.name for t in files for one in ast.parse(t).body if isinstance(one, ast.ClassDef)}
    return sorted(name for name in named if "Tokenizer" in name)


def _model_type(node: ast.ClassDef) -> str | None:
    for one in node.body:
        targets = one.targets if isinstance(one, ast.Assign) else []
        named = any(isinstance(t, ast.Name) and t.id == "model_type" for t in targets)
        if named and isinstance(one.value, ast.Constant):  # type: ignore[attr-defined]
            return str(one.value.value)  # type: ignore[attr-defined]
    return None


def _defaults(classes: Classes, name: str, key: str) -> Iterator[int]:
    """Yield a length by the class itself, then by what it is made from: a field, or a parameter of
    ``__init__``.
    """
    for node in classes.line(name):
        for one in node.body:
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and one.target.id == key:
                yield from _number(one.value)
            elif isinstance(one, ast.FunctionDef) and one.name == "__init__":
                named = one.args.args[len(one.args.args) - len(one.args.defaults) :]
                defaults = dict(zip((a.arg for a in named), one.args.defaults, strict=True))
                yield from _number(defaults.get(key))


def _number(value: ast.expr | None) -> Iterator[int]:
    """Yield a whole number, or a product of two: ``4096 * 32``."""
    if isinstance(value, ast.Constant) and type(value.value) is int:
        yield value.value
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        yield from (a * b for a in _number(value.left) for b in _number(value.right))
