"""Texts of others as data: bounded in depth and size, nothing said twice, or one sentence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from gen_defaults.index import IndexFailure

MERGE = "tag:yaml.org,2002:merge"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same, a tenth of the time
DEEPEST = 40  # lists and maps within each other
MOST = 100_000  # values of a file, an alias counted as often as it is used
OPENING = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
CLOSING = (yaml.SequenceEndEvent, yaml.MappingEndEvent)


def from_json(text: str, path: str, file: str) -> dict[str, Any]:
    """A JSON file of an archive as an object; raises IndexFailure."""
    try:
        data = json.loads(text, object_pairs_hook=_object)
        _measure(data)
    except (ValueError, RecursionError) as error:
        raise _unreadable(error, path, file) from None
    if not isinstance(data, dict):
        raise IndexFailure(f"{file}: {path} cannot be read: it is not an object")
    return data


def from_yaml(text: str, path: str, file: str) -> dict[str, Any]:
    """A YAML file of an archive as a map, an empty one where it holds nothing; raises IndexFailure."""
    try:
        data = _document(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _unreadable(error, path, file) from None
    if not isinstance(data, dict | None):
        raise IndexFailure(f"{file}: {path} is no map")
    return data or {}


def _document(text: str) -> Any:
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):  # what composes dies of depth instead of refusing it
        depth += isinstance(event, OPENING) - isinstance(event, CLOSING)
        if depth > DEEPEST:
            raise ValueError("it is nested too deep")
    loader = LOADER(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _distinct(node)
        data = loader.construct_document(node)
    finally:
        loader.dispose()
    _measure(data)
    return data


def _distinct(root: yaml.Node) -> None:
    """Raise ValueError where a map says a key twice, or takes over others: that grows without end."""
    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            if any(key.tag == MERGE for key, _ in node.value):
                raise ValueError("it merges maps, which is not read here")
            _once(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
            waiting += [one for pair in node.value for one in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _once(key for key, _ in pairs)
    return dict(pairs)


def _once(keys: Iterable[str]) -> None:
    seen = set[str]()
    for key in keys:
        if key in seen:
            raise ValueError(f"it says {key[:60]!r} twice in one place")
        seen.add(key)


def _measure(data: Any) -> None:
    """Raise ValueError for what is too deep or too large to be looked at, or cannot be written again."""
    level, count = [data], 0
    for _ in range(DEEPEST + 1):
        level = [inner for value in level for inner in _inside(value)]
        count += len(level)
        if not level:
            return
        if count > MOST:
            raise ValueError(f"it holds more than {MOST} values")
    raise ValueError("it is nested too deep")


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, str):
        value.encode()  # half of a surrogate pair: a ValueError
    elif isinstance(value, dict):
        yield from (*value, *value.values())
    elif isinstance(value, list):
        yield from value


def _unreadable(error: Exception, path: str, file: str) -> IndexFailure:
    says = str(error).partition("\n")[0].partition(";")[0]
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        says = f"{error.problem} on line {error.problem_mark.line + 1}"
    elif isinstance(error, RecursionError):
        says = "it is nested too deep"
    elif isinstance(error, UnicodeEncodeError):
        says = "it holds half of a character"
    return IndexFailure(f"{file}: {path} cannot be read: {says}")
