"""Retention: old rows are deleted by age and by number, in small transactions that a kill does not tear.

What a release or the working copy needs stays: the newest two versions of a document, the version of each
release that is not withdrawn, the one that it was rolled back from, and each receipt that a version names.
The comparison that a document shows stays, too. Open jobs stay whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, delete, func, or_, select, tuple_, update

from importer.frozen import frozen
from importer.storage import queue, rechecks, tables
from importer.storage.actors import SERVICE
from importer.storage.audit import AuditContext, record
from importer.storage.database import Database
from importer.storage.documents import hashes_in, purge
from importer.storage.jobs import ENDED

BATCH = 200  # rows, or jobs with all their events, in one transaction
INTERVAL = 3600  # seconds between two runs of all processes together
LAST_RUN = "retention"  # a key of ``marks``
KEPT = 2  # versions of a document that stay in any case: its working copy, and the one before
A, E, J, K, P = tables.audit.c, tables.events.c, tables.jobs.c, tables.marks.c, tables.pieces.c
C, R, V, RECEIPTS = tables.configs.c, tables.published.c, tables.versions.c, tables.receipts.c


@frozen
class Limits:
    """Days that ended jobs, the audit log and deleted documents are kept, and versions of each document; 0 is
    without a limit.
    """

    jobs: int = 0
    versions: int = 0
    audit: int = 0
    documents: int = 0


def _oldest(days: int) -> str:
    """Return the time before which rows are deleted; sorts before all times where there is no limit."""
    return (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="seconds") if days else ""


def due(connection: Connection) -> bool:
    """Return whether this process is to run the retention now: one of all that share the database is."""
    now = int(time.time())
    mine = update(tables.marks).where(K.key == LAST_RUN, K.value <= now - INTERVAL).values(value=now)
    return connection.execute(mine).rowcount == 1


def run(database: Database, limits: Limits, ending: Callable[[], bool] = lambda: False) -> Mapping[str, int]:
    """Delete what the limits leave; return the number of deleted rows by kind.

    ``ending`` ends the run between two transactions: the next run continues.
    """
    removed: dict[str, int] = {}
    for kind, work in WORK.items():
        removed[kind], more = 0, True
        while more and not ending():
            with database.writing() as connection:
                database.alone(connection)
                number, more = work(connection, getattr(limits, kind))
            removed[kind] += number
    with database.writing() as connection:
        queue.forget(connection)
    return removed


Deleted = tuple[int, bool]  # rows, and whether there may be more


def _jobs(connection: Connection, days: int) -> Deleted:
    """Delete ended jobs with their events and documents of a recheck, and lists with all their jobs."""
    old = [J.root == J.id, J.state.in_(ENDED), J.ended_at < _oldest(days)]
    roots = connection.execute(select(J.id).where(*old).order_by(J.id).limit(BATCH)).scalars().all()
    # Jobs are locked before their list, as their processes do; one that was tried again meanwhile stays.
    members = select(J.id).where(J.root.in_(roots), J.id != J.root).order_by(J.root, J.place)
    connection.execute(members.with_for_update())
    still = select(J.id).where(J.id.in_(roots), J.state.in_(ENDED)).order_by(J.id)
    chosen = connection.execute(still.with_for_update()).scalars().all()
    idents = select(J.id).where(J.root.in_(chosen))
    connection.execute(delete(tables.steps).where(tables.steps.c.job.in_(idents)))
    connection.execute(delete(tables.events).where(E.root.in_(chosen)))
    rows = connection.execute(delete(tables.jobs).where(J.root.in_(chosen))).rowcount
    rechecks.forget(connection)
    return rows, len(chosen) == BATCH


def _versions(connection: Connection, number: int) -> Deleted:
    """Delete old versions, and the receipts that nothing names any more."""
    if not number:
        return 0, False
    released = select(R.name).where(R.name == V.name, or_(R.version == V.number, R.left == V.number)).exists()
    query = select(V.name, V.number, V.receipt_hash).join(tables.configs, C.name == V.name)
    old = query.where(V.number <= C.version - max(number, KEPT), ~released)
    rows = connection.execute(old.order_by(V.name, V.number).limit(BATCH)).all()
    places = [(row.name, row.number) for row in rows]
    connection.execute(delete(tables.versions).where(tuple_(V.name, V.number).in_(places)))
    _receipts(connection, {row.receipt_hash for row in rows if row.receipt_hash is not None})
    return len(rows), len(rows) == BATCH


def _receipts(connection: Connection, hashes: set[str]) -> None:
    """Delete those receipts that nothing names, and the pieces that no other receipt has."""
    named = {*connection.execute(select(V.receipt_hash).where(V.receipt_hash.in_(hashes))).scalars()}
    unnamed = hashes - named
    if not unnamed:
        return
    here = select(RECEIPTS.pieces).where(RECEIPTS.hash.in_(unnamed))
    pieces = {piece for order in connection.execute(here).scalars() for piece in hashes_in(order)}
    connection.execute(delete(tables.receipts).where(RECEIPTS.hash.in_(unnamed)))
    for order in connection.execute(select(RECEIPTS.pieces)).scalars():
        pieces -= {*hashes_in(order)}
    for piece in pieces:
        connection.execute(delete(tables.pieces).where(P.hash == piece))


def _audit(connection: Connection, days: int) -> Deleted:
    """Delete the oldest entries; the first transaction adds the entry that counts and permits them.

    One that a wrong clock dated back stays until all before it go.
    """
    until = connection.execute(select(func.max(A.until)).where(A.until.is_not(None))).scalar() or 0
    young = select(func.min(A.id)).where(A.at >= _oldest(days)).scalar_subquery()
    newest = select(func.max(A.id) + 1).scalar_subquery()
    older = select(A.id, A.at).where(A.id < func.coalesce(young, newest)).order_by(A.id.desc())
    last = connection.execute(older.limit(1)).first()
    if last is not None and last.id > until:
        until = last.id
        number = connection.execute(select(func.count()).where(A.id <= until)).scalar_one()
        told = {"entries": number, "until": until, "at": last.at}
        record(connection, AuditContext(SERVICE, "delete entries"), "audit", told, until)
    old = select(A.id).where(A.id <= until).order_by(A.id).limit(BATCH)
    chosen = connection.execute(old).scalars().all()
    connection.execute(delete(tables.audit).where(A.id.in_(chosen)))
    return len(chosen), len(chosen) == BATCH


def _documents(connection: Connection, days: int) -> Deleted:
    """Delete documents for good that were deleted long ago, with the receipts that nothing names any more."""
    number, hashes = purge(connection, _oldest(days), BATCH)
    _receipts(connection, hashes)
    return number, number == BATCH


WORK: Mapping[str, Callable[[Connection, int], Deleted]] = {
    "jobs": _jobs, "versions": _versions, "audit": _audit, "documents": _documents,
}  # fmt: skip
