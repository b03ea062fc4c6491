"""``/v1/operations``: processes, engines, the queue, retention and sizes, for the operator.

``/v1/keys``: create, list and revoke API keys; and the audit log.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from importer.engines import ENGINES, get, install
from importer.errors import EngineError, ServiceError
from importer.hub.endpoint import endpoint
from importer.service.desk import AtDesk, Desk
from importer.service.domain.import_request import Body, Text
from importer.service.http.headers import Asked, Idempotency
from importer.service.http.query import Since, utc
from importer.service.problems import problems
from importer.service.reads import Reads
from importer.service.security import Admin, act
from importer.storage import audit, figures, keys, processes, retention
from importer.storage.audit import AuditContext
from importer.storage.idempotency_store import AlreadyStored
from importer.version import __version__

router_keys = APIRouter(prefix="/v1", tags=["admin"], route_class=Reads)
Scope = Literal["read", "import", "approve", "admin"]


class ApiKeyRequest(Body):
    """A key to be made."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "ann", "scopes": ["import", "approve"]}]}
    )

    name: Annotated[str, Field(min_length=1, max_length=keys.NAME)]
    scopes: list[Scope] = Field(default=["read"], min_length=1)


class CreatedApiKey(BaseModel):
    """A new key; it is shown this once, ``id`` in the list of keys, too."""

    id: str
    key: str


class ApiKey(BaseModel):
    """A key without its secret."""

    id: str
    name: str
    scopes: str
    created_at: str
    created_by: str
    revoked_at: str | None


class ApiKeys(BaseModel):
    """All API keys."""

    items: list[ApiKey]
    total: int


class AuditEntry(BaseModel):
    """One entry of the audit log."""

    id: int
    at: str
    who: str
    action: str
    subject: str | None
    digest: str | None
    details: dict[str, object]
    request: str | None
    trace: str | None


class AuditLog(BaseModel):
    """A page of the audit log, the newest entries first."""

    items: list[AuditEntry]
    total: int
    next: str | None = Field(description="the cursor of the next page")


@router_keys.post(
    "/keys",
    status_code=201,
    response_model=CreatedApiKey,
    responses=problems("key-made", "key-reused"),
    summary="Make an API key",
)
def create_key(
    body: ApiKeyRequest, request: Request, at: AtDesk, who: Admin, once: Asked
) -> dict[str, object]:
    """Create a key. With an `Idempotency-Key` one key is made; its secret is shown only once.

    Scopes: `read`, which every key has; `import` (and edit, validate, cancel); `approve` (and reject,
    release, withdraw, delete); `admin` for all.
    """
    made = once.stored_body()
    if made is None:
        try:
            return _made(body, at, act(request, who, "create key"), once)
        except AlreadyStored:
            made = once.stored_body() or {"id": "?"}
    raise ServiceError("key-made", key=made["id"])


def _made(body: ApiKeyRequest, at: Desk, doing: AuditContext, once: Idempotency) -> dict[str, object]:
    with at.database.writing() as connection:
        key = keys.create(connection, body.name, body.scopes, doing)
        members: dict[str, object] = {"id": key.split("_")[1]}
        once.answer(connection, members, 201, {})
    return members | {"key": key}


@router_keys.get("/keys", response_model=ApiKeys, responses=problems(), summary="All API keys")
def list_keys(at: AtDesk, _who: Admin) -> dict[str, object]:
    """List all keys without their secrets, which are not stored."""
    with at.database.reading() as connection:
        found = keys.listed(connection)
    return {"items": found, "total": len(found)}


@router_keys.delete(
    "/keys/{key}", status_code=204, responses=problems("no-such-key"), summary="Revoke an API key"
)
def revoke_key(key: str, request: Request, at: AtDesk, who: Admin) -> Response:
    """Revoke a key at once."""
    with at.database.writing() as connection:
        keys.revoke(connection, key, act(request, who, "revoke key"))
    return Response(status_code=204)


@router_keys.get(
    "/audit", response_model=AuditLog, responses=problems(), summary="The audit log, newest first"
)
def list_audit(
    at: AtDesk,
    _who: Admin,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[int | None, Query(ge=1, le=2**62)] = None,
    by: Annotated[Text | None, Query(description="actions of this caller only")] = None,
    action: Annotated[Text | None, Query(description="only this action, such as approve")] = None,
    subject: Annotated[Text | None, Query(description="only of this document, or of `job ID`")] = None,
    updated_since: Since = None,
) -> dict[str, object]:
    """Return every change: who, when, what, on which request. Pages continue with `cursor`."""
    chosen = audit.AuditFilter(by, action, subject, utc(updated_since))
    with at.database.reading() as connection:
        entries = audit.page(connection, limit + 1, cursor, chosen)
        total = audit.total(connection, chosen)
    behind = entries[limit - 1]["id"] if len(entries) > limit else None
    return {"items": entries[:limit], "total": total, "next": None if behind is None else str(behind)}


router = APIRouter(prefix="/v1", tags=["admin"], route_class=Reads)


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
