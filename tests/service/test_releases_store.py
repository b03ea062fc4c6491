"""Receipts as rows, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import Connection, select, update

from importer.storage import documents, tables
from importer.storage.database import Database
from tests.storing import database, empty

__all__ = ["database", "empty"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]


def test_receipts_are_stored_once_and_compressed(database: Database) -> None:
    big = {"decisions": {str(n): n for n in range(500)}, "validation": {"raw": ["abc" * 99] * 500}}
    one = json.dumps({"schema": 1, "review": {"state": "pending"}, **big, "history": []}, indent=1) + "\n"
    two = one.replace("pending", "approved").replace('"history": []', '"history": ["é\u2028\\n \\"a\\": "]')
    with database.writing() as connection:
        first = documents.put_receipt(connection, one)
        before = _stored(connection)
        assert documents.put_receipt(connection, one) == first
        assert _stored(connection) == before
        second = documents.put_receipt(connection, two)
        after = _stored(connection)
        odd = [
            documents.put_receipt(connection, text) for text in ("", "{", '{\n "a": 1', "x" * 5000, one[1:])
        ]
        found = documents.receipt_texts(connection, [first, None, second, *odd, "none"])
    assert (found[first], found[second]) == (one, two)
    assert [found[ident] for ident in odd] == ["", "{", '{\n "a": 1', "x" * 5000, one[1:]]
    assert before < len(one) / 20
    assert after - before < 400  # bytes: an approval adds no exchanges


def test_a_damaged_receipt_is_written_again(database: Database) -> None:
    with database.writing() as connection:
        ident = documents.put_receipt(connection, '{\n "a": 1\n}\n')
        for damage in ("[]", "{"):
            connection.execute(update(tables.receipts).values(pieces=damage))
            assert documents.receipt_texts(connection, [ident]) == {}
            assert documents.put_receipt(connection, '{\n "a": 1\n}\n') == ident
            assert documents.receipt_texts(connection, [ident]) == {ident: '{\n "a": 1\n}\n'}


def _stored(connection: Connection) -> int:
    """The bytes of all receipts in the database."""
    pieces = sum(len(row) for row in connection.execute(select(tables.pieces.c.content)).scalars())
    return pieces + sum(len(row) for row in connection.execute(select(tables.receipts.c.pieces)).scalars())
