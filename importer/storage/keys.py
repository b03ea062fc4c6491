"""API keys: shown once when they are made, kept as a hash, with their scopes."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from importer.config import now
from importer.errors import ServiceError, Setting, UsageError
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind
from importer.storage import audit
from importer.storage.actors import OWN
from importer.storage.audit import AuditContext
from importer.storage.tables import keys

SCOPES = ("read", "import", "approve")  # every key has the first
PREFIX = "imp"  # a key is imp_ID_SECRET
FORM = re.compile(r"\w(?:[\w.@+-]| (?! ))*(?<! )", re.ASCII)
NAME = 100  # characters
SECRET = 32  # random bytes: too many to be guessed, so a plain hash keeps them
NOBODY = hashlib.sha256(b"").hexdigest()


class KeyNameReason(ReasonKind):
    """Why a key cannot have a name."""

    FORM = "it has letters of ASCII, digits, spaces or any of . _ @ + -, at most {most}"
    TAKEN = "a key has or had this name, and the audit log has it"
    OWN = "the audit log has the service's own actions under this name"


@frozen
class Key:
    """A key without its secret. Each may read, whatever its scopes: who creates a job follows it."""

    id: str
    name: str
    scopes: frozenset[str]


def create(connection: Connection, name: str, scopes: Collection[str], context: AuditContext) -> str:
    """Return a new key, which cannot be shown again; ``scopes`` are of ``SCOPES``.

    Raises UsageError("bad-value") for a name of other characters, so that no two look alike, for one of the
    product's own, and for one that a key has or had: an entry of the audit log names one key.
    """
    if len(name) > NAME or not FORM.fullmatch(name):
        raise _refused(name, Reason(KeyNameReason.FORM, most=NAME))
    if name.lower() in OWN:
        raise _refused(name, Reason(KeyNameReason.OWN))
    ident, secret = secrets.token_hex(6), secrets.token_urlsafe(SECRET)
    row = {"id": ident, "name": name, "hash": _hash(secret), "scopes": " ".join(sorted(set(scopes)))}
    try:
        connection.execute(
            insert(keys).values(**row, folded=name.lower(), created_at=now(), created_by=context.who)
        )
    except IntegrityError:
        raise _refused(name, Reason(KeyNameReason.TAKEN)) from None
    audit.record(connection, context, f"key {ident}", {"name": name, "scopes": sorted(set(scopes))})
    return f"{PREFIX}_{ident}_{secret}"


def find(connection: Connection, text: str) -> Key | None:
    """Return the key of a text, unless it is revoked; takes the same time for an unknown key."""
    prefix, _, rest = text.partition("_")
    ident, _, secret = rest.partition("_")
    row = connection.execute(select(keys).where(keys.c.id == ident)).mappings().first()
    same = hmac.compare_digest(_hash(secret), NOBODY if row is None else row["hash"])
    if row is None or not same or prefix != PREFIX or row["revoked_at"] is not None or not secret:
        return None
    return Key(row["id"], row["name"], frozenset((*row["scopes"].split(), "read")))


def listed(connection: Connection) -> list[dict[str, object]]:
    """Return all keys without secrets and hashes."""
    shown = [c for c in keys.c if c.name not in ("hash", "folded")]
    return [dict(row) for row in connection.execute(select(*shown).order_by(keys.c.created_at)).mappings()]


def revoke(connection: Connection, ident: str, context: AuditContext) -> None:
    """Revoke a key; raises ServiceError("no-such-key")."""
    revocation = update(keys).where(keys.c.id == ident, keys.c.revoked_at.is_(None)).values(revoked_at=now())
    if connection.execute(revocation).rowcount == 0:
        raise ServiceError("no-such-key", key=ident)
    audit.record(connection, context, f"key {ident}", {})


def _refused(name: str, problem: Reason) -> UsageError:
    return UsageError("bad-value", setting=Setting.KEY_NAME, value=name, problem=problem)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
