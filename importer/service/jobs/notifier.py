"""Notify watchers of jobs: one query of the database wakes all that wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

from sqlalchemy.exc import SQLAlchemyError

from importer.storage import jobs, progress
from importer.storage.database import Database

ALL = "summary"  # in place of a root: the figures of all jobs
LOOK = 0.2  # seconds between two queries, while there are watchers


class Watching:
    """Wakes the watchers of a job when it has new events."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._watchers: dict[str, set[asyncio.Event]] = {}
        self._heads: dict[str, Hashable] = {}
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def job(self, root: str) -> AsyncIterator[asyncio.Event]:
        """Yield an event that is set whenever there may be new events of a job, or of ``ALL``."""
        event = asyncio.Event()
        self._watchers.setdefault(root, set()).add(event)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())
        try:
            yield event
        finally:
            self._watchers[root].discard(event)
            if not self._watchers[root]:
                del self._watchers[root]
                self._heads.pop(root, None)

    def end(self) -> None:
        """Wake all that watch: the process ends."""
        for events in self._watchers.values():
            for event in events:
                event.set()

    async def _look(self) -> None:
        while self._watchers:
            try:
                heads = await asyncio.to_thread(self._now, [*self._watchers])
            except SQLAlchemyError:  # the next look tries again; watchers look for themselves now and then
                heads = {}
            for root, head in heads.items():
                if self._heads.get(root) != head:
                    self._heads[root] = head
                    for event in self._watchers.get(root, ()):
                        event.set()
            await asyncio.sleep(LOOK)

    def _now(self, roots: list[str]) -> dict[str, Hashable]:
        with self._database.reading() as connection:
            heads: dict[str, Hashable] = {**jobs.heads(connection, roots)}
            if ALL in roots:
                heads[ALL] = str(progress.summary(connection))
            return heads
