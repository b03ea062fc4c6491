"""Webhooks as rows, and their deliveries: an event is stored with the change that it reports.

A delivery is sent at least once. Its id is the same at every try, so that receivers can drop repetitions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from importer.config import now
from importer.errors import ServiceError
from importer.frozen import frozen
from importer.storage import tables
from importer.storage.database import fresh

DISABLED, PING = "webhook.disabled", "webhook.ping"
TYPES = (
    "job.succeeded", "job.failed", "job.cancelled", "job.waiting", "release.promoted", "release.rolled-back",
    "release.withdrawn", "finding.opened", DISABLED,
)  # fmt: skip
WebhookState = Literal["enabled", "disabled"]
DeliveryState = Literal["waiting", "delivered", "failed"]
LEASE = 60.0  # seconds after which a delivery whose process died is sent again
# Seconds until the next try: of a webhook by its failures in a row, of a delivery by its own tries.
PAUSES = (5, 30, 120, 600, 1800, 7200, 21600, 43200, 86400)
TRIES = 12  # of one delivery, and failures in a row after which a webhook is disabled: about four days
EACH = 4  # deliveries of one webhook at a time
W, D = tables.webhooks.c, tables.deliveries.c


@frozen
class Webhook:
    """An address that events are sent to.

    ``failures`` are failures since the last success, one for each pause; nothing is sent before ``retry_at``,
    in epoch seconds.
    """

    id: str
    url: str
    types: Sequence[str]
    secret: str
    state: WebhookState
    failures: int
    retry_at: float
    note: str | None
    created_at: str
    created_by: str
    updated_at: str


@frozen
class Delivery:
    """One event for one webhook; ``status`` is that of the last answer, ``problem`` why there was none."""

    id: str
    webhook: str
    type: str
    body: str
    state: DeliveryState
    tries: int
    due: float
    status: int | None
    problem: str | None
    at: str
    ended_at: str | None


WEBHOOK, DELIVERY = [W[f.name] for f in fields(Webhook)], [D[f.name] for f in fields(Delivery)]


def create(
    connection: Connection, url: str, types: Collection[str], secret: str, by: str, note: str | None
) -> Webhook:
    """Add an enabled webhook."""
    ident, at = fresh(), now()
    row = {
        "id": ident, "url": url, "types": " ".join(sorted(set(types))), "secret": secret, "state": "enabled",
        "failures": 0, "retry_at": 0.0, "note": note, "created_at": at, "created_by": by, "updated_at": at,
    }  # fmt: skip
    connection.execute(insert(tables.webhooks).values(row))
    return get(connection, ident)


def get(connection: Connection, ident: str) -> Webhook:
    """Return a webhook; raises ServiceError("no-such-webhook")."""
    row = connection.execute(select(*WEBHOOK).where(W.id == ident)).mappings().first()
    if row is None:
        raise ServiceError("no-such-webhook", webhook=ident)
    return _webhook(row)


def page(connection: Connection, limit: int, after: str = "") -> list[Webhook]:
    """Return webhooks, the oldest first, those behind an id."""
    query = select(*WEBHOOK).where(W.id > after).order_by(W.id).limit(limit)
    return [_webhook(row) for row in connection.execute(query).mappings()]


def count(connection: Connection) -> int:
    """Return how many webhooks there are."""
    return connection.execute(select(func.count()).select_from(tables.webhooks)).scalar_one()


def change(connection: Connection, ident: str, values: Mapping[str, Any]) -> Webhook:
    """Change a webhook; one that is enabled again sends what waited at once.

    Raises ServiceError("no-such-webhook").
    """
    row = {**values, "updated_at": now()}
    if "types" in row:
        row["types"] = " ".join(sorted(set(row["types"])))
    if row.get("state") == "enabled":
        row |= {"failures": 0, "retry_at": 0.0}
        waiting = (D.webhook == ident, D.state == "waiting")
        connection.execute(update(tables.deliveries).where(*waiting).values(due=time.time(), tries=0))
    connection.execute(update(tables.webhooks).where(W.id == ident).values(row))
    return get(connection, ident)


def remove(connection: Connection, ident: str) -> None:
    """Delete a webhook and its deliveries; raises ServiceError("no-such-webhook")."""
    get(connection, ident)
    connection.execute(delete(tables.deliveries).where(D.webhook == ident))
    connection.execute(delete(tables.webhooks).where(W.id == ident))


def enqueue(connection: Connection, type_: str, data: Mapping[str, object]) -> None:
    """Add a delivery for each enabled webhook of a type of event, in the transaction of the change itself."""
    query = select(W.id, W.types).where(W.state == "enabled")
    for ident, types in connection.execute(query).all():
        if type_ in types.split():
            deliver(connection, ident, type_, data)


def deliver(connection: Connection, webhook: str, type_: str, data: Mapping[str, object]) -> Delivery:
    """Add one delivery for one webhook."""
    ident, at = fresh(), now()
    body = json.dumps({"type": type_, "timestamp": at, "data": dict(data)}, ensure_ascii=False)
    row = {
        "id": ident, "webhook": webhook, "type": type_, "body": body, "state": "waiting", "tries": 0,
        "due": time.time(), "at": at,
    }  # fmt: skip
    connection.execute(insert(tables.deliveries).values(row))
    return delivery(connection, ident)


def delivery(connection: Connection, ident: str) -> Delivery:
    """Return one delivery, that is there."""
    return Delivery(**connection.execute(select(*DELIVERY).where(D.id == ident)).mappings().one())


def log(connection: Connection, webhook: str, limit: int, before: str | None = None) -> list[Delivery]:
    """Return the newest deliveries of a webhook, those before an id."""
    query = select(*DELIVERY).where(D.webhook == webhook).order_by(D.id.desc()).limit(limit)
    query = query if before is None else query.where(D.id < before)
    return [Delivery(**row) for row in connection.execute(query).mappings()]


def states(connection: Connection, webhook: str) -> dict[str, int]:
    """Return how many deliveries of a webhook are in which state."""
    query = select(D.state, func.count()).where(D.webhook == webhook).group_by(D.state)
    return {row[0]: row[1] for row in connection.execute(query)}


def due(connection: Connection) -> bool:
    """Return whether a delivery is due; locks nothing."""
    joined = tables.deliveries.join(tables.webhooks, D.webhook == W.id)
    query = select(D.id).select_from(joined).where(*_due(time.time()))
    return connection.execute(query.limit(1)).first() is not None


def claim(
    connection: Connection, limit: int, busy: Mapping[str, int] | None = None
) -> list[tuple[Webhook, Delivery]]:
    """Lease deliveries that are due, with their webhooks; those with the fewest tries first.

    A webhook gets ``EACH`` at a time, those counted that ``busy`` says the caller is sending; after a failure
    it gets one. After ``LEASE`` seconds without a result any process sends them again.
    """
    known, at = busy or {}, time.time()
    joined = tables.deliveries.join(tables.webhooks, D.webhook == W.id)
    query = select(*WEBHOOK).where(W.id.in_(select(D.webhook).select_from(joined).where(*_due(at))))
    hooks = [_webhook(row) for row in connection.execute(query).mappings()]
    claimed: list[tuple[Webhook, Delivery]] = []
    for hook in sorted(hooks, key=lambda one: (known.get(one.id, 0), one.id)):
        room = min(EACH - known.get(hook.id, 0), limit - len(claimed))
        if room > 0 and (not hook.failures or _probes(connection, hook.id, at)):
            leased = _lease(connection, hook.id, 1 if hook.failures else room, at)
            claimed += [(hook, one) for one in leased]
    return claimed


def _probes(connection: Connection, webhook: str, at: float) -> bool:
    """Return whether the caller is the one that tries a webhook after its pause."""
    one = update(tables.webhooks).where(W.id == webhook, W.retry_at <= at).values(retry_at=at + LEASE)
    return connection.execute(one).rowcount == 1


def _lease(connection: Connection, webhook: str, limit: int, at: float) -> list[Delivery]:
    query = select(D.id).where(D.webhook == webhook, D.state == "waiting", D.due <= at)
    chosen = query.order_by(D.tries, D.due, D.id).limit(limit).with_for_update(skip_locked=True)
    leased = [*connection.execute(chosen).scalars()]
    values = {"due": at + LEASE, "tries": D.tries + 1}
    connection.execute(update(tables.deliveries).where(D.id.in_(leased)).values(values))
    return [delivery(connection, ident) for ident in leased]


def succeeded(connection: Connection, sent: Delivery, status: int) -> None:
    """Record that a delivery arrived: the webhook waits no longer."""
    row = {"state": "delivered", "status": status, "problem": None, "ended_at": now()}
    connection.execute(update(tables.deliveries).where(D.id == sent.id).values(row))
    connection.execute(update(tables.webhooks).where(W.id == sent.webhook).values(failures=0, retry_at=0.0))


def failed(
    connection: Connection,
    hook: Webhook,
    sent: Delivery,
    status: int | None,
    problem: str | None,
    *,
    gone: bool = False,
) -> bool:
    """Record a failed try, and let the webhook pause; true where that disables it.

    ``hook`` is the webhook as the delivery was claimed: of several that fail side by side one counts.
    ``gone`` disables it at once: the receiver wants no further events.
    """
    at = time.time()
    over = sent.tries >= TRIES and hook.failures + 1 < TRIES
    ended = {"state": "failed", "ended_at": now()} if over else {"due": at + _pause(sent.tries)}
    result = update(tables.deliveries).where(D.id == sent.id)
    connection.execute(result.values(status=status, problem=problem, **ended))
    same = (W.id == sent.webhook, W.failures == hook.failures)
    grown = {"failures": hook.failures + 1, "retry_at": at + _pause(hook.failures + 1)}
    counted = connection.execute(update(tables.webhooks).where(*same).values(grown)).rowcount == 1
    if not gone and not (counted and hook.failures + 1 >= TRIES):
        return False
    disabling = update(tables.webhooks).where(W.id == sent.webhook, W.state == "enabled")
    if connection.execute(disabling.values(state="disabled", updated_at=now())).rowcount == 0:
        return False
    enqueue(connection, DISABLED, {"webhook": sent.webhook, "failures": hook.failures + 1, "status": status})
    return True


def _pause(times: int) -> float:
    return PAUSES[min(times, len(PAUSES)) - 1]


def purge(connection: Connection, before: str) -> int:
    """Delete deliveries that ended before a time; return how many."""
    ended = (D.state != "waiting", D.ended_at < before)
    return connection.execute(delete(tables.deliveries).where(*ended)).rowcount


def _due(at: float) -> Sequence[ColumnElement[bool]]:
    """Return the conditions of deliveries that are due, of enabled webhooks that do not pause."""
    return (D.state == "waiting", D.due <= at, W.state == "enabled", W.retry_at <= at)


def _webhook(row: Mapping[Any, Any]) -> Webhook:
    return Webhook(**{**row, "types": tuple(row["types"].split())})
