"""What the service says of itself: its problems, whether it is alive and ready."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from sqlalchemy import text

from importer import __version__
from importer.errors import ServiceError
from importer.service.desk import AtDesk
from importer.service.problems import explained

router = APIRouter(tags=["about"])


@router.get("/healthz", summary="Whether the process is alive")
def health() -> dict[str, str]:
    """Always, as long as it answers."""
    return {"status": "ok", "version": __version__}


@router.get("/readyz", summary="Whether it can work")
def ready(at: AtDesk) -> dict[str, str]:
    """Whether the database answers."""
    with at.database.reading() as connection:
        connection.execute(text("SELECT 1"))
    return {"status": "ready"}


@router.get("/problems/{kind}", summary="What a kind of problem means")
def problem(kind: str) -> dict[str, Any]:
    """Its sentence, its status and its next step."""
    found = explained(kind)
    if found is None:
        raise ServiceError("no-such-page", path=f"/problems/{kind}"[:200])
    return found
