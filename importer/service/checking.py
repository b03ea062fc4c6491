"""A document's text as it was sent: read, checked, and each mistake told with its line and its key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from importer.document.check import faults
from importer.document.where import Places, Problem, Unreadable, parse
from importer.errors import DocumentError
from importer.service import messages

LONGEST = 64_000  # characters of a document, ten times a long one; YAML is read slowly
MOST = 200  # mistakes that are told; who made more reads no further


def _read(text: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The data, and what is wrong by lines: JSON pointer, line, column, and what is said."""
    if len(text) > LONGEST:
        says = f"it has more than {LONGEST:,} characters"
        return {}, [{"pointer": "", "line": 1, "column": 1, "detail": says}]
    try:
        data = parse(text)
    except Unreadable as error:
        return {}, [_mistake(error.problem, ())]
    found = [_mistake(problem, path) for path, problem in islice(faults(text, data), MOST)]
    return data, sorted(found, key=lambda m: (m["line"], m["column"]))


def _mistake(found: Problem, path: tuple[str | int, ...]) -> dict[str, Any]:
    """A problem with the pointer to what it is about."""
    says = messages.text(found.says)
    return {"pointer": pointer(path), "line": found.line, "column": found.column, "detail": says}


def pointer(path: tuple[str | int, ...]) -> str:
    """RFC 6901."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def looked_at(text: str, name: str) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """The text's data where it is a document of that name, and its mistakes, up to ``MOST``."""
    data, found = _read(text)
    if found:
        return None, found
    if data.get("name") == name:
        return data, []
    says = f"it is {data.get('name')!r} and cannot be changed here"
    at = Places(text).problem(("name",), says)
    return None, [_mistake(at, ("name",))]


def checked(text: str, name: str) -> dict[str, Any]:
    """The text's data; raises DocumentError("invalid") with the mistakes."""
    data, found = looked_at(text, name)
    if data is None or found:
        said = "; ".join(f"line {m['line']}: {m['detail']}" for m in found[:5])
        raise DocumentError("invalid", path=f"{name}.yaml", problem=said, errors=found)
    return data


def merged(data: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """RFC 7396: maps are merged, null takes away, all else replaces."""
    result = dict(data)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            old = result.get(key)
            result[key] = merged(old if isinstance(old, Mapping) else {}, value)
        else:
            result[key] = value
    return result


def json_object(body: bytes, place: str = "") -> dict[str, Any]:
    """A body that has to be a JSON object, no longer than a document; raises DocumentError("invalid")."""
    found = _object(body)
    if isinstance(found, dict):
        return found
    errors = [{"pointer": place, "detail": found}]
    raise DocumentError("invalid", path="The body", problem=found, errors=errors)


def _object(body: bytes) -> dict[str, Any] | str:
    """The object, or what is wrong."""
    if len(body) > 4 * LONGEST:  # bytes; a character has up to four
        return f"it is longer than {4 * LONGEST:,} bytes"
    try:
        data = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return f"it is no JSON: {error}"
    return data if isinstance(data, dict) else "it is no JSON object"


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not a number that JSON has")
