"""The trace that asked for a job, the typed columns of the audit log, and the Hub's budget of a process."""

from __future__ import annotations

STATEMENTS = (
    "ALTER TABLE jobs ADD COLUMN trace TEXT",
    "ALTER TABLE audit ADD COLUMN digest TEXT",
    "ALTER TABLE audit ADD COLUMN trace TEXT",
    "ALTER TABLE executors ADD COLUMN budget TEXT",
)
SQLITE = (
    """CREATE TRIGGER audit_append_only BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
)
POSTGRES = (
    """CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$""",
    """CREATE TRIGGER audit_append_only BEFORE UPDATE ON audit
        FOR EACH ROW EXECUTE FUNCTION audit_append_only()""",
)
