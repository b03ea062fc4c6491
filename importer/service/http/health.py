"""Health, readiness and metrics, for the operator."""

from __future__ import annotations

from typing import cast

from fastapi import APIRouter, Request
from fastapi.responses import Response

from importer.errors import ServiceError
from importer.service.desk import AtDesk
from importer.service.problems import problems
from importer.service.security.auth import Reader
from importer.service.security.middleware import ALIVE, HEALTH
from importer.service.telemetry import MEDIA_TYPE, Metrics

router = APIRouter(tags=["operation"])
AGAIN = 5  # seconds


@router.get(HEALTH, summary="Whether the process is alive")
async def health() -> dict[str, str]:
    """Return 200 as long as the server answers; the middleware does, before any other request."""
    return ALIVE


@router.get("/readyz", responses=problems("not-ready", "no-database"), summary="Whether it can work")
async def ready(request: Request, at: AtDesk) -> dict[str, str]:
    """Return 200 while the database answers, jobs are run, and the server is not shutting down."""
    if not await at.pulse.answers():
        raise ServiceError("no-database", seconds=AGAIN)
    if request.app.state.ending:
        raise ServiceError("not-ready", problem="it is ending", seconds=AGAIN)
    if not at.runner.well:
        raise ServiceError("not-ready", problem="its jobs are not looked after", seconds=AGAIN)
    return {"status": "ready"}


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **problems("no-database")},
    summary="Figures for Prometheus",
)
def metrics(request: Request, at: AtDesk, who: Reader) -> Response:
    """Return requests of this process; documents, jobs and processes of the gallery. Needs the scope
    `read`.
    """
    del who
    return Response(cast(Metrics, request.app.state.metrics).text(at.database), media_type=MEDIA_TYPE)
