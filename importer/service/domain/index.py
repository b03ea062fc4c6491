"""The gallery's index as LocalAI reads it, with the variants of each entry."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from importer.document.name_allocator import slug
from importer.frozen import frozen
from importer.storage import releases
from importer.storage.database import Database


@frozen
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


BASES = 4  # addresses of this server for which an index is held
LEVEL = 4  # of gzip: an index of 10,000 entries within half a second


@frozen
class IndexPage:
    """Something to send: ``packed`` is the same in gzip."""

    body: bytes
    packed: bytes
    tag: str

    @classmethod
    def of(cls, text: str) -> IndexPage:
        """Return a page of a text."""
        body = text.encode()
        return cls(body, gzip.compress(body, LEVEL, mtime=0), hashlib.sha256(body).hexdigest()[:32])


class GalleryIndex:
    """The index of one database, for any thread; ``base`` is how clients reach this server."""

    def __init__(self, database: Database) -> None:
        self._database, self._lock = database, Lock()
        self._pages: dict[str, tuple[int, IndexPage]] = {}

    def get(self, base: str) -> IndexPage:
        """Return the present index; the first request after a change renders it, others wait."""
        with self._database.reading() as connection:
            now = releases.mark(connection)
        if (page := self._known(base, now)) is not None:
            return page
        with self._lock:
            return self._known(base, now) or self._render(base)

    def _known(self, base: str, mark: int) -> IndexPage | None:
        held = self._pages.get(base)
        return held[1] if held is not None and held[0] >= mark else None

    def _render(self, base: str) -> IndexPage:
        with self._database.reading() as connection:
            mark = releases.mark(connection)
            items = [Served(*row) for row in releases.items(connection)]
            page = IndexPage.of(text(items, base))
        recent = [*self._pages.items()][-(BASES - 1) :]
        self._pages = {key: held for key, held in recent if key != base} | {base: (mark, page)}
        return page


def text(items: Sequence[Served], base: str) -> str:
    """Return the index as one YAML list.

    The entry's own file is added to the ``urls`` that end each item, then the names of its ``variants``.
    """
    variants = variants_of(items)
    return "".join(_item(one, variants.get(one.name, ()), base) for one in items) or "[]\n"


def _item(one: Served, variants: Sequence[str], base: str) -> str:
    own = f"{one.item}  - {json.dumps(f'{base}/gallery/{one.name}.yaml')}\n"
    names = "".join(f"  - model: {json.dumps(name)}\n" for name in variants)
    return f"{own}  variants:\n{names}" if names else own
