"""The gallery's index as LocalAI reads it."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Sequence
from threading import Lock

from importer.frozen import frozen
from importer.storage import releases
from importer.storage.database import Database

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
            page = IndexPage.of(text(releases.items(connection), base))
        recent = [*self._pages.items()][-(BASES - 1) :]
        self._pages = {key: held for key, held in recent if key != base} | {base: (mark, page)}
        return page


def text(items: Sequence[tuple[str, str]], base: str) -> str:
    """Return the index as one YAML list: each item ends with its ``urls``, to which its own file is added."""
    own = (f"{item}  - {json.dumps(f'{base}/gallery/{name}.yaml')}\n" for name, item in items)
    return "".join(own) or "[]\n"
