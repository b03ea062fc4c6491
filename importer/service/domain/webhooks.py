"""Webhooks: events that are signed, sent and tried again, as the Standard Webhooks specification has it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import logging
import secrets
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from importer.errors import ServiceError
from importer.hub import outgoing
from importer.hub.outgoing import Sent
from importer.storage import webhooks
from importer.storage.database import Database
from importer.storage.webhooks import Delivery, Webhook
from importer.version import __version__

LOG = logging.getLogger(__name__)
PREFIX = "whsec_"
LEAST, MOST = 24, 64  # bytes of a secret, by the specification
AT_ONCE = 8  # deliveries at a time in one process
WAIT = 2.0  # seconds for the answer to one of them, before the next look
GONE = 410  # the receiver wants no further events


def new_secret() -> str:
    """Return a new secret: its prefix, then 32 random bytes in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def key_of(secret: str) -> bytes | None:
    """Return the bytes of a secret; ``None`` for another form or another length."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if secret.startswith(PREFIX) and LEAST <= len(key) <= MOST else None


def signed(ident: str, timestamp: int, body: bytes, secret: str) -> dict[str, str]:
    """Return the headers of a delivery: HMAC-SHA256 over ``id.timestamp.body``."""
    key = key_of(secret) or b""
    mac = hmac.new(key, f"{ident}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": ident,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{base64.b64encode(mac).decode()}",
    }


def check_url(url: str, *, private: bool) -> None:
    """Raise ServiceError("bad-webhook") for an address that nothing is sent to."""
    problem = outgoing.check(url, private=private)
    if problem is not None:
        raise ServiceError("bad-webhook", problem=problem)


def send(webhook: Webhook, delivery: Delivery, *, private: bool) -> Sent:
    """Send one delivery, and return the status of its answer."""
    body = delivery.body.encode()
    headers: Mapping[str, str] = {
        "Content-Type": "application/json", "User-Agent": f"importer/{__version__}", "Connection": "close",
        **signed(delivery.id, int(time.time()), body, webhook.secret),
    }  # fmt: skip
    return outgoing.post(webhook.url, headers, body, private=private)


class Sender:
    """Sends the deliveries that are due; any number of processes may do so side by side."""

    def __init__(self, database: Database, *, private: bool) -> None:
        self._database, self._private = database, private
        self._pool: ThreadPoolExecutor | None = None
        self._sent: dict[Future[Sent], tuple[Webhook, Delivery]] = {}

    def run(self) -> bool:
        """Send what is due with the threads that are free; true while there may be more at once."""
        with self._database.reading() as connection:  # most looks find nothing, and hold up no writer
            more = webhooks.due(connection)
        if more and len(self._sent) < AT_ONCE:
            busy = Counter(webhook.id for webhook, _ in self._sent.values())
            with self._database.writing() as connection:
                claimed = webhooks.claim(connection, AT_ONCE - len(self._sent), busy)
            self._pool = self._pool or ThreadPoolExecutor(AT_ONCE, thread_name_prefix="webhook")
            for one in claimed:
                self._sent[self._pool.submit(send, *one, private=self._private)] = one
        if not self._sent:
            return False
        for future in wait(self._sent, WAIT, FIRST_COMPLETED).done:
            self._record(*self._sent.pop(future), future.result())
        return True

    def close(self) -> None:
        """End the threads; what was not recorded is sent again."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _record(self, webhook: Webhook, delivery: Delivery, sent: Sent) -> None:
        status = sent.status
        arrived = status is not None and 200 <= status < 300
        with self._database.writing() as connection:
            if arrived and status is not None:
                webhooks.succeeded(connection, delivery, status)
                return
            problem = None if sent.problem is None else json.dumps(sent.problem.to_json())
            disabled = webhooks.failed(connection, webhook, delivery, status, problem, gone=status == GONE)
        fields = {"webhook": webhook.id, "delivery": delivery.id, "answered": status, "disabled": disabled}
        LOG.warning("a webhook's delivery failed", extra={"fields": fields})
