"""Parsers of SGLang that share a class and are set up by their names, read from the source of the set-up."""

from __future__ import annotations

import ast

CLASS = "ReasoningParser"
SETUP = "__init__"


def set_up_by_name(source: str) -> set[str]:
    """Return the texts in the set-up of reasoning parsers: a name among them is treated in its own way."""
    return {
        node.value
        for cls in ast.walk(ast.parse(source))
        if isinstance(cls, ast.ClassDef) and cls.name == CLASS
        for function in cls.body
        if isinstance(function, ast.FunctionDef) and function.name == SETUP
        for node in ast.walk(function)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def class_for(name: str, cls: str, own: set[str]) -> str:
    """Return the class, with the name behind it where the server treats the name in its own way."""
    return f"{cls}({name})" if name in own else cls
