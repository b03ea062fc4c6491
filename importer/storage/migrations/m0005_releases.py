"""Releases beside the working copy, and receipts in compressed pieces that are stored once.

The entry that was published becomes release 1 of its document and stays in the index. A key that could
approve could publish with it, so it has the scope ``publish`` now. The column ``receipt`` is removed: an
older process writes no further version.
"""

from __future__ import annotations

import json

from sqlalchemy import Connection, column, insert, select, table, text, update

from importer.storage import receipts

STATEMENTS = (
    "CREATE TABLE pieces (hash TEXT PRIMARY KEY, content BINARY NOT NULL)",
    "CREATE TABLE receipts (hash TEXT PRIMARY KEY, pieces TEXT NOT NULL)",
    "ALTER TABLE versions ADD COLUMN receipt_hash TEXT",
    """CREATE TABLE releases (
        name TEXT NOT NULL, number INTEGER NOT NULL, version INTEGER NOT NULL, digest TEXT NOT NULL,
        text TEXT NOT NULL, data TEXT NOT NULL, receipt_hash TEXT, template TEXT, entry TEXT NOT NULL,
        "by" TEXT NOT NULL, at TEXT NOT NULL, why TEXT,
        withdrawn_by TEXT, withdrawn_at TEXT, withdrawn_why TEXT, PRIMARY KEY (name, number))""",
    "ALTER TABLE configs ADD COLUMN release INTEGER",
    "ALTER TABLE published ADD COLUMN release INTEGER",
    "CREATE INDEX configs_released ON configs (name) WHERE release IS NOT NULL",
)
COPIED = ("name", "digest", "text", "data", "receipt_hash", "template", "by", "at", "why")
# The tables as they are between the statements: ``importer.storage.tables`` may know them otherwise one day.
VERSIONS = table("versions", *(column(name) for name in (*COPIED, "number", "receipt")))
PUBLISHED = table("published", *(column(name) for name in ("name", "version", "item", "file", "about")))
RELEASES = table("releases", *(column(name) for name in (*COPIED, "number", "version", "entry")))
KEYS = table("keys", column("id"), column("scopes"))


def fill(connection: Connection) -> None:
    """Store receipts anew, make a release of each published entry, and extend the keys that may approve."""
    _receipts(connection)
    connection.execute(text("ALTER TABLE versions DROP COLUMN receipt"))
    _releases(connection)
    _keys(connection)


def _receipts(connection: Connection) -> None:
    one = VERSIONS.c
    places = connection.execute(select(one.name, one.number).where(one.receipt.is_not(None))).all()
    for name, number in places:  # one at a time: together they may exceed the memory
        here = (one.name == name, one.number == number)
        stored = connection.execute(select(one.receipt).where(*here)).scalar_one()
        row = {"receipt_hash": receipts.put(connection, stored)}
        connection.execute(update(VERSIONS).where(*here).values(row))


def _releases(connection: Connection) -> None:
    shown, version = PUBLISHED.c, VERSIONS.c
    query = select(
        *(version[name] for name in COPIED), *(shown[n] for n in ("version", "item", "file", "about"))
    )
    same = (version.name == shown.name) & (version.number == shown.version)
    for row in connection.execute(query.join_from(PUBLISHED, VERSIONS, same)).mappings().all():
        entry = {"item": row["item"], "file": row["file"], "about": json.loads(row["about"]), "lost": []}
        values = {name: row[name] for name in (*COPIED, "version")}
        rendered = json.dumps(entry, ensure_ascii=False)
        connection.execute(insert(RELEASES).values(**values, number=1, entry=rendered))
    connection.execute(text("UPDATE published SET release = 1"))
    connection.execute(text("UPDATE configs SET release = 1 WHERE name IN (SELECT name FROM published)"))


def _keys(connection: Connection) -> None:
    for ident, scopes in connection.execute(select(KEYS.c.id, KEYS.c.scopes)).all():
        if "approve" in (present := scopes.split()):
            extended = " ".join(sorted({*present, "publish"}))
            connection.execute(update(KEYS).where(KEYS.c.id == ident).values(scopes=extended))
