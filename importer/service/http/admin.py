"""``/v1/operations``: processes, engines, the queue, retention and sizes, for the operator."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field
from sqlalchemy import Connection

from importer.engines import ENGINES, get, install
from importer.errors import EngineError
from importer.hub.endpoint import endpoint
from importer.service.desk import AtDesk
from importer.service.http.keys import ApiKey
from importer.service.problems import problems
from importer.service.security.auth import Admin
from importer.storage import figures, keys, processes, retention
from importer.version import __version__

router = APIRouter(prefix="/v1", tags=["admin"])


class WorkerJob(BaseModel):
    """A job that a process runs."""

    id: str
    kind: str
    config: str | None
    step: str | None
    started_at: str | None


class Worker(BaseModel):
    """A process that runs jobs, with its last heartbeat."""

    id: str
    host: str
    pid: int
    started_at: str
    seen_at: str
    alive: bool = Field(description="whether its lease has not expired")
    device: str | None = Field(description="where it validates; null if it does not")
    engines: list[str] = Field(description="the engines that this process can validate on")
    memory: int | None = Field(description="bytes")
    version: str | None = Field(description="of its steps")
    jobs: list[WorkerJob]


class InstalledEngine(BaseModel):
    """An engine on the machine of this server."""

    engine: str
    version: str | None = Field(description="null where it is not installed")
    origin: str | None = Field(description="managed, variable or current")


class QueueRow(BaseModel):
    """Jobs of a kind of one caller."""

    kind: str
    by: str
    queued: int
    running: int
    oldest_at: str | None = Field(description="since when the first one waits")


class RetentionRow(BaseModel):
    """What is kept of a kind of row; null is without a limit."""

    kind: str
    days: int | None
    number: int | None
    due: int | None = Field(description="older than that now; null where age is not counted")
    removed: int = Field(description="rows that went so far")


class Retention(BaseModel):
    """The retention: its last run, its next one, and its policy."""

    last_at: str | None
    next_at: str | None
    policy: list[RetentionRow]


class DatabaseSize(BaseModel):
    """The database."""

    kind: str
    bytes: int
    rows: dict[str, int]


class HubState(BaseModel):
    """The Hub that imports read."""

    endpoint: str
    budget: int | None = Field(description="requests left; null if the Hub sent no limit")


class Operations(BaseModel):
    """The state of the service."""

    version: str
    workers: list[Worker]
    engines: list[InstalledEngine]
    queue: list[QueueRow]
    keys: list[ApiKey]
    retention: Retention
    database: DatabaseSize
    hub: HubState


@router.get(
    "/operations", response_model=Operations, responses=problems(), summary="The state of the service"
)
def operations(at: AtDesk, _who: Admin) -> dict[str, object]:
    """Return processes with their jobs, engines of this machine, the queue, keys, retention and sizes.

    `GET /v1/audit` has the audit log.
    """
    with at.database.reading() as connection:
        last = retention.last_run(connection)
        return {
            "version": __version__, "workers": figures.workers(connection), "engines": _engines(),
            "queue": figures.queue(connection), "keys": keys.listed(connection),
            "retention": {
                "last_at": _time(last), "next_at": _time(last + retention.INTERVAL) if last else None,
                "policy": figures.kept(connection, at.settings.limits),
            },
            "database": figures.size(at.database, connection),
            "hub": {"endpoint": endpoint(), "budget": _left(connection)},
        }  # fmt: skip


def _left(connection: Connection) -> int | None:
    """Return the requests that the Hub leaves in its fullest quota."""
    running = [one for one in processes.all_executors(connection) if not processes.overdue(one)]
    return min(processes.hub_left(running).values(), default=None)


def _time(seconds: int) -> str | None:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else None


def _engines() -> list[dict[str, str | None]]:
    found = []
    for name, _ in ENGINES.every():
        try:
            installed = install.find(get(name))
        except EngineError:
            installed = None
        version, origin = (None, None) if installed is None else (installed.version, installed.origin)
        found.append({"engine": name, "version": version, "origin": origin})
    return found
