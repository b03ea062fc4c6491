"""One document for each model and backend: names by rule, and the variants of an entry in the index."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from importer.config_file.name_allocator import LONGEST, Names, slug
from importer.config_file.store import Store, StoredDocument
from importer.errors import ServiceError
from importer.hub.snapshot import Snapshot


class Variants(Names):
    """Allocates the names of documents for one backend: the model's own, else one that ends with the backend.

    ``backend`` is ``None`` where the request leaves it to the document or to the repository.
    """

    def __init__(self, store: Store, backend: str | None) -> None:
        super().__init__(store)
        self._backend = backend

    def give(self, snapshot: Snapshot) -> str:
        """Return the name of the model's document for the backend: the present one, else a free name."""
        base = super().give(snapshot)
        if self._backend is None:
            return base
        model, free = snapshot.model_id or str(snapshot.directory), None
        for name in self._candidates(base):
            stored = self._store.find(name)
            if stored is not None and (stored.model, stored.backend) == (model, self._backend):
                return name
            if stored is None:
                free = free or name
                if name != base:
                    break
        return free or base

    def known(self, snapshot: Snapshot, name: str | None = None) -> StoredDocument | None:
        """Return the model's document for the backend, under ``name`` or its own.

        Raises ServiceError("other-backend") where ``name`` is the model's document for another backend.
        """
        if name is None and self._backend is not None:
            return self._store.find(self.give(snapshot))
        stored = super().known(snapshot, name)
        if name is not None and stored is not None:
            self.check(stored, stored.model)
        return stored

    def check(self, stored: StoredDocument | None, model: str | None) -> None:
        """Raise ServiceError("other-backend") for the model's document for another backend."""
        if stored is None or stored.model != model:
            return
        if self._backend not in (None, stored.backend):
            raise ServiceError("other-backend", name=stored.name, has=stored.backend, backend=self._backend)

    def _candidates(self, base: str) -> Iterator[str]:
        """Yield the model's name, then that with the backend, then numbered ones."""
        yield base
        ending = f"-{slug(str(self._backend))}"
        long = base[: LONGEST - len(ending)].rstrip("-.") + ending
        yield long
        number = 2
        while True:
            yield f"{long}-{number}"
            number += 1


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
