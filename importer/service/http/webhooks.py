"""``/v1/webhooks``: addresses that events are sent to, their deliveries, and a ping."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Literal, get_args

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from importer.errors import ServiceError
from importer.sentences import rendered
from importer.service.desk import AtDesk, Desk
from importer.service.domain.import_request import Body, Spoken
from importer.service.domain.webhooks import check_url, key_of, new_secret
from importer.service.http.headers import Asked, AskedOnce, Idempotency
from importer.service.http.query import Cursor, Ident, Limit
from importer.service.problems import problems
from importer.service.security import Admin, act
from importer.storage import audit, webhooks
from importer.storage.audit import AuditContext
from importer.storage.idempotency_store import AlreadyStored
from importer.storage.webhooks import Delivery, Webhook, WebhookState

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])
EventType = Literal[
    "job.succeeded", "job.failed", "job.cancelled", "job.waiting", "release.promoted",
    "release.rolled-back", "release.withdrawn", "finding.opened", "webhook.disabled",
]  # fmt: skip


class WebhookRequest(Body):
    """An address that events are to be sent to."""

    model_config = ConfigDict(json_schema_extra={
        "examples": [{"url": "https://ci.example.com/importer", "types": ["job.failed", "release.promoted"]}]
    })  # fmt: skip

    url: Annotated[str, Field(min_length=1, max_length=2000)]
    types: list[EventType] = Field(default=[*get_args(EventType)], min_length=1, max_length=20)
    secret: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="`whsec_` and 24 to 64 bytes in base64; by default a random one"
    )
    note: Spoken | None = None


class WebhookChange(Body):
    """What is different of a webhook; a secret takes the place of the old one at once."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"state": "enabled"}]})

    url: Annotated[str, Field(min_length=1, max_length=2000)] | None = None
    types: list[EventType] | None = Field(default=None, min_length=1, max_length=20)
    secret: Annotated[str, Field(max_length=200)] | None = None
    state: WebhookState | None = Field(default=None, description="`enabled` sends what waited, at once")
    note: Spoken | None = None


class WebhookOf(BaseModel):
    """A webhook without its secret."""

    id: str
    url: str
    types: list[str]
    state: WebhookState
    failures: int = Field(description=f"failures in a row, one for each pause; {webhooks.TRIES} disable it")
    note: str | None = None
    created_at: str
    created_by: str
    updated_at: str
    deliveries: dict[str, int] | None = Field(default=None, description="its deliveries by state")


class NewWebhook(WebhookOf):
    """A new webhook; its secret is shown this once."""

    secret: str


class Webhooks(BaseModel):
    """A page of webhooks, the oldest first."""

    items: list[WebhookOf]
    total: int
    next: str | None = Field(description="the cursor of the next page")


class DeliveryOf(BaseModel):
    """One event for one webhook, and the result of its last try."""

    id: str = Field(description="the header `webhook-id`, the same at every try")
    webhook: str
    type: str
    state: Literal["waiting", "delivered", "failed"]
    tries: int
    status: int | None = Field(default=None, description="status of the last answer")
    problem: str | None = Field(default=None, description="why there was no answer")
    next_at: str | None = Field(default=None, description="time of the next attempt")
    at: str
    ended_at: str | None = None
    body: dict[str, object]


class Deliveries(BaseModel):
    """A page of deliveries, the newest first."""

    items: list[DeliveryOf]
    total: int
    next: str | None = Field(description="the cursor of the next page")


@router.post(
    "", status_code=201, response_model=NewWebhook, response_model_exclude_unset=True,
    responses=problems("bad-webhook", "webhook-made", "key-reused"), summary="Make a webhook",
)  # fmt: skip
def make(body: WebhookRequest, request: Request, at: AtDesk, who: Admin, once: Asked) -> dict[str, object]:
    """Make a webhook. With an `Idempotency-Key` one is made; its secret is shown only once."""
    made = once.stored_body()
    if made is None:
        check_url(body.url, private=at.settings.webhook_private)
        secret = _secret(body.secret)
        try:
            return _made(body, secret, at, act(request, who, "create webhook", body.note), once)
        except AlreadyStored:
            made = once.stored_body() or {"id": "?"}
    raise ServiceError("webhook-made", webhook=made["id"])


def _made(
    body: WebhookRequest, secret: str, at: Desk, doing: AuditContext, once: Idempotency
) -> dict[str, object]:
    with at.database.writing() as connection:
        hook = webhooks.create(connection, body.url, body.types, secret, doing.who, body.note)
        audit.record(connection, doing, f"webhook {hook.id}", {"url": hook.url, "types": [*hook.types]})
        once.answer(connection, {"id": hook.id}, 201, {})
    return webhook_json(hook) | {"secret": secret}


@router.get("", response_model=Webhooks, response_model_exclude_unset=True, responses=problems(),
            summary="All webhooks")  # fmt: skip
def listed(at: AtDesk, _who: Admin, limit: Limit = 50, cursor: Cursor = None) -> dict[str, object]:
    """List webhooks without their secrets. Pages continue with `cursor`."""
    with at.database.reading() as connection:
        rows, total = webhooks.page(connection, limit + 1, cursor or ""), webhooks.count(connection)
    more = len(rows) > limit
    items = [webhook_json(row) for row in rows[:limit]]
    return {"items": items, "total": total, "next": rows[limit - 1].id if more else None}


@router.get("/{webhook}", response_model=WebhookOf, response_model_exclude_unset=True,
            responses=problems("no-such-webhook"), summary="One webhook")  # fmt: skip
def one(webhook: Ident, at: AtDesk, _who: Admin) -> dict[str, object]:
    """Return a webhook, and how many of its deliveries are in which state."""
    with at.database.reading() as connection:
        hook = webhooks.get(connection, webhook)
        return webhook_json(hook) | {"deliveries": webhooks.states(connection, webhook)}


@router.patch("/{webhook}", response_model=WebhookOf, response_model_exclude_unset=True,
              responses=problems("no-such-webhook", "bad-webhook"), summary="Change a webhook")  # fmt: skip
def patch(webhook: Ident, body: WebhookChange, request: Request, at: AtDesk, who: Admin) -> dict[str, object]:
    """Change a webhook, disable it, or enable it again."""
    values = body.model_dump(exclude_none=True)
    if body.url is not None:
        check_url(body.url, private=at.settings.webhook_private)
    if body.secret is not None:
        _secret(body.secret)
    with at.database.writing() as connection:
        webhooks.get(connection, webhook)
        hook = webhooks.change(connection, webhook, values)
        shown = {key: value for key, value in values.items() if key != "secret"}
        audit.record(connection, act(request, who, "change webhook"), f"webhook {webhook}", shown)
    return webhook_json(hook)


@router.delete(
    "/{webhook}", status_code=204, responses=problems("no-such-webhook"), summary="Delete a webhook"
)
def remove(webhook: Ident, request: Request, at: AtDesk, who: Admin) -> Response:
    """Delete a webhook with its deliveries; what is under way may still arrive."""
    with at.database.writing() as connection:
        webhooks.remove(connection, webhook)
        audit.record(connection, act(request, who, "delete webhook"), f"webhook {webhook}", {})
    return Response(status_code=204)


@router.post(
    "/{webhook}/ping", status_code=202, response_model=DeliveryOf,
    responses=problems("no-such-webhook", "key-reused"), summary="Send a test event",
)  # fmt: skip
def ping(webhook: Ident, request: Request, at: AtDesk, who: Admin, once: AskedOnce) -> Response:
    """Queue an event of the type `webhook.ping`; its delivery shows whether it arrived."""
    with at.database.writing() as connection:
        hook = webhooks.get(connection, webhook)
        sent = webhooks.deliver(connection, webhook, webhooks.PING, {"by": who.name})
        audit.record(
            connection, act(request, who, "ping webhook"), f"webhook {webhook}", {"delivery": sent.id}
        )
        return once.answer(connection, delivery_json(sent, hook), 202, {})


@router.get("/{webhook}/deliveries", response_model=Deliveries, responses=problems("no-such-webhook"),
            summary="The deliveries of a webhook, the newest first")  # fmt: skip
def deliveries(
    webhook: Ident, at: AtDesk, _who: Admin, limit: Limit = 50, cursor: Cursor = None
) -> dict[str, object]:
    """List deliveries with the status of the last answer. Pages continue with `cursor`."""
    with at.database.reading() as connection:
        hook = webhooks.get(connection, webhook)
        rows = webhooks.log(connection, webhook, limit + 1, cursor)
        total = sum(webhooks.states(connection, webhook).values())
    more = len(rows) > limit
    items = [delivery_json(row, hook) for row in rows[:limit]]
    return {"items": items, "total": total, "next": rows[limit - 1].id if more else None}


def _secret(text: str | None) -> str:
    """Return the caller's secret or a new one; raises ServiceError("bad-request") for another form."""
    if text is None:
        return new_secret()
    if key_of(text) is None:
        problem = "must be whsec_ and 24 to 64 bytes in base64"
        errors = [{"pointer": "/secret", "detail": problem}]
        raise ServiceError("bad-request", problem=f"/secret: {problem}", errors=errors)
    return text


def webhook_json(hook: Webhook) -> dict[str, object]:
    """Return a webhook as it is shown: without its secret."""
    shown = ("id", "url", "state", "failures", "note", "created_at", "created_by", "updated_at")
    return {**{key: getattr(hook, key) for key in shown}, "types": [*hook.types]}


def delivery_json(row: Delivery, hook: Webhook) -> dict[str, object]:
    """Return a delivery as it is shown."""
    shown = ("id", "webhook", "type", "state", "tries", "status", "at", "ended_at")
    due = datetime.fromtimestamp(max(row.due, hook.retry_at), UTC).isoformat(timespec="seconds")
    return {
        **{key: getattr(row, key) for key in shown},
        "problem": None if row.problem is None else rendered(json.loads(row.problem)),
        "next_at": due if row.state == "waiting" else None,
        "body": json.loads(row.body),
    }
