"""Receipts as compressed pieces by content hash: a version stores only the pieces that no earlier one has.

A receipt's text is cut before each of its upper keys, so that an approval adds no evidence and no exchanges.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Iterator

from sqlalchemy import Connection, Table, insert, select

from importer.storage.tables import pieces, receipts

KEY = re.compile(r'^ "\w+": ', re.MULTILINE)  # an upper key of JSON with an indent of one
SMALL = 1024  # characters: shorter parts go together
LEVEL = 6
BATCH = 500  # hashes in one query; SQLite allows 999 variables in old builds


def put(connection: Connection, text: str) -> str:
    """Store a receipt's text where no equal one is; return its hash."""
    ident = _hash(text)
    if _missing(connection, receipts, [ident]):
        order = [(_hash(part), part) for part in cut(text)]
        parts = dict(order)
        for key in _missing(connection, pieces, [*parts]):
            content = zlib.compress(parts[key].encode(), LEVEL)
            connection.execute(insert(pieces).values(hash=key, content=content))
        connection.execute(insert(receipts).values(hash=ident, pieces=json.dumps([key for key, _ in order])))
    return ident


def texts(connection: Connection, hashes: Iterable[str | None]) -> dict[str, str]:
    """Return the texts of receipts by their hashes."""
    query = select(receipts.c.hash, receipts.c.pieces)
    orders = {
        row.hash: json.loads(row.pieces)
        for batch in _batches({one for one in hashes if one is not None})
        for row in connection.execute(query.where(receipts.c.hash.in_(batch)))
    }
    stored = {
        row.hash: zlib.decompress(row.content).decode()
        for batch in _batches({key for order in orders.values() for key in order})
        for row in connection.execute(select(pieces).where(pieces.c.hash.in_(batch)))
    }
    return {ident: "".join(stored[key] for key in order) for ident, order in orders.items()}


def cut(text: str) -> Iterator[str]:
    """Yield the text in parts that give it again: long values alone, short ones together."""
    places = [match.start() for match in KEY.finditer(text)]
    short = ""
    for begin, end in zip([0, *places], [*places, len(text)], strict=True):
        part = text[begin:end]
        if len(part) < SMALL:
            short += part
            continue
        if short:
            yield short
            short = ""
        yield part
    if short:
        yield short


def _missing(connection: Connection, table: Table, hashes: list[str]) -> list[str]:
    query = select(table.c.hash).where(table.c.hash.in_(hashes))
    there = set(connection.execute(query).scalars())
    return [one for one in hashes if one not in there]


def _batches(hashes: set[str]) -> Iterator[list[str]]:
    ordered = sorted(hashes)
    yield from (ordered[at : at + BATCH] for at in range(0, len(ordered), BATCH))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
