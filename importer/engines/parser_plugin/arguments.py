"""The arguments of a call written as Python, read from the syntax tree; nothing is ever evaluated."""

from __future__ import annotations

import ast
import json
import math
import shlex
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]
JSON_NAMES = {"true": True, "false": False, "null": None}
CONTROLS = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\x00"}


class UnreadableError(ValueError):
    """The text is not the arguments of a call; the message has the reason."""


def read_arguments(source: str, schema: Schema) -> dict[str, Any]:
    """Return the arguments between the parentheses of a call, these included, by the names of its
    parameters.

    Positional ones are mapped by the tool's schema, the required parameters first. Raises UnreadableError.
    """
    text, renamed = _prepared(source, parameters(schema))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\d" in a string is no concern of the server's log
            call = ast.parse(f"_{text}", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnreadableError(f"it is no Python: {error}") from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise UnreadableError("it is no call")
    named = _named(call.keywords, renamed)
    return _checked(_positional([_literal(node) for node in call.args], named, schema) | named)


def read_words(line: str, schema: Schema) -> dict[str, Any]:
    """Return arguments in the form of a shell, ``some/path count=2``; raises UnreadableError."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UnreadableError(f"it is no command: {error}") from None
    known = parameters(schema)
    pairs = [(name, value) for name, _, value in (w.partition("=") for w in words) if name in known]
    named = {name: _typed(value, name, schema) for name, value in pairs}
    free = [word for word in words if word.partition("=")[0] not in known or "=" not in word]
    placed = _positional(free, named, schema)
    return _checked({name: _typed(value, name, schema) for name, value in placed.items()} | named)


def parameters(schema: Schema) -> list[str]:
    """Return the names of a tool's parameters, the required ones first."""
    properties, required = schema.get("properties"), schema.get("required")
    names = list(properties) if isinstance(properties, Mapping) else []
    first = [n for n in required if n in names] if isinstance(required, Sequence) else []
    return [*first, *(n for n in names if n not in first)]


def _positional(values: list[Any], named: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    known = parameters(schema)
    if len(values) == 1 and not named and isinstance(values[0], dict) and set(values[0]) <= set(known):
        return dict(values[0])  # f({"city": "Paris"}): the arguments as one object
    if len(values) > len(known):
        raise UnreadableError(f"it has {len(values)} arguments without a name, of {len(known)} in all")
    placed = dict(zip(known, values, strict=False))
    twice = placed.keys() & named.keys()
    if twice:
        raise UnreadableError(f"it gives {min(twice)} twice")
    return placed


def _named(keywords: Sequence[ast.keyword], renamed: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for keyword in keywords:
        value = _literal(keyword.value)
        if keyword.arg is not None:
            value = {renamed.get(keyword.arg, keyword.arg): value}
        elif not isinstance(value, dict):  # f(**{"not-a-name": 1})
            raise UnreadableError("only an object can stand behind **")
        if values.keys() & value.keys():
            raise UnreadableError(f"it gives {min(values.keys() & value.keys())} twice")
        values |= value
    return values


def _literal(node: ast.expr) -> Any:
    """Return a value of JSON; raises UnreadableError for an expression that needs evaluation."""
    match node:
        case ast.Constant(value=str() as text):
            return _whole(text)
        case ast.Constant(value=int() | float() | None as value):
            return value
        case ast.Name(id=name) if name in JSON_NAMES:
            return JSON_NAMES[name]
        case ast.List(elts=inner) | ast.Tuple(elts=inner) | ast.Set(elts=inner):
            return [_literal(value) for value in inner]
        case ast.Dict(keys=keys, values=values):
            names = [_literal(key) if key is not None else None for key in keys]
            if not all(isinstance(name, str) for name in names):
                raise UnreadableError("an object's keys are texts")
            return dict(zip(names, map(_literal, values), strict=True))
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=ast.Constant(value=value)):
            if isinstance(value, int | float) and not isinstance(value, bool):
                return -value if isinstance(sign, ast.USub) else value
        case ast.JoinedStr(values=pieces) if all(isinstance(p, ast.Constant) for p in pieces):
            return _whole("".join(str(p.value) for p in pieces if isinstance(p, ast.Constant)))
    raise UnreadableError(f"a {type(node).__name__} is no plain value")


def _whole(text: str) -> str:
    """Return the text with surrogate pairs joined; a lone surrogate is replaced."""
    if not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _checked(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments, if JSON can hold them: no infinity, nothing nested without end."""
    try:
        json.dumps(arguments, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"JSON has no such value: {error}") from None
    return arguments


def _typed(value: Any, name: str, schema: Schema) -> Any:
    """Return a word as the type of the parameter in the schema, where it can be read so."""
    declared = schema["properties"].get(name)
    kind = declared.get("type") if isinstance(declared, Mapping) else None
    if not isinstance(value, str) or kind in (None, "string"):
        return value
    try:
        read = json.loads(value.lower() if kind == "boolean" else value)
    except (ValueError, RecursionError):
        return value
    return value if isinstance(read, float) and not math.isfinite(read) else read


def _prepared(source: str, names: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return Python that parses, with the renamed parameters: line breaks in strings escaped, other names
    replaced.
    """
    odd = sorted((n for n in names if n and not _is_name(n)), key=len, reverse=True)
    renamed = {f"_odd{i}_": name for i, name in enumerate(odd)}
    out: list[str] = []
    quote, at = "", 0
    while at < len(source):
        char = source[at]
        if quote:
            if char == "\\":
                out.append(source[at : at + 2])
                at += 2
                continue
            if source.startswith(quote, at):
                out.append(quote)
                at, quote = at + len(quote), ""
                continue
            out.append(CONTROLS.get(char, char) if len(quote) == 1 or char == "\0" else char)
        elif char in "\"'":
            quote = char * 3 if source.startswith(char * 3, at) else char
            out.append(quote)
            at += len(quote)
            continue
        else:
            match = next((k for k, n in renamed.items() if _stands(n, source, at)), None)
            out.append(match or char)
            at += len(renamed[match]) - 1 if match else 0
        at += 1
    return "".join(out), renamed


def _is_name(name: str) -> bool:
    try:
        return isinstance(ast.parse(name, mode="eval").body, ast.Name)
    except (SyntaxError, ValueError):
        return False


def _stands(name: str, source: str, at: int) -> bool:
    """Return whether a parameter's name stands at ``at`` with a value."""
    if not source.startswith(name, at):
        return False
    before, behind = at, at + len(name)
    while before and source[before - 1].isspace():
        before -= 1
    while source[behind : behind + 1].isspace():
        behind += 1
    opened = source[max(0, before - 1) : before] in ("(", ",")
    return opened and source[behind : behind + 1] == "=" and source[behind + 1 : behind + 2] != "="
