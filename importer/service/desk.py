"""The services behind the routes, and JSON responses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from threading import BoundedSemaphore
from typing import Annotated, TypeVar, cast

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Request
from fastapi.responses import Response
from sqlalchemy import text

from importer.frozen import frozen
from importer.service.domain.gallery import Gallery
from importer.service.domain.index import GalleryIndex
from importer.service.jobs.live_jobs import Watching
from importer.service.jobs.runner import Runner
from importer.service.settings import Settings
from importer.storage.database import Database

PATIENCE = 3.0  # seconds
INDEX = "/gallery/index.yaml"
GALLERY = "importer"  # what LocalAI calls it: an entry is importer@NAME


class Pulse:
    """The question that is under way, if one is: a database that hangs holds one thread and not all."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._query: asyncio.Task[None] | None = None

    async def answers(self) -> bool:
        """Return whether the database answers in time; raises the database's own errors."""
        if self._query is None or self._query.done():
            self._query = asyncio.create_task(asyncio.to_thread(self._ask))
        query = self._query
        done, _ = await asyncio.wait((query,), timeout=PATIENCE)
        if not done:
            return False
        query.result()
        return True

    def _ask(self) -> None:
        with self._database.reading() as connection:
            connection.execute(text("SELECT 1"))


R = TypeVar("R")
TEXTS = 2  # documents that are read at a time: reading holds up whatever else Python does in this process


@frozen
class Desk:
    """The services of one process. ``looks`` limits the previews at a time, ``texts`` the documents that are
    read at a time, so that waiting requests hold no thread that others need.
    """

    settings: Settings
    database: Database
    gallery: Gallery
    runner: Runner
    watching: Watching
    index: GalleryIndex
    looks: BoundedSemaphore
    pulse: Pulse
    texts: CapacityLimiter

    def base(self, request: Request) -> str:
        """Return ``--public-url``, else scheme and host of the request, without a slash at the end."""
        return (self.settings.public_url or str(request.base_url)).rstrip("/")

    def address(self, request: Request) -> dict[str, str]:
        """Return the gallery's address for LocalAI's settings."""
        return {"url": self.base(request) + INDEX, "name": GALLERY}

    async def reading(self, work: Callable[..., R], *arguments: object) -> R:
        """Run work that reads a document's text in a thread of its own, at most ``texts`` at a time."""
        return await to_thread.run_sync(work, *arguments, limiter=self.texts)


async def desk(request: Request) -> Desk:
    """Return the desk that the application was made with."""
    return cast(Desk, request.app.state.desk)


AtDesk = Annotated[Desk, Depends(desk)]


def json_text(data: object) -> str:
    """Return JSON as it is sent."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def json_answer(data: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer in JSON."""
    return Response(json_text(data), status, dict(headers or {}), "application/json")
