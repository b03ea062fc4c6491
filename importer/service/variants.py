"""The variants of an entry in the index: the entries of its model for other backends."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from importer.config_file.name_allocator import slug


@dataclass(frozen=True, slots=True)
class Served:
    """An entry of the index: its name, its item, and what lists show of it."""

    name: str
    item: str
    about: Mapping[str, Any]


def variants_of(entries: Sequence[Served]) -> dict[str, list[str]]:
    """Return the names of the variants of each entry that has some, by its name.

    A variant has none of its own: LocalAI resolves one level.
    """
    models: dict[str, list[Served]] = {}
    for entry in entries:
        models.setdefault(str(entry.about["urls"][0]), []).append(entry)
    found: dict[str, list[str]] = {}
    for group in models.values():
        if len(group) < 2:
            continue
        by_name = {entry.name: entry for entry in group}
        parents = {entry.name: _parent(entry, by_name) for entry in group}
        for name in sorted(parents):
            parent = parents[name]
            if parent is not None and parents[parent] is None:
                found.setdefault(parent, []).append(name)
    return found


def _parent(entry: Served, by_name: Mapping[str, Served]) -> str | None:
    """Return the name of the entry that this one is a variant of, among those of its model."""
    backend = entry.about["backend"]
    match = re.search(rf"-{re.escape(slug(str(backend)))}(-\d+)?$", entry.name)
    parent = None if match is None else by_name.get(entry.name[: match.start()])
    return None if parent is None or parent.about["backend"] == backend else parent.name
