"""Upkeep beside the documents: findings of rechecks, their schedule, and webhooks with their deliveries."""

from __future__ import annotations

STATEMENTS = (
    """CREATE TABLE findings (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, version INTEGER NOT NULL, fingerprint TEXT NOT NULL,
        causes TEXT NOT NULL, summary TEXT NOT NULL, proposals TEXT NOT NULL, state TEXT NOT NULL,
        job TEXT, at TEXT NOT NULL, seen_at TEXT NOT NULL,
        "by" TEXT, decided_at TEXT, why TEXT)""",
    "CREATE INDEX findings_name ON findings (name, state)",
    "CREATE INDEX findings_state ON findings (state, id)",
    """CREATE TABLE rechecks (
        job TEXT NOT NULL, name TEXT NOT NULL, outcome TEXT, finding TEXT, error TEXT, at TEXT,
        PRIMARY KEY (job, name))""",
    """CREATE TABLE schedules (
        name TEXT PRIMARY KEY, every BIGINT NOT NULL, due DOUBLE PRECISION NOT NULL, job TEXT, at TEXT)""",
    """CREATE TABLE webhooks (
        id TEXT PRIMARY KEY, url TEXT NOT NULL, types TEXT NOT NULL, secret TEXT NOT NULL,
        state TEXT NOT NULL, failures INTEGER NOT NULL, note TEXT,
        created_at TEXT NOT NULL, created_by TEXT NOT NULL, updated_at TEXT NOT NULL)""",
    """CREATE TABLE deliveries (
        id TEXT PRIMARY KEY, webhook TEXT NOT NULL, type TEXT NOT NULL, body TEXT NOT NULL,
        state TEXT NOT NULL, tries INTEGER NOT NULL, due DOUBLE PRECISION NOT NULL,
        status INTEGER, problem TEXT, at TEXT NOT NULL, ended_at TEXT)""",
    "CREATE INDEX deliveries_due ON deliveries (state, due)",
    "CREATE INDEX deliveries_webhook ON deliveries (webhook, id)",
    "CREATE INDEX configs_deleted ON configs (deleted_at) WHERE deleted_at IS NOT NULL",
)
