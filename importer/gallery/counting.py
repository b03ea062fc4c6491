"""How many documents a filter leaves: counted again only after the gallery has changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock

from sqlalchemy import Connection, insert, select, update

from importer.gallery.tables import marks

KEY = "configs"
MOST = 500  # filters that are remembered


class Counts:
    """Numbers by filter, each with the mark of the gallery that it was counted at."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[Hashable, tuple[int, int]] = {}

    def get(self, key: Hashable, mark: int, count: Callable[[], int]) -> int:
        """The number that is known, or counted now."""
        with self._lock:
            known = self._known.get(key)
        if known is not None and known[0] == mark:
            return known[1]
        number = count()
        with self._lock:
            self._known.pop(key, None)
            self._known[key] = (mark, number)
            while len(self._known) > MOST:
                del self._known[next(iter(self._known))]
        return number


def marked(connection: Connection) -> int:
    """How often the gallery has changed."""
    return connection.execute(select(marks.c.value).where(marks.c.key == KEY)).scalar() or 0


def changed(connection: Connection) -> None:
    """It has changed once more."""
    grown = update(marks).where(marks.c.key == KEY).values(value=marks.c.value + 1)
    if connection.execute(grown).rowcount == 0:
        connection.execute(insert(marks).values(key=KEY, value=1))
