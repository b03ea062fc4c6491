"""JSON and YAML of archives as data: bounded in depth and size, no key twice in one place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from importer import yaml_reader
from importer.sentences import render
from importer.wheels.index import IndexFailure
from importer.yaml_reader import MOST_VALUES, YamlError

DEEPEST = 40  # lists and maps within each other
LONGEST = 16 << 20  # characters, as many as an archive's file may have


def from_json(text: str, path: str, file: str) -> dict[str, Any]:
    """Return a JSON file of an archive as an object; raises IndexFailure."""
    try:
        data = json.loads(text, object_pairs_hook=_object)
        _measure(data)
    except (ValueError, RecursionError) as error:
        raise _unreadable(error, path, file) from None
    if not isinstance(data, dict):
        raise IndexFailure(f"{file}: {path} cannot be read: it is not an object")
    return data


def from_yaml(text: str, path: str, file: str) -> dict[str, Any]:
    """Return a YAML file of an archive as a map, an empty one where it holds nothing; raises IndexFailure."""
    try:
        data = yaml_reader.read(text, longest=LONGEST)
        _measure(data)
    except ValueError as error:
        raise _unreadable(error, path, file) from None
    if not isinstance(data, dict | None):
        raise IndexFailure(f"{file}: {path} is no map")
    return data or {}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in pairs:
        if key in data:
            raise ValueError(f"the key {key[:60]!r} stands twice in one place")
        data[key] = value
    return data


def _measure(data: Any) -> None:
    """Raise ValueError for data that are too deep, too large, or cannot be written again."""
    level, count = [data], 0
    for _ in range(DEEPEST + 1):
        level = [inner for value in level for inner in _inside(value)]
        count += len(level)
        if not level:
            return
        if count > MOST_VALUES:
            raise ValueError(f"it holds more than {MOST_VALUES} values")
    raise ValueError("it is nested too deep")


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, str):
        value.encode()  # half of a surrogate pair: a ValueError
    elif isinstance(value, dict):
        yield from (*value, *value.values())
    elif isinstance(value, list):
        yield from value


def _unreadable(error: Exception, path: str, file: str) -> IndexFailure:
    problem = str(error).partition("\n")[0].partition(";")[0]
    if isinstance(error, YamlError):
        problem = f"{render(error.reason)} on line {error.line}"
    elif isinstance(error, RecursionError):
        problem = "it is nested too deep"
    elif isinstance(error, UnicodeEncodeError):
        problem = "it holds half of a character"
    return IndexFailure(f"{file}: {path} cannot be read: {problem}")
