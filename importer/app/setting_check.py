"""The check of settings when they arrive: each value by the document's schema, before a model is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importer.config_file import schema
from importer.config_file.build import SCHEMA, put
from importer.config_file.field_paths import FACTS, OPTIONS
from importer.errors import Setting, UsageError

BACKEND = "backend"  # has a check of its own, like the arguments of an engine by its version
MODEL = "owner/name"  # stands for the model, which a check of values does not need


def check_values(values: Mapping[str, Any]) -> None:
    """Raise UsageError("bad-value") for the first value that no document can have at its key.

    ``values`` are by full key (``parameters.temperature``); null takes a value away, and is not checked.
    """
    if not any(value is not None for value in values.values()):
        return
    document: dict[str, Any] = {
        "name": "model", "backend": "", "parameters": {"model": MODEL},
        "importer": {"schema": SCHEMA, "reference": MODEL, "engine": {"name": ""}},
    }  # fmt: skip
    for key, value in values.items():
        if key not in (*OPTIONS, BACKEND) and value is not None:
            put(document, ("importer", key) if key in FACTS else tuple(key.split(".")), value)
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
