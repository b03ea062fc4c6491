"""The gallery's index as LocalAI reads it, rendered once after each change of the published entries."""

from __future__ import annotations

import gzip
import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from threading import Lock

from importer.service.domain.variants import Served, variants_of
from importer.storage import published
from importer.storage.database import Database
from importer.storage.published import Mark

BASES = 4  # addresses of this server for which an index is held
LEVEL = 4  # of gzip: an index of 10,000 entries within half a second


@dataclass(frozen=True, slots=True)
class IndexPage:
    """Something to send: ``packed`` is the same in gzip; ``at`` is when it changed, in epoch seconds."""

    body: bytes
    packed: bytes
    tag: str
    at: int

    @classmethod
    def of(cls, text: str, at: int) -> IndexPage:
        """Return a page of a text that changed at ``at``."""
        body = text.encode()
        digest = hashlib.sha256(body).hexdigest()[:32]
        return cls(body, gzip.compress(body, LEVEL, mtime=0), digest, at)

    @property
    def modified(self) -> str | None:
        """Return the time of the change for HTTP; ``None`` in the same second, when another change may
        follow.
        """
        return formatdate(self.at, usegmt=True) if 0 < self.at < int(time.time()) else None

    def unchanged_since(self, header: str | None) -> bool:
        """Return whether the page is no newer than ``If-Modified-Since``."""
        if header is None or self.modified is None:
            return False
        try:
            return self.at <= parsedate_to_datetime(header).timestamp()
        except (TypeError, ValueError, OverflowError):
            return False


class GalleryIndex:
    """The index of one database, for any thread; ``base`` is how clients reach this server."""

    def __init__(self, database: Database) -> None:
        self._database, self._lock = database, Lock()
        self._pages: dict[str, tuple[Mark, IndexPage]] = {}

    def get(self, base: str) -> IndexPage:
        """Return the present index; the first request after a change renders it, others wait."""
        with self._database.reading() as connection:
            now = published.mark(connection)
        if (page := self._known(base, now)) is not None:
            return page
        with self._lock:
            return self._known(base, now) or self._render(base)

    def _known(self, base: str, mark: Mark) -> IndexPage | None:
        held = self._pages.get(base)
        return held[1] if held is not None and held[0].number >= mark.number else None

    def _render(self, base: str) -> IndexPage:
        with self._database.reading() as connection:
            mark = published.mark(connection)
            items = [Served(*row) for row in published.items(connection)]
            page = IndexPage.of(text(items, base), mark.at)
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
