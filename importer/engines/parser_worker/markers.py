"""The thinking markers of mlx-lm, read from the source of its tokenizer module: no other place has them."""

from __future__ import annotations

import ast

FUNCTION = "_infer_thinking"


def thinking_markers(source: str) -> list[tuple[str, str]]:
    """Return opening and closing markers in the order of their trial; none where the function is missing."""
    functions = (
        n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and n.name == FUNCTION
    )
    return [pair for function in functions for pair in _pairs(function)]


def _pairs(function: ast.FunctionDef) -> list[tuple[str, str]]:
    pairs: list[tuple[int, tuple[str, str]]] = []
    opening = ""
    for node in ast.walk(function):
        if isinstance(node, ast.Tuple) and len(node.elts) == 2 and all(map(_text, node.elts)):
            pairs.append((node.lineno, (_text(node.elts[0]), _text(node.elts[1]))))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _text(node.value):
            if node.targets[0].id == "think_start":
                opening = _text(node.value)
            elif node.targets[0].id == "think_end":
                pairs.append((node.lineno, (opening, _text(node.value))))
    return [pair for _, pair in sorted(pairs)]


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
