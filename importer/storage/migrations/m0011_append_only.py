"""Guards of the audit log, and key names in the one form that is compared.

An entry has the next id, and stays. One with ``until`` permits to delete those up to an older id, so a
deletion cannot happen without an entry that records it.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from importer.storage.actors import OWN, folded

STATEMENTS = (
    "ALTER TABLE audit ADD COLUMN until BIGINT",
    "CREATE INDEX audit_until ON audit (until) WHERE until IS NOT NULL",
    "ALTER TABLE keys ADD COLUMN folded TEXT",
    "CREATE UNIQUE INDEX keys_folded ON keys (folded)",
)
SQLITE = (
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


def fill(connection: Connection) -> None:
    """Fold the names of all keys; of several with one name the oldest has it, and all stay."""
    taken = {*OWN}
    for ident, name in connection.execute(text("SELECT id, name FROM keys ORDER BY created_at, id")).all():
        form = folded(name)
        if form not in taken:
            taken.add(form)
            connection.execute(text("UPDATE keys SET folded = :f WHERE id = :i"), {"f": form, "i": ident})
