"""Columns for the cards of an overview, computed of the newest version of each document."""

from __future__ import annotations

import json

from sqlalchemy import Connection, column, select, table, text, update

from importer.storage import cards, receipts

TEXTS = (
    "description", "icon", "license", "tags", "quantization", "modalities", "tool_parser",
    "reasoning_parser", "size", "device", "run_engine", "run_version", "run_at", "checked_at", "attention",
)  # fmt: skip
BIG = ("context", "parameters", "weights", "memory")
NUMBERS = ("devices", "run_passed", "run_failed", "run_total")
FACETS = (
    "state, backend, family, modalities, tool_parser, reasoning_parser, license, quantization, size, "
    "attention, review, validation, memory, devices"
)
SORTS = (
    "updated_at, created_at, checked_at, urgency, weights, context, parameters, findings, model, kind, tags, "
    "release, deleted_at"
)
STATEMENTS = (
    *(f"ALTER TABLE configs ADD COLUMN {name} TEXT" for name in TEXTS),
    *(f"ALTER TABLE configs ADD COLUMN {name} BIGINT" for name in BIG),
    *(f"ALTER TABLE configs ADD COLUMN {name} INTEGER" for name in NUMBERS),
    "ALTER TABLE configs ADD COLUMN run_seconds DOUBLE PRECISION",
    "ALTER TABLE configs ADD COLUMN findings INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE configs ADD COLUMN urgency INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX configs_urgent ON configs (urgency, name)",
)
# Lists and facets are made of an index with all that they look at; PostgreSQL's indexes hold no long text.
SQLITE = (
    "DROP INDEX configs_listed",
    f"CREATE INDEX configs_listed ON configs ({FACETS}, {SORTS}, name, search) WHERE deleted_at IS NULL",
)
CONFIGS = table("configs", *(column(name) for name in (
    "name", "version", "model", "family", "review", "validation", "search", *TEXTS, *BIG, *NUMBERS,
    "run_seconds",
)))  # fmt: skip
VERSIONS = table("versions", *(column(name) for name in ("name", "number", "data", "receipt_hash")))
C, V = CONFIGS.c, VERSIONS.c


def fill(connection: Connection) -> None:
    """Compute the columns of each document; one at a time, since receipts together may exceed the memory."""
    states = select(C.name, C.version, C.model, C.family, C.review, C.validation)
    for name, version, model, family, review, validation in connection.execute(states).all():
        query = select(V.data, V.receipt_hash).where(V.name == name, V.number == version)
        row = connection.execute(query).first()
        if row is None:
            continue
        stored = receipts.texts(connection, [row.receipt_hash]).get(row.receipt_hash)
        made = cards.card(
            json.loads(row.data), None if stored is None else json.loads(stored), review, validation
        )
        search = cards.search(name, model, family, made)
        connection.execute(update(CONFIGS).where(C.name == name).values(**made, search=search))
        cards.attend(connection, name)
    connection.execute(text("UPDATE marks SET value = value + 1 WHERE key = 'configs'"))
