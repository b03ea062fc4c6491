"""Health, metrics, the kinds of failures, and the devices that an import may name."""

from __future__ import annotations

from typing import cast

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from importer.errors import ServiceError
from importer.service.desk import AtDesk
from importer.service.problems import explained
from importer.service.reads import Reads
from importer.service.security import ALIVE, HEALTH, Reader
from importer.service.telemetry import MEDIA_TYPE, Metrics

router = APIRouter(tags=["operation"], route_class=Reads)
AGAIN = 5  # seconds


@router.get(HEALTH, summary="Whether the process is alive")
async def health() -> dict[str, str]:
    """Return 200 as long as the server answers; the middleware does, before any other request."""
    return ALIVE


@router.get("/readyz", summary="Whether it can work")
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
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    summary="Figures for Prometheus",
)
def metrics(request: Request, at: AtDesk, _who: Reader) -> Response:
    """Return requests of this process; documents, jobs and processes of the gallery. Needs the scope
    `read`.
    """
    return Response(cast(Metrics, request.app.state.metrics).text(at.database), media_type=MEDIA_TYPE)


router_about = APIRouter(tags=["about"], route_class=Reads)


@router_about.get("/problems/{kind}", summary="What a kind of problem means")
def problem(kind: str) -> dict[str, object]:
    """Return the sentence, the status and the next step of a kind."""
    explanation = explained(kind)
    if explanation is None:
        raise ServiceError("no-such-page", path=f"/problems/{kind}"[:200])
    return explanation


router_devices = APIRouter(prefix="/v1", tags=["devices"], route_class=Reads)


class DeviceRow(BaseModel):
    """A device; several are ``8xNAME``."""

    name: str
    kind: str
    memory: int | None = Field(description="bytes of one device; null: this machine's own")
    share: float = Field(description="the part that an engine may fill")
    native: list[str] = Field(description="number formats in hardware")
    node: int = Field(description="devices in one machine; more of them are several machines")
    engine: str | None = Field(description="what serves it in place of the released engine")
    basis: str = Field(description="how its memory is known: seen (in a log), vendor or assumed")
    source: str


@router_devices.get("/devices", response_model=list[DeviceRow], summary="The devices that imports may name")
def list_(_who: Reader) -> list[dict[str, object]]:
    """Return each device with its memory, its number formats and the source of the figures."""
    from importer.memory.devices import known

    return [
        {
            "name": d.name, "kind": d.kind, "memory": d.memory, "share": d.share, "native": sorted(d.native),
            "node": d.node, "engine": d.engine, "basis": d.basis, "source": d.source,
        }
        for d in known().values()
    ]  # fmt: skip
