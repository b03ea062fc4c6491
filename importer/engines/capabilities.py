"""The abilities of each version of an engine: generated files, read without the engine.

``python -m gen_defaults abilities`` writes them from the released sources, ``processors`` from trials.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from importer.engines.registries import FAMILY, PINNED
from importer.signals.engine_capabilities import Abilities

SCHEMA = 1
FOLDER = Path(__file__).with_name("abilities_of")


def load(engine: str, version: str | None = None) -> Abilities:
    """Return the abilities of a version, by default of the pinned one; only the names without a file."""
    family = FAMILY.get(engine, engine)
    return _read(family, version or PINNED.get(family))


@cache
def _read(family: str, version: str | None) -> Abilities:
    data = {**_file(f"{family}-{version}"), **_file(f"{family}-{version}-processors")}
    values = {f.name: _plain(f.type, data[f.name]) for f in fields(Abilities) if f.name in data}
    return Abilities(**{**values, "engine": family, "version": version})


def _file(name: str) -> Mapping[str, Any]:
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _plain(kind: object, value: Any) -> Any:
    """Return lists of JSON as the tuples and sets of the type."""
    if isinstance(value, list) and str(kind).startswith("Mapping"):
        return dict.fromkeys(value, 0)  # methods without a least capability
    if isinstance(value, list):
        return frozenset(value) if str(kind).startswith("frozenset") else tuple(value)
    if isinstance(value, dict):
        return {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}
    return value
