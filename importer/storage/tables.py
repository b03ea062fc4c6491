"""The tables as queries see them; ``migrations`` makes them. Times are ISO 8601 in UTC, JSON is text."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Integer, LargeBinary, MetaData, Table, Text

METADATA = MetaData()

# The newest version of each document in columns that lists are made of; ``reason``: why it is not published;
# ``search``: what a search looks through, in small letters; ``release``: the version that is served. From
# ``description`` on: what ``cards`` makes of data and receipt. ``tags``, ``modalities`` and ``attention`` are
# words between spaces, ``urgency`` ranks the gravest word of attention.
# ``links`` is JSON, and ``row`` that of these columns as lists have it. ``shown`` is the JSON that one
# document's answer has besides, and ``shown_by`` the version of importer that rendered it.
configs = Table(
    "configs",
    METADATA,
    Column("name", Text, primary_key=True),
    *(Column(name, Text) for name in ("digest", "model", "revision", "backend", "family", "kind")),
    *(Column(name, Text) for name in ("state", "review", "validation", "reason", "search")),
    *(Column(name, Text) for name in ("created_at", "updated_at", "deleted_at")),
    *(Column(name, Integer) for name in ("version", "release")),
    *(Column(name, Text) for name in ("description", "license", "tags", "quantization", "modalities")),
    *(Column(name, Text) for name in ("tool_parser", "reasoning_parser", "size", "device", "attention")),
    *(Column(name, Text) for name in ("run_engine", "run_version", "run_at", "checked_at")),
    *(Column(name, Text) for name in ("links", "row", "shown", "shown_by")),
    *(Column(name, BigInteger) for name in ("context", "parameters", "weights", "memory")),
    *(Column(name, BigInteger) for name in ("whole_bytes", "part_bytes")),
    *(Column(name, Integer) for name in ("devices", "run_passed", "run_failed", "run_total", "urgency")),
    Column("run_seconds", Float),
)

# Every version ever: text and template as they would lie on disk, the text's data as JSON, and the receipt.
versions = Table(
    "versions",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    *(Column(name, Text) for name in ("action", "text", "data", "receipt_hash", "template", "digest")),
    *(Column(name, Text) for name in ("state", "by", "at", "why")),
)

# Receipts by the hash of their text: the hashes of their pieces as JSON, and the pieces, compressed.
receipts = Table("receipts", METADATA, Column("hash", Text, primary_key=True), Column("pieces", Text))
pieces = Table("pieces", METADATA, Column("hash", Text, primary_key=True), Column("content", LargeBinary))

# The version of each document that is served, and ``left``, the one that was rolled back. Its entry for
# LocalAI as it was rendered: its item of the index, a file of its own, and as JSON what is listed of it.
published = Table(
    "published",
    METADATA,
    Column("name", Text, primary_key=True),
    *(Column(name, Integer) for name in ("version", "left")),
    *(Column(name, Text) for name in ("digest", "by", "at", "item", "file", "about")),
)

# ``published`` and ``configs`` grow whenever these tables change; ``published_at`` is when, in epoch seconds.
marks = Table("marks", METADATA, Column("key", Text, primary_key=True), Column("value", BigInteger))

# ``until`` is the newest entry that the retention deleted when it added this one.
audit = Table(
    "audit",
    METADATA,
    Column("id", BigInteger, primary_key=True),
    *(
        Column(name, Text)
        for name in ("at", "who", "action", "subject", "digest", "details", "request", "trace")
    ),
    Column("until", BigInteger),
)

# ``folded`` is the name as it is compared.
keys = Table(
    "keys",
    METADATA,
    Column("id", Text, primary_key=True),
    *(Column(name, Text) for name in ("name", "folded", "hash", "scopes", "created_at")),
    *(Column(name, Text) for name in ("created_by", "revoked_at")),
)

# Responses by idempotency key; ``asked`` is the hash of the request.
answers = Table(
    "answers",
    METADATA,
    Column("who", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    *(Column(name, Text) for name in ("asked", "headers", "body", "at")),
    Column("status", Integer),
)

# ``root`` is the job of the list, else the job itself; its ``events`` number the events.
# ``device`` is the one that has claimed a validation, ``memory`` the bytes it needs. ``executor`` is the
# process that runs it, ``claims`` how often one has begun this attempt, ``version`` that of its steps.
# ``trace`` is the span that asked for it, as a ``traceparent``.
jobs = Table(
    "jobs",
    METADATA,
    Column("id", Text, primary_key=True),
    *(Column(name, Text) for name in ("kind", "root", "state", "step", "says", "request", "result", "error")),
    *(Column(name, Text) for name in ("by", "config", "engine", "device", "executor", "version", "trace")),
    *(Column(name, Text) for name in ("created_at", "started_at", "ended_at")),
    Column("memory", BigInteger),
    *(Column(name, Integer) for name in ("place", "attempt", "events", "claims")),
)

# When a caller or a list had its last turn in the queue, by a clock that counts claims.
turns = Table(
    "turns",
    METADATA,
    *(Column(name, Text, primary_key=True) for name in ("kind", "lane", "flow")),
    Column("number", BigInteger),
)

# Results of finished steps as JSON, until the job ends.
steps = Table(
    "steps",
    METADATA,
    Column("job", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("result", Text),
)

events = Table(
    "events",
    METADATA,
    Column("root", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    *(Column(name, Text) for name in ("job", "at", "type", "data")),
)

# The processes that run jobs; ``seen`` is epoch seconds, ``place`` where ``pid`` counts, ``version`` that of
# the workflows, ``budget`` what the Hub leaves it, as JSON.
executors = Table(
    "executors",
    METADATA,
    Column("id", Text, primary_key=True),
    *(
        Column(name, Text)
        for name in ("place", "host", "device", "engines", "started_at", "version", "budget")
    ),
    *(Column(name, BigInteger) for name in ("pid", "memory")),
    Column("seen", Float),
)

# The documents of a recheck, each with its outcome once it was compared: ``version`` is the one that was,
# ``found`` the dry import as JSON, ``error`` a problem as JSON.
rechecks = Table(
    "rechecks",
    METADATA,
    Column("job", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    *(Column(name, Text) for name in ("outcome", "found", "error", "at")),
    Column("version", Integer),
)

# When work of all processes together is due, in epoch seconds, and its last job; ``every`` is in seconds.
schedules = Table(
    "schedules",
    METADATA,
    Column("name", Text, primary_key=True),
    *(Column(name, Text) for name in ("job", "at")),
    Column("every", BigInteger),
    Column("due", Float),
)
