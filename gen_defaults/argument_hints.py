"""Loaded as a file by the workers in an engine's environment: types of a dataclass's fields, with choices.

Types are those of the sources, with lists of choices that a module imports for type checkers alone. The
words of an enumeration are those that pydantic's own validator of the field takes.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import functools
import importlib
import importlib.util
import inspect
import sys
import types
import typing
from collections.abc import Iterator
from typing import Any

Row = dict[str, Any]


class _Missing(dict[str, Any]):
    """Names of types that the engine imports for type checkers alone."""

    def __missing__(self, name: str) -> Any:
        return vars(builtins).get(name, typing.Any)


def fields(cls: Any) -> dict[str, Any]:
    """Return the type of each field that a caller may give; texts are evaluated in their class's module."""
    hints = {}
    for field in dataclasses.fields(cls):
        hint: Any = field.type
        owner = next((k for k in cls.__mro__ if field.name in vars(k).get("__annotations__", {})), None)
        module = sys.modules.get(owner.__module__) if owner is not None else None
        text = _annotations(module, owner.__name__).get(field.name) if owner is not None else None
        hint = text if text is not None and _named_in(text, _literals(module)) else hint
        if isinstance(hint, str):
            try:
                names = _Missing({**vars(module), **_literals(module)})
                hint = eval(hint, {}, names)  # noqa: S307 - sources
            except Exception:
                hint = typing.Any
        if field.init and not field.name.startswith("_"):
            hints[field.name] = hint
    return hints


def _named_in(text: str, names: Row) -> bool:
    return any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(ast.parse(text)))


@functools.cache
def _tree(module: Any) -> ast.Module:
    try:
        return ast.parse(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):
        return ast.Module([], [])


@functools.cache
def _annotations(module: Any, name: str) -> dict[str, str]:
    """Return the types of a class's fields as its source writes them."""
    bodies = [n.body for n in ast.walk(_tree(module)) if isinstance(n, ast.ClassDef) and n.name == name]
    lines = [line for body in bodies[:1] for line in body if isinstance(line, ast.AnnAssign)]
    return {n.target.id: ast.unparse(n.annotation) for n in lines if isinstance(n.target, ast.Name)}


@functools.cache
def _literals(module: Any) -> Row:
    """Return the lists of choices that a module imports for type checkers alone."""
    found = {}
    blocks = [
        n for n in _tree(module).body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)
    ]
    imports = [line for block in blocks for line in block.body if isinstance(line, ast.ImportFrom)]
    for line in imports:
        try:
            name = importlib.util.resolve_name("." * line.level + (line.module or ""), module.__package__)
            source = importlib.import_module(name)
        except Exception:  # noqa: S112 - a package that is not there, or that needs a card
            continue
        for one in line.names:
            value = getattr(source, one.name, None)
            if typing.get_origin(value) is typing.Literal:
                found[one.asname or one.name] = value
    return found


def validators(cls: Any) -> dict[str, Any]:
    """Return pydantic's own validator of each field of a class."""
    schema = getattr(cls, "__pydantic_core_schema__", None)
    while isinstance(schema, dict) and schema.get("type") != "dataclass-args":
        schema = schema.get("schema")
    if schema is None:
        return {}
    from pydantic_core import SchemaValidator

    found = {}
    for field in schema["fields"]:
        try:
            found[field["name"]] = SchemaValidator(field["schema"])
        except Exception:  # noqa: S112 - a schema that refers to others
            continue
    return found


def taken(kind: Any, validator: Any) -> Row | None:
    """Return the words of an enumeration that a validator takes, each once, and whether their case counts."""

    def takes(value: Any) -> bool:
        try:
            return isinstance(validator.validate_python(value), kind)
        except Exception:
            return False

    plain = [m.value for m in kind if isinstance(m.value, str | int) and not isinstance(m.value, bool)]
    words: dict[Any, Any] = {}
    for value in [*plain, *kind.__members__]:
        if takes(value):
            words.setdefault(value.casefold() if isinstance(value, str) else value, value)
    texts = [word for word in words.values() if isinstance(word, str)]
    any_case = bool(texts) and all(takes(word.swapcase()) for word in texts)
    return {"one_of": [*words.values()]} | ({"any_case": True} if any_case else {}) if words else None


def enumerations(cls: Any) -> Iterator[tuple[Any, Row]]:
    """Yield each enumeration among the fields of a class, with the words that its validator takes."""
    known = validators(cls)
    for name, hint in fields(cls).items() if known else ():
        for one in union_members(hint) if name in known else ():
            if isinstance(one, type) and issubclass(one, enum.Enum) and (row := taken(one, known[name])):
                yield one, row


def union_members(hint: Any) -> Iterator[Any]:
    """Yield a type and the types in its union."""
    yield hint
    if typing.get_origin(hint) in (typing.Union, types.UnionType, typing.Annotated):
        for one in typing.get_args(hint):
            yield from union_members(one)
