"""Indexes for lists by state and part of a name; PostgreSQL's indexes hold no long text."""

from __future__ import annotations

STATEMENTS: tuple[str, ...] = ()
SQLITE = (
    "DROP INDEX configs_by_state",
    """CREATE INDEX configs_listed ON configs (state, name, search, family, backend)
        WHERE deleted_at IS NULL""",
)
