"""Columns for the cards of an overview; the room that knows documents fills them when a process starts."""

from __future__ import annotations

TEXTS = (
    "description", "license", "tags", "quantization", "modalities", "tool_parser",
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
