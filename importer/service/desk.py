"""What the routes work with, and how they answer what was asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import Annotated, cast

from fastapi import Depends, Request
from fastapi.responses import Response

from importer.gallery.database import Database
from importer.gallery.gallery import Gallery
from importer.service.index import Index
from importer.service.jobs.crew import Crew
from importer.service.pulse import Pulse
from importer.service.settings import Settings
from importer.service.watching import Watching


@dataclass(frozen=True, slots=True)
class Desk:
    """The service of one process; ``looks`` are those at repositories that may be taken at a time."""

    settings: Settings
    database: Database
    gallery: Gallery
    crew: Crew
    watching: Watching
    index: Index
    looks: BoundedSemaphore
    pulse: Pulse


async def desk(request: Request) -> Desk:
    """The desk that the application was made with."""
    return cast(Desk, request.app.state.desk)


AtDesk = Annotated[Desk, Depends(desk)]


def json_text(data: object) -> str:
    """JSON as it goes over the wire."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def json_answer(data: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON."""
    return Response(json_text(data), status, dict(headers or {}), "application/json")
