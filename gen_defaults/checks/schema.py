"""Faults of a table, or of a source's row, against its schema: one fault per place, with its rule."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator


@dataclass(frozen=True, slots=True)
class RowFault:
    """A fault: ``rule`` is the schema's keyword (``required``, ``type``, ``maximum`` …), ``bound`` its value.

    ``step``  the next step, where it differs from that of importer's own rows.
    """

    file: str
    row: str
    key: str
    rule: str
    value: Any
    bound: Any
    message: str
    step: str = ""


def faults(file: str, data: Mapping[str, Any]) -> Iterator[RowFault]:
    """Yield every fault of a table; the places are its schema's."""
    errors: Iterable[Any] = Draft202012Validator(_read(file)).iter_errors(data)
    for error in errors:
        yield from _faults(file, error)
    for place in ("families", "modes"):
        rows = data.get(place) if isinstance(data, Mapping) else None
        for family, row in rows.items() if isinstance(rows, Mapping) else ():
            yield from _unordered(file, family, row)


def upstream_faults(
    source: str, rows: Mapping[str, Any], known: Mapping[str, str], required: tuple[str, ...]
) -> Iterator[RowFault]:
    """Yield the faults of a source's rows, judged under importer's names of the fields."""
    values = Draft202012Validator(_read("inference_defaults.json")["$defs"]["values"])
    source_names = {renamed: name for name, renamed in known.items()}
    for family, row in rows.items():
        if not isinstance(row, Mapping):
            yield RowFault(source, family, "", "type", row, "object", "")
            continue
        for name in required:
            if name not in row:
                yield RowFault(source, family, name, "required", None, None, "")
        renamed = {known[name]: value for name, value in row.items() if name in known}
        for error in values.iter_errors(renamed):
            key = source_names[str(error.path[0])] if error.path else ""
            yield RowFault(
                source, family, key, error.validator, error.instance, error.validator_value, error.message
            )
        yield from _unordered(source, family, row)


@cache
def _read(file: str) -> dict[str, Any]:
    name = file.replace(".json", ".schema.json")
    schema: dict[str, Any] = json.loads(files("importer").joinpath("data", name).read_text(encoding="utf-8"))
    return schema


def _faults(file: str, error: Any) -> Iterator[RowFault]:
    """Yield one fault per field; the place is family and key, or a list's or a map's name."""
    path = [str(step) for step in error.absolute_path]
    place, row, key = path[:1], "".join(path[1:2]), path[2:]
    if place == ["patterns"]:
        row, key = str(error.instance), place
    rule, bound, instance = str(error.validator), error.validator_value, error.instance
    if rule == "required" and isinstance(instance, Mapping):
        names = [name for name in list(bound) if name not in instance]
    elif rule == "additionalProperties" and isinstance(instance, Mapping):
        allowed = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
        names = sorted(set(instance) - set(allowed))
    else:
        yield RowFault(file, row, ".".join(key or place), rule, instance, bound, error.message)
        return
    for name in names:
        yield RowFault(file, row, ".".join([*key, name]), rule, instance.get(name), None, error.message)


def _unordered(file: str, family: str, row: Any) -> Iterator[RowFault]:
    """Yield fields whose value is NaN, which JSON as Python reads it allows and no bound refuses."""
    if isinstance(row, Mapping):
        for key, value in row.items():
            if isinstance(value, Mapping):
                yield from _unordered(file, family, value)
            elif isinstance(value, float) and math.isnan(value):
                yield RowFault(file, family, str(key), "minimum", value, "a number", "")
