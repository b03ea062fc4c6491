"""Releases and receipts as rows, on SQLite and on a real PostgreSQL; a gallery of the version before."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select

from importer.service.gallery import Gallery
from importer.service.releases import withdraw
from importer.storage import keys, migrations, published, receipts, releases, tables
from importer.storage.audit import AuditContext
from importer.storage.database import Database
from importer.storage.document_filters import Filters
from importer.storage.migrations import NUMBERED, migrate
from tests.service.test_jobs_store import OLD, database, empty, postgres, raw

__all__ = ["database", "empty", "postgres"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
BEFORE_RELEASES = OLD.with_name("gallery_4.sql")


def rows_of(file: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of a database that the importer before wrote, by table."""
    with closing(sqlite3.connect(":memory:")) as old:
        old.row_factory = sqlite3.Row
        old.executescript(file.read_text(encoding="utf-8"))
        names = [row["name"] for row in old.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        kept = [name for name in names if name not in ("migrations", "sqlite_sequence")]
        return {name: [dict(row) for row in old.execute(f'SELECT * FROM "{name}"')] for name in kept}


def test_what_was_published_is_release_1_and_stays_in_the_index(
    empty: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written by the importer without releases: kept is published, edited was, waiting is a draft."""
    monkeypatch.setattr(migrations, "NUMBERED", {n: NUMBERED[n] for n in NUMBERED if n < 5})
    migrate(empty)
    old = rows_of(BEFORE_RELEASES)
    for name, rows in old.items():
        for row in rows:
            raw(empty, name, **{key: value for key, value in row.items() if (name, key) != ("audit", "id")})
    monkeypatch.setattr(migrations, "NUMBERED", NUMBERED)
    assert migrate(empty) == [n for n in NUMBERED if n >= 5]
    gallery = Gallery(empty)
    found = {one.name: one for one in gallery.page(Filters(), 10)}
    assert {name: (one.state, one.release) for name, one in found.items()} == {
        "edited": ("stale", None), "kept": ("published", 1), "waiting": ("draft", None),
    }  # fmt: skip
    with empty.reading() as connection:
        assert published.items(connection) == [
            ("kept", old["published"][0]["item"], json.loads(old["published"][0]["about"]))
        ]
        assert published.file(connection, "kept") == (old["published"][0]["file"], old["published"][0]["at"])
        release = releases.served(connection, "kept")
        assert release is not None
        assert (release.number, release.digest, release.by) == (1, found["kept"].digest, "ann")
        text = releases.receipt(connection, release)
        scopes = {row["name"]: row["scopes"] for row in keys.listed(connection)}
        mark = published.mark(connection)
    versions = {(row["name"], row["number"]): row["receipt"] for row in old["versions"]}
    assert text == versions["kept", release.version]
    assert release.entry.item == old["published"][0]["item"]
    for name in ("kept", "edited", "waiting", "gone"):
        for version in gallery.versions(name):
            assert version.receipt == versions.pop((name, version.number))
    assert not versions
    assert mark.number == next(row["value"] for row in old["marks"] if row["key"] == "published")
    assert scopes == {
        "ann": "approve import publish", "bob": "import", "root": "admin", "left": "approve publish",
    }  # fmt: skip

    me = AuditContext("ann", "withdraw")
    with gallery.change(me) as change:
        withdraw(change, "kept", 1, None)
    assert gallery.get("kept")[0].state == "ready"


def test_receipts_are_stored_once_and_compressed(database: Database) -> None:
    big = {"decisions": {str(n): n for n in range(500)}, "validation": {"raw": ["abc" * 99] * 500}}
    one = json.dumps({"schema": 2, "review": {"state": "pending"}, **big, "history": []}, indent=1) + "\n"
    two = one.replace("pending", "approved").replace('"history": []', '"history": ["é\u2028\\n \\"a\\": "]')
    with database.writing() as connection:
        first = receipts.put(connection, one)
        before = _stored(connection)
        assert receipts.put(connection, one) == first
        assert _stored(connection) == before
        second = receipts.put(connection, two)
        after = _stored(connection)
        odd = [receipts.put(connection, text) for text in ("", "{", '{\n "a": 1', "x" * 5000, one[1:])]
        found = receipts.texts(connection, [first, None, second, *odd, "none"])
    assert (found[first], found[second]) == (one, two)
    assert [found[ident] for ident in odd] == ["", "{", '{\n "a": 1', "x" * 5000, one[1:]]
    assert before < len(one) / 20
    assert after - before < 400  # bytes: an approval adds no exchanges


def _stored(connection: Connection) -> int:
    """The bytes of all receipts in the database."""
    pieces = sum(len(row) for row in connection.execute(select(tables.pieces.c.content)).scalars())
    return pieces + sum(len(row) for row in connection.execute(select(tables.receipts.c.pieces)).scalars())
