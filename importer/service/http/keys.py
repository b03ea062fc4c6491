"""``/v1/keys``: create, list and revoke API keys; and the audit log."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from importer.errors import ServiceError
from importer.service.desk import AtDesk, Desk
from importer.service.domain.import_request import Body, Text
from importer.service.http.idempotency import Asked, Idempotency
from importer.service.http.query import Since, utc
from importer.service.problems import problems
from importer.service.security.auth import Admin, act
from importer.storage import audit, keys
from importer.storage.audit import AuditContext
from importer.storage.idempotency_store import AlreadyStored

router = APIRouter(prefix="/v1", tags=["admin"])
Scope = Literal["read", "import", "approve", "publish", "admin"]


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


@router.post(
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
    delete); `publish` (release, withdraw, roll back); `admin` for all.
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


@router.get("/keys", response_model=ApiKeys, responses=problems(), summary="All API keys")
def list_keys(at: AtDesk, _who: Admin) -> dict[str, object]:
    """List all keys without their secrets, which are not stored."""
    with at.database.reading() as connection:
        found = keys.listed(connection)
    return {"items": found, "total": len(found)}


@router.delete("/keys/{key}", status_code=204, responses=problems("no-such-key"), summary="Revoke an API key")
def revoke_key(key: str, request: Request, at: AtDesk, who: Admin) -> Response:
    """Revoke a key at once."""
    with at.database.writing() as connection:
        keys.revoke(connection, key, act(request, who, "revoke key"))
    return Response(status_code=204)


@router.get("/audit", response_model=AuditLog, responses=problems(), summary="The audit log, newest first")
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
