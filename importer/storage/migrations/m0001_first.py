"""The first tables, with their indexes and the guards of the audit log.

An entry of the log has the next id, and stays. One with ``until`` permits to delete those up to an older id,
so a deletion cannot happen without an entry that records it.
"""

from __future__ import annotations

DOCUMENTS = (
    """CREATE TABLE configs (
        name TEXT PRIMARY KEY, version INTEGER NOT NULL, release INTEGER, digest TEXT NOT NULL,
        model TEXT, revision TEXT, backend TEXT, family TEXT, kind TEXT,
        state TEXT NOT NULL, review TEXT NOT NULL, validation TEXT NOT NULL, reason TEXT,
        search TEXT NOT NULL,
        created_at TEXT NOT NULL, updated_at TEXT NOT NULL, deleted_at TEXT,
        description TEXT, license TEXT, tags TEXT, quantization TEXT, modalities TEXT,
        tool_parser TEXT, reasoning_parser TEXT, context BIGINT, parameters BIGINT, size TEXT,
        weights BIGINT, memory BIGINT, device TEXT, devices INTEGER,
        whole_bytes BIGINT, part_bytes BIGINT,
        run_engine TEXT, run_version TEXT, run_at TEXT, run_passed INTEGER, run_failed INTEGER,
        run_total INTEGER, run_seconds DOUBLE PRECISION, checked_at TEXT,
        attention TEXT, urgency INTEGER NOT NULL DEFAULT 0,
        links TEXT NOT NULL, row TEXT NOT NULL, shown TEXT NOT NULL, shown_by TEXT NOT NULL)""",
    "CREATE INDEX configs_by_model ON configs (model)",
    "CREATE INDEX configs_released ON configs (name) WHERE release IS NOT NULL",
    "CREATE INDEX configs_deleted ON configs (deleted_at) WHERE deleted_at IS NOT NULL",
    "CREATE INDEX configs_updated ON configs (updated_at, name)",
    "CREATE INDEX configs_urgent ON configs (urgency, name)",
    """CREATE TABLE versions (
        name TEXT NOT NULL, number INTEGER NOT NULL, action TEXT NOT NULL,
        text TEXT NOT NULL, data TEXT NOT NULL, receipt_hash TEXT, template TEXT,
        digest TEXT NOT NULL, state TEXT NOT NULL,
        "by" TEXT NOT NULL, at TEXT NOT NULL, why TEXT, PRIMARY KEY (name, number))""",
    "CREATE INDEX versions_by_receipt ON versions (receipt_hash)",
    "CREATE TABLE receipts (hash TEXT PRIMARY KEY, pieces TEXT NOT NULL)",
    "CREATE TABLE pieces (hash TEXT PRIMARY KEY, content BINARY NOT NULL)",
    """CREATE TABLE published (
        name TEXT PRIMARY KEY, version INTEGER NOT NULL, "left" INTEGER, digest TEXT NOT NULL,
        "by" TEXT NOT NULL, at TEXT NOT NULL, item TEXT NOT NULL, file TEXT NOT NULL, about TEXT NOT NULL)""",
    "CREATE TABLE marks (key TEXT PRIMARY KEY, value BIGINT NOT NULL)",
    "INSERT INTO marks (key, value) VALUES ('retention', 0)",
)
CALLERS = (
    """CREATE TABLE audit (
        id COUNTED, at TEXT NOT NULL, who TEXT NOT NULL, action TEXT NOT NULL, subject TEXT, digest TEXT,
        details TEXT, request TEXT, trace TEXT, until BIGINT)""",
    "CREATE INDEX audit_by_subject ON audit (subject)",
    "CREATE INDEX audit_until ON audit (until) WHERE until IS NOT NULL",
    """CREATE TABLE keys (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, folded TEXT NOT NULL, hash TEXT NOT NULL,
        scopes TEXT NOT NULL, created_at TEXT NOT NULL, created_by TEXT NOT NULL, revoked_at TEXT)""",
    "CREATE UNIQUE INDEX keys_folded ON keys (folded)",
    """CREATE TABLE answers (
        who TEXT NOT NULL, key TEXT NOT NULL, asked TEXT NOT NULL, status INTEGER NOT NULL,
        headers TEXT NOT NULL, body TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (who, key))""",
)
JOBS = (
    """CREATE TABLE jobs (
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, root TEXT NOT NULL, place INTEGER NOT NULL,
        state TEXT NOT NULL, step TEXT, says TEXT, request TEXT NOT NULL, result TEXT, error TEXT,
        "by" TEXT NOT NULL, config TEXT, engine TEXT, memory BIGINT, device TEXT,
        attempt INTEGER NOT NULL, events INTEGER NOT NULL, executor TEXT,
        claims INTEGER NOT NULL DEFAULT 0, version TEXT, trace TEXT,
        created_at TEXT NOT NULL, started_at TEXT, ended_at TEXT)""",
    # Each holds all that its queries look at: rows with their requests and results are large.
    """CREATE INDEX jobs_waiting ON jobs (
        kind, "by", root, place, id, state, claims, version, device, executor, ended_at)
        WHERE executor IS NULL AND ended_at IS NULL""",
    """CREATE INDEX jobs_roots ON jobs (id, root, kind, state, created_at, started_at, ended_at)
        WHERE root = id""",
    "CREATE INDEX jobs_by_state ON jobs (state, id, root, kind, ended_at)",
    "CREATE INDEX jobs_by_root ON jobs (root, place, id, state)",
    "CREATE INDEX jobs_by_config ON jobs (config, id)",
    "CREATE INDEX jobs_ended ON jobs (ended_at)",
    """CREATE TABLE turns (
        kind TEXT NOT NULL, lane TEXT NOT NULL, flow TEXT NOT NULL, number BIGINT NOT NULL,
        PRIMARY KEY (kind, lane, flow))""",
    "INSERT INTO turns (kind, lane, flow, number) VALUES ('', 'clock', '', 0)",
    """CREATE TABLE steps (
        job TEXT NOT NULL, name TEXT NOT NULL, result TEXT NOT NULL, PRIMARY KEY (job, name))""",
    """CREATE TABLE events (
        root TEXT NOT NULL, number INTEGER NOT NULL, job TEXT NOT NULL, at TEXT NOT NULL,
        type TEXT NOT NULL, data TEXT NOT NULL, PRIMARY KEY (root, number))""",
    """CREATE TABLE executors (
        id TEXT PRIMARY KEY, place TEXT NOT NULL, host TEXT NOT NULL, pid BIGINT NOT NULL,
        device TEXT, engines TEXT, memory BIGINT, version TEXT, budget TEXT, started_at TEXT NOT NULL,
        seen DOUBLE PRECISION NOT NULL)""",
)
UPKEEP = (
    """CREATE TABLE rechecks (
        job TEXT NOT NULL, name TEXT NOT NULL, outcome TEXT, version INTEGER, found TEXT, error TEXT, at TEXT,
        PRIMARY KEY (job, name))""",
    "CREATE INDEX rechecks_by_name ON rechecks (name, at)",
    """CREATE TABLE schedules (
        name TEXT PRIMARY KEY, every BIGINT NOT NULL, due DOUBLE PRECISION NOT NULL, job TEXT, at TEXT)""",
)
STATEMENTS = (*DOCUMENTS, *CALLERS, *JOBS, *UPKEEP)
SQLITE = (
    # Lists and facets come from an index with all that they look at; PostgreSQL's hold no long text. The name
    # comes first: a list by name ends at its limit, whatever its filters are.
    """CREATE INDEX configs_listed ON configs (
        name, deleted_at, state, search, backend, family, modalities, tool_parser, reasoning_parser, license,
        quantization, size, attention, review, validation, memory, devices, whole_bytes, part_bytes,
        updated_at, created_at, checked_at, urgency, weights, context, parameters, model, kind,
        tags, release) WHERE deleted_at IS NULL""",
    """CREATE TRIGGER audit_append_only BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
    # REPLACE fires no trigger for the row that it deletes, so the trigger of the new row refuses it.
    """CREATE TRIGGER audit_no_replacement BEFORE INSERT ON audit
        WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id)
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
    # Only behind the insertion is the id known that SQLite itself gave.
    """CREATE TRIGGER audit_next AFTER INSERT ON audit
        WHEN NEW.until >= NEW.id OR NEW.id <> 1 + max(
            coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'audit'), 0),
            coalesce((SELECT id FROM audit WHERE id <> NEW.id ORDER BY id DESC LIMIT 1), 0))
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
    """CREATE TRIGGER audit_no_deletion BEFORE DELETE ON audit
        WHEN OLD.id > (SELECT coalesce(max(until), 0) FROM audit WHERE until IS NOT NULL)
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
)
POSTGRES = (
    "CREATE INDEX configs_by_state ON configs (state, name)",
    """CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$""",
    """CREATE TRIGGER audit_append_only BEFORE UPDATE ON audit
        FOR EACH ROW EXECUTE FUNCTION audit_append_only()""",
    # The table by its own number: a temporary one of the same name would come first.
    """CREATE FUNCTION audit_until(entries regclass) RETURNS BIGINT LANGUAGE plpgsql AS $$
        DECLARE deleted BIGINT;
        BEGIN
            EXECUTE format('SELECT coalesce(max(until), 0) FROM %s WHERE until IS NOT NULL', entries)
                INTO deleted;
            RETURN deleted;
        END $$""",
    """CREATE FUNCTION audit_next() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NEW.until >= NEW.id OR NEW.id <= audit_until(TG_RELID)
                OR NEW.id <> currval(pg_get_serial_sequence(TG_RELID::regclass::text, 'id')) THEN
                RAISE EXCEPTION 'the audit log is append-only';
            END IF;
            RETURN NEW;
        END $$""",
    """CREATE FUNCTION audit_no_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF OLD.id > audit_until(TG_RELID) THEN RAISE EXCEPTION 'the audit log is append-only'; END IF;
            RETURN OLD;
        END $$""",
    """CREATE TRIGGER audit_next BEFORE INSERT ON audit
        FOR EACH ROW EXECUTE FUNCTION audit_next()""",
    """CREATE TRIGGER audit_no_deletion BEFORE DELETE ON audit
        FOR EACH ROW EXECUTE FUNCTION audit_no_deletion()""",
    """CREATE TRIGGER audit_no_truncation BEFORE TRUNCATE ON audit
        FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only()""",
)
