"""Turns of callers and lists in the queue, and indexes for waiting jobs, totals, sorting and retention.

A single job has the place 0 from now on; jobs of lists have the places from 1.
"""

from __future__ import annotations

STATEMENTS = (
    """CREATE TABLE turns (
        kind TEXT NOT NULL, lane TEXT NOT NULL, flow TEXT NOT NULL, number BIGINT NOT NULL,
        PRIMARY KEY (kind, lane, flow))""",
    "INSERT INTO turns (kind, lane, flow, number) VALUES ('', 'clock', '', 0)",
    "INSERT INTO marks (key, value) VALUES ('retention', 0)",
    "UPDATE jobs SET place = 0 WHERE root = id",
    # Each holds all that its queries look at: rows with their requests and results are large.
    """CREATE INDEX jobs_waiting ON jobs (
        kind, "by", root, place, id, state, claims, version, device, executor, ended_at)
        WHERE executor IS NULL AND ended_at IS NULL""",
    """CREATE INDEX jobs_roots ON jobs (id, root, kind, state, created_at, started_at, ended_at)
        WHERE root = id""",
    "DROP INDEX jobs_by_state",
    "CREATE INDEX jobs_by_state ON jobs (state, id, root, kind, ended_at)",
    "DROP INDEX jobs_by_root",
    "CREATE INDEX jobs_by_root ON jobs (root, place, id, state)",
    "CREATE INDEX jobs_by_config ON jobs (config, id)",
    "CREATE INDEX jobs_ended ON jobs (ended_at)",
    "CREATE INDEX configs_updated ON configs (updated_at, name)",
    "CREATE INDEX versions_by_receipt ON versions (receipt_hash)",
    "CREATE INDEX releases_by_receipt ON releases (receipt_hash)",
)
