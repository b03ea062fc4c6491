"""The user's settings: read, checked, remembered from earlier imports, and the list of valid keys."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from importer import backends, config
from importer.decisions.decision import Preferences, Target
from importer.document import check, document_keys, schema
from importer.document.argument_check import arguments_of, kind_name
from importer.document.build import SCHEMA, put
from importer.document.document import Document
from importer.document.document_keys import (
    ABSENT,
    FACTS,
    OPTIONS,
    PARAMETERS,
    SAMPLING,
    TOP_LEVEL,
    place,
    same,
)
from importer.document.engine_arguments import load
from importer.document.model_conflicts import model_conflicts
from importer.document.model_facts import ModelFacts
from importer.document.store import StoredDocument
from importer.errors import DocumentError, Setting, UsageError
from importer.reasons import Reason, ReasonKind
from importer.signals import speculation

BACKEND = "backend"  # has a check of its own, like the arguments of an engine by its version
MODEL = "owner/name"  # stands for the model, which a check of values does not need
RESERVED = ("name", "importer", "options", "artifacts", "parameters", "parameters.model")
DESCRIBING = ("backend", "description", "known_usecases", "template")  # no decisions
TEXTS = ("description", "system_prompt", "template", "stopwords", "env")  # may begin like JSON
OPEN = ("engine_args", "env")  # maps with keys of the engine
KINDS = ("chat", "base", "guard", "ocr", "translation")


class PreferenceReason(ReasonKind):
    """Why a preference is not valid."""

    FORM = "{given!r} does not have the form key=value"
    SET_TOO = "{key} is set by the same request"
    NOT_ONE_OF = "{key} is one of {known}"
    NO_PARSER = "{key} is the name of a parser, or none"
    NOT_SET_SO = "{key} is not set this way"
    CONTROL = "the value of {key} holds control characters"
    EMPTY = "the value of {key} is empty; write null to leave it unset"
    UNCLOSED = "the value of {key} begins like JSON, and is neither JSON nor YAML"
    NEAR = "Did you mean {names:or}?"


def parse(
    assignments: Mapping[str, Any] | Iterable[str] | None,
    backend: str | None = None,
    unset: Iterable[str] = (),
    options: Collection[str] = (),
) -> Preferences:
    """Return preferences of JSON values by key, or of ``key=value`` strings with YAML scalars or flow
    collections.

    The backend ``auto`` removes an earlier backend, as ``unset`` does for its keys and for ``options``.
    Raises UsageError: "unknown-setting" for a key that no document has, "bad-value" for a value that no
    document has there.
    """
    if isinstance(assignments, Mapping):
        assignments = [f"{key}={json.dumps(value)}" for key, value in assignments.items()]
    values: dict[str, Any] = {} if backend is None else {"backend": backend}
    for assignment in assignments or ():
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise _refused(Setting.SET, assignment, PreferenceReason.FORM, given=assignment)
        name = _key(key.strip(), Setting.SET)
        if not text.strip() and not (name in OPTIONS or name.startswith("parameters.")):  # there it is null
            raise _refused(Setting.SET, text, PreferenceReason.EMPTY, key=name)
        value = _value(name, text)
        if name == "backend" and backend not in (None, value):
            raise _refused(Setting.SET, value, PreferenceReason.SET_TOO, key=name)
        by_name = name == speculation.KEY and isinstance(value, str)
        values[name] = speculation.spelled_out(value) if by_name else value
    dropped = {key if key in options else _key(key.strip(), Setting.UNSET) for key in unset}
    if both := sorted(dropped & values.keys()):
        raise _refused(Setting.UNSET, both[0], PreferenceReason.SET_TOO, key=both[0])
    if values.get("backend") == "auto":
        del values["backend"]
        dropped.add("backend")
    _check_engine(values, values.get("backend"))
    checked = _checked(values)
    _check_values(checked)
    return Preferences(checked, frozenset(dropped))


def _check_values(values: Mapping[str, object]) -> None:
    """Raise UsageError("bad-value") for the first value that no document can have at its key.

    ``values`` are by full key (``parameters.temperature``); null takes a value away, and is not checked.
    """
    if not any(value is not None for key, value in values.items() if key != BACKEND):
        return
    document: dict[str, object] = {
        "name": "model", "backend": "", "parameters": {"model": MODEL},
        "importer": {"schema": SCHEMA, "reference": MODEL, "engine": {"name": ""}},
    }  # fmt: skip
    for key, value in values.items():
        path = None if key in (*OPTIONS, BACKEND) or value is None else place(key)
        if path is not None:
            put(document, path, value)
    fault = next(schema.faults("document", document), None)
    if fault is not None:
        problem = schema.at(fault.path, fault.message)
        raise UsageError("bad-value", setting=Setting.SET, value=_at(document, fault.path), problem=problem)


def _at(document: Any, path: tuple[str | int, ...]) -> object:
    """Return the value at a path of the document; of a missing one the nearest above it."""
    for step in path:
        if isinstance(document, Mapping) and step not in document:
            break
        document = document[step]
    return document


def _check_engine(values: Mapping[str, object], backend: str | None) -> None:
    """Raise UsageError for arguments and variables that no version of the engine takes."""
    found = check.of_settings(values, backend)
    if found is None:
        return
    path, reason = found
    if reason.kind is not check.UNKNOWN:
        raise UsageError(
            "bad-value", setting=Setting.SET, value=".".join(map(str, path)), problem=schema.at(path, reason)
        )
    head = ".".join(map(str, path[:-1]))
    names = [repr(f"{head}.{name}") for name in _listed(reason.fields.get("near") or ())]
    raise _unknown(Setting.SET, ".".join(map(str, path)), names)


def recalled(typed: Preferences, stored: StoredDocument | None) -> Preferences:
    """Return the preferences of this import on top of those of the document's earlier imports.

    The backend of the settings is that of a first import. A backend that a person wrote into the file counts
    as a preference: all other values depend on it. Raises UsageError("bad-value") for invalid preferences.
    """
    receipt = None if stored is None else stored.receipt
    if stored is None:
        values = {} if "backend" in typed.unset else _by_default()
        return Preferences({**values, **typed.values}, typed.unset)
    if receipt is None:
        return typed
    earlier = dict(receipt.request.get("preferences", {}))
    backend, wrote = stored.data.get("backend"), receipt.wrote
    if wrote is not None and backend in backends.NAMES and backend != wrote.get("backend"):
        earlier["backend"] = backend
    remaining = {key: value for key, value in earlier.items() if key not in typed.unset}
    return Preferences({**_checked(remaining), **typed.values}, typed.unset)


def _by_default() -> Mapping[str, object]:
    """Return the backend of the settings; raises UsageError("bad-value") for one that importer lacks."""
    backend = config.default("backend")
    if backend in (None, "auto"):
        return {}
    if backend not in backends.NAMES:
        problem = Reason(PreferenceReason.NOT_ONE_OF, key=BACKEND, known=", ".join(backends.NAMES))
        raise UsageError("bad-value", setting=config.origin(BACKEND), value=backend, problem=problem)
    return {BACKEND: backend}


def written(document: Document, wrote: Document | None) -> dict[str, object]:
    """Return the values of a person's file that the importer did not write, by the names of preferences."""
    settings, imported = dict(_settings_of(document)), {} if wrote is None else dict(_settings_of(wrote))
    return {key: value for key, value in settings.items() if not same(value, imported.get(key, ABSENT))}


def _settings_of(document: Document) -> Iterator[tuple[str, Any]]:
    if document.get("backend") in backends.NAMES:
        yield "backend", document["backend"]
    for key, value in _map(document, "parameters").items():
        if key in PARAMETERS:
            yield f"parameters.{key}", value
    for key in TOP_LEVEL:
        if key in document and key not in (*RESERVED, *DESCRIBING):
            value = document.get(key)
            inner = value if key in OPEN and isinstance(value, Mapping) else None
            named = {key: value} if inner is None else {f"{key}.{k}": v for k, v in inner.items()}
            yield from ((path, v) for path, v in named.items() if path.count(".") < 2)
    for key in OPTIONS:
        if any(option.key == key for option in document_keys.of(document)):
            yield key, document_keys.parser(document, key)
    yield from ((k, v) for k, v in _map(document, "importer").items() if k in FACTS)


def _map(document: Document, key: str) -> Mapping[str, object]:
    value = document.get(key)
    return value if isinstance(value, Mapping) else {}


def _checked(values: dict[str, object]) -> dict[str, object]:
    """Return values that a decision can have; raises UsageError("bad-value")."""
    for key, known in (("kind", KINDS), ("backend", backends.NAMES)):
        if key in values and values[key] not in known:
            raise _refused(Setting.SET, values[key], PreferenceReason.NOT_ONE_OF, key=key, known=known)
    for key in OPTIONS:
        if values.get(key) == "none":
            values[key] = None
        elif values.get(key) is not None and not isinstance(values[key], str):
            raise _refused(Setting.SET, values[key], PreferenceReason.NO_PARSER, key=key)
    return values


def _refused(setting: Setting, value: object, reason: PreferenceReason, **fields: object) -> UsageError:
    return UsageError("bad-value", setting=setting, value=value, problem=Reason(reason, **fields))


def _key(key: str, setting: Setting) -> str:
    if key in SAMPLING or (key in PARAMETERS and f"parameters.{key}" not in RESERVED):
        return f"parameters.{key}"
    head, *rest = key.split(".")
    if "" in (head, *rest):
        raise _refused(setting, key, PreferenceReason.NOT_SET_SO, key=key)
    if key in RESERVED or (head in RESERVED and head != "parameters"):
        raise _refused(setting, key, PreferenceReason.NOT_SET_SO, key=key)
    known = head in TOP_LEVEL if head != "parameters" else rest[0] in PARAMETERS
    if key in OPTIONS or key in FACTS or known:
        return key
    arguments = _arguments()
    if head in arguments or _is_engines(head):  # the reason of a refusal follows
        return f"engine_args.{key}"
    known_names = [*OPTIONS, *FACTS, *PARAMETERS, *TOP_LEVEL, *arguments]
    names = get_close_matches(rest[-1] if rest else head, known_names, 3)
    raise _unknown(setting, key, [repr(name) for name in names])


def _unknown(setting: Setting, name: str, near: list[str]) -> UsageError:
    known = Reason(PreferenceReason.NEAR, names=near) if near else ""
    return UsageError("unknown-setting", setting=setting, name=name, near=known)


def _arguments() -> frozenset[str]:
    """Return the arguments of all engines, that need no ``engine_args.`` before their names."""
    return frozenset(name for engine in backends.NAMES for name in arguments_of(engine))


def _is_engines(name: str) -> bool:
    """Return whether an engine has the argument, one that no document sets among them."""
    return any(name in registry.arguments for registry in map(load, backends.NAMES) if registry is not None)


def _value(key: str, text: str) -> Any:
    """Return the value of a text: JSON (so that 1e-1 is a number), else YAML of one line, else the text
    itself.
    """
    from importer import yaml_reader

    if any(c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cs") for c in text):
        raise _refused(Setting.SET, text, PreferenceReason.CONTROL, key=key)
    for reader in (json.loads,) if "\n" in text else (json.loads, yaml_reader.read):
        try:
            value = reader(text)
            json.dumps(value, allow_nan=False)
        except (ValueError, TypeError, RecursionError):
            continue
        return value
    if text.lstrip().startswith(("{", "[")) and key.partition(".")[0] not in TEXTS:
        raise _refused(Setting.SET, text, PreferenceReason.UNCLOSED, key=key)
    return text


_PARSER = "A parser of the engine, or none."


def settable() -> list[tuple[str, str, str]]:
    """Return the keys that a person may set, each with the type of its value and a description."""
    properties = schema.load("document")["properties"]
    inner = properties["parameters"]["properties"]
    block = properties["importer"]["properties"]
    rows = [(key, "string", _PARSER) for key in OPTIONS]
    rows += [(f"parameters.{key}", *_described(inner.get(key, {}))) for key in PARAMETERS]
    rows += [(key, *_described(properties[key])) for key in TOP_LEVEL if key not in RESERVED]
    rows += [(f"engine_args.{name}", kind, f"An argument of {who}.") for name, kind, who in _of_engines()]
    return rows + [(key, *_described(block.get(key, {}))) for key in FACTS]


def _of_engines() -> Iterator[tuple[str, str, str]]:
    """Yield each argument that a document may set: its name, its type, and the engines that have it."""
    engines: dict[str, dict[str, str]] = {}
    for engine in backends.NAMES:
        for name, argument in arguments_of(engine).items():
            engines.setdefault(name, {})[engine] = kind_name(argument.kind)
    for name in sorted(engines):
        yield name, next(iter(engines[name].values())), ", ".join(engines[name])


def _described(entry: Any) -> tuple[str, str]:
    """Return the type of a schema's entry without null, and its description."""
    entry = entry if isinstance(entry, Mapping) else {}  # true: any value
    kinds = [str(k) for k in _listed(entry.get("type", ())) if k != "null"]
    choices = [str(c) for c in entry.get("enum", ()) if c]
    return " or ".join(kinds) or " ".join(choices) or "any", str(entry.get("description", ""))


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, str) else [*value]


def check_parsers(preferences: Preferences, target: Target) -> None:
    """Raise UsageError("unknown-parser") for a chosen parser that the target engine lacks."""
    for key in OPTIONS:
        name = preferences.values.get(key)
        if isinstance(name, str) and not target.has(key, name):
            from importer.signals.template_markers import of_same_markers  # of a refusal alone

            known = target.parsers[key]
            near = [
                *of_same_markers(key, name, target.backend, known),
                *get_close_matches(name, known, 5, 0.4),
            ]
            raise UsageError(
                "unknown-parser",
                engine=target.backend,
                version=target.version,
                field=key.replace("_", " "),
                name=name,
                near=", ".join([*dict.fromkeys(near or sorted(known))][:5]),
            )


def check_document(data: Document, preferences: Preferences, model: ModelFacts) -> None:
    """Raise UsageError("bad-value") for a setting that the schema, the engine or the model has something
    against.
    """
    for path, reason in model_conflicts(data, preferences.values, model):
        raise UsageError("bad-value", setting=Setting.SET, problem=schema.at(path, reason))
    try:
        schema.check("document", data, "the document")
    except DocumentError as error:
        problem = error.details["problem"]
        raise UsageError("bad-value", setting=Setting.SET, problem=problem) from None
