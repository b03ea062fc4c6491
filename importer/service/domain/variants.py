"""The variants of an entry in the index: the entries of its model for other backends and devices."""

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

    @property
    def device(self) -> str | None:
        """Return the device of an entry for this device alone, as its name ends."""
        return self.about.get("device")

    @property
    def base(self) -> str | None:
        """Return the model's name, to which backend or device was added; ``None`` for another name."""
        backend = f"-{re.escape(slug(str(self.about['backend'])))}"
        end = backend if self.device is None else f"(?:{backend})?-{re.escape(self.device)}"
        match = re.search(rf"{end}(-[0-9]+)?$", self.name)
        return None if match is None else self.name[: match.start()]


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
        by_name = {entry.name: entry for entry in sorted(group, key=lambda one: one.name)}
        parents = {name: _parent(entry, by_name) for name, entry in by_name.items()}
        for name, parent in parents.items():
            if parent is not None and parents[parent] is None:
                found.setdefault(parent, []).append(name)
    return found


def _parent(entry: Served, by_name: Mapping[str, Served]) -> str | None:
    """Return the name of the entry that this one is a variant of, among those of its model."""
    parent = None if entry.base is None else by_name.get(entry.base)
    if parent is not None:
        same = (parent.about["backend"], parent.device) == (entry.about["backend"], entry.device)
        return None if same else parent.name
    return None if entry.device is None else _first(entry, by_name)


def _first(entry: Served, by_name: Mapping[str, Served]) -> str | None:
    """Return the first entry of the same model and backend for a device, where none has the model's name."""
    place = (entry.base, entry.about["backend"])
    like = (one for one in by_name.values() if one.device and (one.base, one.about["backend"]) == place)
    first = next(like, entry)
    return None if first is entry else first.name
