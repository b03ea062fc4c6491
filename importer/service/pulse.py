"""Whether the database answers: one question at a time, whoever asks, and nobody waits for long."""

from __future__ import annotations

import asyncio

from sqlalchemy import text

from importer.gallery.database import Database

PATIENCE = 3.0  # seconds


class Pulse:
    """The question that is under way, if one is: a database that hangs holds one thread and not all."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._asking: asyncio.Task[None] | None = None

    async def felt(self) -> bool:
        """Whether there is an answer in time; raises what the database raises."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(asyncio.to_thread(self._ask))
        asking = self._asking
        done, _ = await asyncio.wait((asking,), timeout=PATIENCE)
        if not done:
            return False
        asking.result()
        return True

    def _ask(self) -> None:
        with self._database.reading() as connection:
            connection.execute(text("SELECT 1"))
