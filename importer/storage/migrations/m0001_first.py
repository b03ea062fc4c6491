"""The first tables."""

from __future__ import annotations

STATEMENTS = (
    """CREATE TABLE configs (
        name TEXT PRIMARY KEY, version INTEGER NOT NULL, digest TEXT NOT NULL,
        model TEXT, revision TEXT, backend TEXT, family TEXT, kind TEXT,
        state TEXT NOT NULL, review TEXT NOT NULL, validation TEXT NOT NULL, reason TEXT,
        search TEXT NOT NULL,
        created_at TEXT NOT NULL, updated_at TEXT NOT NULL, deleted_at TEXT)""",
    "CREATE INDEX configs_by_state ON configs (state, name)",
    "CREATE INDEX configs_by_model ON configs (model)",
    """CREATE TABLE versions (
        name TEXT NOT NULL, number INTEGER NOT NULL, action TEXT NOT NULL,
        text TEXT NOT NULL, data TEXT NOT NULL, receipt TEXT, template TEXT,
        digest TEXT NOT NULL, state TEXT NOT NULL,
        "by" TEXT NOT NULL, at TEXT NOT NULL, why TEXT, PRIMARY KEY (name, number))""",
    """CREATE TABLE published (
        name TEXT PRIMARY KEY, version INTEGER NOT NULL, item TEXT NOT NULL, file TEXT NOT NULL,
        about TEXT NOT NULL, at TEXT NOT NULL)""",
    "CREATE TABLE marks (key TEXT PRIMARY KEY, value BIGINT NOT NULL)",
    """CREATE TABLE audit (
        id COUNTED, at TEXT NOT NULL, who TEXT NOT NULL, action TEXT NOT NULL, subject TEXT,
        details TEXT, request TEXT)""",
    "CREATE INDEX audit_by_subject ON audit (subject)",
    """CREATE TABLE keys (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, hash TEXT NOT NULL, scopes TEXT NOT NULL,
        created_at TEXT NOT NULL, created_by TEXT NOT NULL, revoked_at TEXT)""",
    """CREATE TABLE answers (
        who TEXT NOT NULL, key TEXT NOT NULL, asked TEXT NOT NULL, status INTEGER NOT NULL,
        headers TEXT NOT NULL, body TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (who, key))""",
    """CREATE TABLE jobs (
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, root TEXT NOT NULL, place INTEGER NOT NULL,
        state TEXT NOT NULL, step TEXT, says TEXT, request TEXT NOT NULL, result TEXT, error TEXT,
        "by" TEXT NOT NULL, config TEXT, engine TEXT, memory BIGINT, device TEXT,
        attempt INTEGER NOT NULL, events INTEGER NOT NULL, enqueued INTEGER NOT NULL,
        created_at TEXT NOT NULL, started_at TEXT, ended_at TEXT)""",
    "CREATE INDEX jobs_by_root ON jobs (root, place)",
    "CREATE INDEX jobs_by_state ON jobs (state, id)",
    """CREATE TABLE events (
        root TEXT NOT NULL, number INTEGER NOT NULL, job TEXT NOT NULL, at TEXT NOT NULL,
        type TEXT NOT NULL, data TEXT NOT NULL, PRIMARY KEY (root, number))""",
    """CREATE TABLE executors (
        id TEXT PRIMARY KEY, place TEXT NOT NULL, host TEXT NOT NULL, pid BIGINT NOT NULL,
        device TEXT, engines TEXT, memory BIGINT, started_at TEXT NOT NULL,
        seen DOUBLE PRECISION NOT NULL)""",
)
