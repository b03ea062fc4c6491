"""The tables: times are ISO 8601 in UTC, JSON is text. ``schema`` makes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import BigInteger, Column, Float, Integer, LargeBinary, MetaData, Table, Text
from sqlalchemy.types import TypeEngine

METADATA = MetaData()


def _columns(names: str, kind: type[TypeEngine[Any]] = Text, *, null: bool = False) -> Iterator[Column[Any]]:
    """Yield columns of one type; ``null`` where a row may lack them."""
    yield from (Column(name, kind, nullable=null) for name in names.split())


def _key(*names: str) -> Iterator[Column[str]]:
    yield from (Column(name, Text, primary_key=True) for name in names)


# The newest version of each document in columns that lists are made of; ``reason``: why it is not published;
# ``search``: what a search looks through, in small letters; ``release``: the version that is served. From
# ``description`` on: what ``listing`` makes of data and receipt. ``tags``, ``modalities`` and ``attention``
# are words between spaces, ``urgency`` ranks the gravest word of attention.
# ``links`` is JSON, and ``row`` that of these columns as lists have it. ``shown`` is the JSON that one
# document's answer has besides, and ``shown_by`` the version of importer that rendered it.
configs = Table(
    "configs",
    METADATA,
    *_key("name"),
    *_columns("digest state review validation search created_at updated_at links row shown shown_by"),
    *_columns("version", Integer),
    *_columns("model revision backend family kind reason deleted_at", null=True),
    *_columns("description license tags quantization modalities", null=True),
    *_columns("tool_parser reasoning_parser size device attention", null=True),
    *_columns("run_engine run_version run_at checked_at", null=True),
    *_columns("context parameters weights memory whole_bytes part_bytes", BigInteger, null=True),
    *_columns("release devices run_passed run_failed run_total", Integer, null=True),
    Column("urgency", Integer, nullable=False, server_default="0"),
    Column("run_seconds", Float),
)

# Every version ever: text and template as they would lie on disk, the text's data as JSON, and the receipt.
versions = Table(
    "versions",
    METADATA,
    *_key("name"),
    Column("number", Integer, primary_key=True),
    *_columns("action text data digest state by at"),
    *_columns("receipt_hash template why", null=True),
)

# Receipts by the hash of their text: the hashes of their pieces as JSON, and the pieces, compressed.
receipts = Table("receipts", METADATA, *_key("hash"), *_columns("pieces"))
pieces = Table("pieces", METADATA, *_key("hash"), *_columns("content", LargeBinary))

# The version of each document that is served, and ``left``, the one that was rolled back. Its entry for
# LocalAI as it was rendered: its item of the index, a file of its own, and as JSON what is listed of it.
published = Table(
    "published",
    METADATA,
    *_key("name"),
    *_columns("version", Integer),
    *_columns("left", Integer, null=True),
    *_columns("digest by at item file about"),
)

# ``published`` and ``configs`` grow whenever these tables change.
marks = Table("marks", METADATA, *_key("key"), *_columns("value", BigInteger))

audit = Table(
    "audit",
    METADATA,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    *_columns("at who action"),
    *_columns("subject digest details request", null=True),
)

# ``folded`` is the name as it is compared.
keys = Table(
    "keys",
    METADATA,
    *_key("id"),
    *_columns("name folded hash scopes created_at created_by"),
    *_columns("revoked_at", null=True),
)

# ``root`` is the job of the list, else the job itself; its ``events`` number the events.
# ``device`` is the one that has claimed a validation, ``memory`` the bytes it needs. ``executor`` is the
# process that runs it, ``claims`` how often one has begun this attempt, ``version`` that of its steps.
jobs = Table(
    "jobs",
    METADATA,
    *_key("id"),
    *_columns("kind root state request by created_at"),
    *_columns("place attempt events claims", Integer),
    *_columns("step says result error config engine device executor version started_at ended_at", null=True),
    *_columns("memory", BigInteger, null=True),
)

# When a caller or a list had its last turn in the queue, by a clock that counts claims.
turns = Table("turns", METADATA, *_key("kind", "lane", "flow"), *_columns("number", BigInteger))

# Results of finished steps as JSON, until the job ends.
steps = Table("steps", METADATA, *_key("job", "name"), *_columns("result"))

events = Table(
    "events",
    METADATA,
    *_key("root"),
    Column("number", Integer, primary_key=True),
    *_columns("job at type data"),
)

# The processes that run jobs; ``seen`` is epoch seconds, ``place`` where ``pid`` counts, ``version`` that of
# the workflows.
executors = Table(
    "executors",
    METADATA,
    *_key("id"),
    *_columns("place host started_at"),
    *_columns("pid", BigInteger),
    *_columns("seen", Float),
    *_columns("device engines version", null=True),
    *_columns("memory", BigInteger, null=True),
)

# What an import would change of a document: ``version`` is the one that was compared, ``found`` the dry
# import as JSON.
rechecks = Table(
    "rechecks", METADATA, *_key("name"), *_columns("job found at"), *_columns("version", Integer)
)
