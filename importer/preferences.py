"""What the user set with --set and --backend, read and checked before it wins over everything."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from importer import backends
from importer.decide.target import Preferences, Target
from importer.document import options, schema
from importer.document.diff import ABSENT, same
from importer.document.places import FACTS, OPTIONS, PARAMETERS, SAMPLING, TOP_LEVEL
from importer.document.store import Stored
from importer.errors import DocumentError, UsageError

RESERVED = ("name", "importer", "options", "artifacts", "parameters", "parameters.model")
DESCRIBING = ("backend", "description", "known_usecases", "template")  # no decisions
DEVICE = "device"  # what --unset calls the word of --device and --memory
KINDS = ("chat", "base", "guard", "ocr", "translation")


def parse(assignments: Iterable[str], backend: str | None = None, unset: Iterable[str] = ()) -> Preferences:
    """``key=value`` strings as preferences; values are YAML scalars or flow collections.

    The backend ``auto`` takes back an earlier word on it, as ``unset`` does for its keys. Raises
    UsageError("bad-option") for a key that no document has.
    """
    values: dict[str, Any] = {} if backend is None else {"backend": backend}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        option = f"--set {assignment}"
        if not equals or not key:
            raise UsageError("bad-option", option=option, problem="it has the form key=value")
        values[_key(key.strip(), option)] = _value(text, option)
    dropped = {key if key == DEVICE else _key(key.strip(), f"--unset {key}") for key in unset}
    if both := sorted(dropped & values.keys()):
        problem = f"{both[0]} is set by the same command"
        raise UsageError("bad-option", option=f"--unset {both[0]}", problem=problem)
    if values.get("backend") == "auto":
        del values["backend"]
        dropped.add("backend")
    return Preferences(_checked(values), frozenset(dropped))


def recalled(typed: Preferences, stored: Stored | None) -> Preferences:
    """What is typed now, and before it what earlier imports of the same document were told.

    A backend that a person wrote into the file counts as said: all other values depend on it. Raises
    UsageError("bad-option") where the receipt holds what cannot have been said.
    """
    receipt = None if stored is None else stored.receipt
    if stored is None or receipt is None or receipt.request is None:
        return typed
    earlier = dict(receipt.request.get("preferences", {}))
    backend, wrote = stored.data.get("backend"), receipt.wrote
    if wrote is not None and backend in backends.NAMES and backend != wrote.get("backend"):
        earlier["backend"] = backend
    kept = {key: value for key, value in earlier.items() if key not in typed.unset}
    return Preferences({**_checked(kept), **typed.values}, typed.unset)


def written(document: Mapping[str, Any], wrote: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a person's file says, by the names that --set takes, where the importer did not write the same."""
    said, ours = dict(_said(document)), {} if wrote is None else dict(_said(wrote))
    return {key: value for key, value in said.items() if not same(value, ours.get(key, ABSENT))}


def _said(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if document.get("backend") in backends.NAMES:
        yield "backend", document["backend"]
    for key, value in _map(document, "parameters").items():
        if key in PARAMETERS:
            yield f"parameters.{key}", value
    for key in TOP_LEVEL:
        if key in document and key not in (*RESERVED, *DESCRIBING):
            inner = document[key] if key == "engine_args" and isinstance(document[key], Mapping) else None
            named = {key: document[key]} if inner is None else {f"{key}.{k}": v for k, v in inner.items()}
            yield from ((path, v) for path, v in named.items() if path.count(".") < 2)
    for key in OPTIONS:
        if any(option.key == key for option in options.of(document)):
            yield key, options.parser(document, key)
    yield from ((k, v) for k, v in _map(document, "importer").items() if k in FACTS)


def _map(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key)
    return value if isinstance(value, Mapping) else {}


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    """Values that a decision can have; raises UsageError("bad-option")."""
    for key, known in (("kind", KINDS), ("backend", backends.NAMES)):
        if key in values and values[key] not in known:
            raise UsageError("bad-option", option=f"--set {key}", problem=f"it is one of {', '.join(known)}")
    for key in OPTIONS:
        if values.get(key) == "none":
            values[key] = None
        elif values.get(key) is not None and not isinstance(values[key], str):
            raise UsageError("bad-option", option=f"--set {key}", problem="a parser is a name, or none")
    return values


def _key(key: str, option: str) -> str:
    if key in SAMPLING:
        return f"parameters.{key}"
    head, *rest = key.split(".")
    if "" in (head, *rest):
        raise UsageError("bad-option", option=option, problem="the path has an empty step")
    if key in RESERVED or (head in RESERVED and head != "parameters"):
        raise UsageError("bad-option", option=option, problem=f"{key} is not set this way")
    known = head in TOP_LEVEL if head != "parameters" else rest[0] in PARAMETERS
    if key in OPTIONS or key in FACTS or known:
        return key
    near = get_close_matches(rest[-1] if rest else head, [*OPTIONS, *FACTS, *PARAMETERS, *TOP_LEVEL], 3)
    raise UsageError(
        "bad-option",
        option=option,
        problem=f"no document has the key {key!r}" + (f"; near names: {', '.join(near)}" if near else ""),
    )


def _value(text: str, option: str) -> Any:
    """JSON where it is JSON (so that 1e-1 is a number), else YAML of one line, else the text itself."""
    import yaml

    if any(c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cs") for c in text):
        plain = option.encode("unicode_escape").decode()
        raise UsageError("bad-option", option=plain, problem="the value holds control characters")
    for load in (json.loads,) if "\n" in text else (json.loads, yaml.safe_load):
        try:
            value = load(text)
            json.dumps(value, allow_nan=False)
        except (ValueError, TypeError, RecursionError, yaml.YAMLError):
            continue
        return value
    return text


def check_parsers(preferences: Preferences, target: Target) -> None:
    """A parser the user names must exist in the target engine; raises UsageError("unknown-parser")."""
    for key in OPTIONS:
        name = preferences.values.get(key)
        if name is not None and not target.has(key, name):
            near = get_close_matches(name, target.parsers[key], 5, 0.4) or sorted(target.parsers[key])[:5]
            raise UsageError(
                "unknown-parser",
                engine=target.backend,
                version=target.version,
                field=key.replace("_", " "),
                name=name,
                near=", ".join(near),
            )


def check_document(data: Mapping[str, Any], preferences: Preferences) -> None:
    """What the user set must fit the document's schema; raises UsageError("bad-option")."""
    if preferences.values:
        try:
            schema.check("document", data, "the document")
        except DocumentError as error:
            raise UsageError("bad-option", option="--set", problem=error.details["problem"]) from None
