"""Findings of rechecks as rows: the queue that waits for a person, and the documents of each recheck."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, TypedDict

from sqlalchemy import ColumnElement, Connection, RowMapping, func, insert, select, update

from importer.config import now
from importer.frozen import frozen
from importer.storage import document_rows, tables
from importer.storage.database import fresh

FindingState = Literal["open", "accepted", "rejected", "superseded", "resolved"]
Outcome = Literal["unchanged", "found", "known", "rejected", "failed", "gone"]
F, K = tables.findings.c, tables.rechecks.c
BATCH = 500  # rows in one insertion


class Proposal(TypedDict):
    """The files that an import would write, the digest of their data, and what they change."""

    text: str
    receipt: str
    template: str | None
    digest: str
    changes: list[dict[str, object]]


@frozen
class Finding:
    """A document that an import now would change, and what a person decided about it.

    ``version`` of the working copy was compared. ``fingerprint`` is the same for the same change, whatever
    a person edited. ``summary`` is the finding's JSON; ``at`` is when it was found first, ``seen_at`` last.
    """

    id: str
    name: str
    version: int
    fingerprint: str
    causes: Sequence[str]
    summary: Mapping[str, Any]
    state: FindingState
    job: str | None
    at: str
    seen_at: str
    by: str | None = None
    decided_at: str | None = None
    why: str | None = None


@frozen
class FindingFilter:
    """Which findings a list has."""

    states: Sequence[str] = ()
    cause: str | None = None
    name: str | None = None
    job: str | None = None


COLUMNS = [F[f.name] for f in fields(Finding)]
JSON = ("causes", "summary")


def page(
    connection: Connection, chosen: FindingFilter, limit: int, before: str | None = None
) -> list[Finding]:
    """Return the newest findings, those before an id."""
    query = select(*COLUMNS).where(*_conditions(chosen)).order_by(F.id.desc()).limit(limit)
    query = query if before is None else query.where(F.id < before)
    return [_read(row) for row in connection.execute(query).mappings()]


def count(connection: Connection, chosen: FindingFilter) -> int:
    """Return how many findings a list has in all."""
    query = select(func.count()).select_from(tables.findings).where(*_conditions(chosen))
    return connection.execute(query).scalar_one()


def get(connection: Connection, ident: str) -> Finding | None:
    """Return one finding, if there is one of this id."""
    row = connection.execute(select(*COLUMNS).where(F.id == ident)).mappings().first()
    return None if row is None else _read(row)


def summaries(connection: Connection, chosen: FindingFilter) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield id, name and summary of each finding of a list, the oldest first."""
    query = select(F.id, F.name, F.summary).where(*_conditions(chosen)).order_by(F.id)
    for row in connection.execute(query.execution_options(yield_per=BATCH)):
        yield row.id, row.name, json.loads(row.summary)


def proposals(connection: Connection, ident: str) -> dict[str, Proposal]:
    """Return the files that an import would write, by the side that its conflicts are settled for."""
    text = connection.execute(select(F.proposals).where(F.id == ident)).scalar()
    return {} if not text else json.loads(zlib.decompress(base64.b64decode(text)))


def record(
    connection: Connection, name: str, version: int, fingerprint: str, causes: Iterable[str],
    summary: Mapping[str, object], proposed: Mapping[str, Proposal], job: str,
) -> tuple[str | None, Outcome]:  # fmt: skip
    """Record what a recheck found; return the finding's id and whether it is new.

    An open finding of the same change is refreshed, one that was rejected stays so, and any other open one of
    the document is superseded.
    """
    row = {
        "version": version, "causes": json.dumps([*causes]), "job": job, "seen_at": now(),
        "summary": json.dumps(summary, ensure_ascii=False),
        "proposals": base64.b64encode(zlib.compress(json.dumps(proposed).encode())).decode(),
    }  # fmt: skip
    same = [F.name == name, F.fingerprint == fingerprint]
    known = select(F.id, F.state).where(*same, F.state.in_(("open", "rejected"))).order_by(F.id.desc())
    last = connection.execute(known).first()
    if last is not None:
        connection.execute(update(tables.findings).where(F.id == last.id).values(row))
        others = [F.name == name, F.state == "open", F.id != last.id]
        _settle(connection, others, "superseded")
        document_rows.attend(connection, name)
        return last.id, "known" if last.state == "open" else "rejected"
    _settle(connection, [F.name == name, F.state == "open"], "superseded")
    ident = fresh()
    made = {"id": ident, "name": name, "fingerprint": fingerprint, "state": "open", "at": row["seen_at"]}
    connection.execute(insert(tables.findings).values(**row, **made))
    document_rows.attend(connection, name)
    return ident, "found"


def resolve(connection: Connection, name: str) -> None:
    """Mark the open findings of a document as resolved: an import now would change nothing."""
    _settle(connection, [F.name == name, F.state == "open"], "resolved")
    document_rows.attend(connection, name)


def decide(connection: Connection, ident: str, state: FindingState, by: str, why: str | None) -> bool:
    """Record a person's decision; false where the finding is no longer open."""
    row = {"state": state, "by": by, "decided_at": now(), "why": why}
    row |= {"proposals": ""} if state == "accepted" else {}
    here = (F.id == ident, F.state == "open")
    decided = connection.execute(update(tables.findings).where(*here).values(row)).rowcount > 0
    for name in connection.execute(select(F.name).where(F.id == ident)).scalars().all():
        document_rows.attend(connection, name)
    return decided


def select_names(connection: Connection, job: str, names: Iterable[str]) -> int:
    """Record the documents that a recheck is to compare; return how many."""
    rows = [{"job": job, "name": name} for name in dict.fromkeys(names)]
    for at in range(0, len(rows), BATCH):
        connection.execute(insert(tables.rechecks), rows[at : at + BATCH])
    return len(rows)


def waiting(connection: Connection, job: str, limit: int) -> list[str]:
    """Return the first documents of a recheck that were not compared yet, by name."""
    query = select(K.name).where(K.job == job, K.outcome.is_(None)).order_by(K.name).limit(limit)
    return [*connection.execute(query).scalars()]


def compared(
    connection: Connection, job: str, name: str, outcome: Outcome, finding: str | None = None,
    error: Mapping[str, object] | None = None,
) -> None:  # fmt: skip
    """Record the outcome of one document of a recheck."""
    text = None if error is None else json.dumps(error)
    at = now()
    row = {"outcome": outcome, "finding": finding, "at": at, "error": text}
    if outcome not in ("failed", "gone"):
        document_rows.checked(connection, name, at)
    connection.execute(update(tables.rechecks).where(K.job == job, K.name == name).values(row))


def outcomes(connection: Connection, job: str) -> dict[str, int]:
    """Return how many documents of a recheck have which outcome; ``waiting`` have none yet."""
    query = select(K.outcome, func.count()).where(K.job == job).group_by(K.outcome)
    return {row[0] or "waiting": row[1] for row in connection.execute(query)}


def items(connection: Connection, job: str, limit: int, after: str = "") -> list[dict[str, object]]:
    """Return the documents of a recheck by name, those behind ``after``."""
    query = select(tables.rechecks).where(K.job == job, K.name > after).order_by(K.name).limit(limit)
    rows = connection.execute(query).mappings()
    return [{**row, "error": None if row["error"] is None else json.loads(row["error"])} for row in rows]


def purge(connection: Connection, before: str) -> int:
    """Delete findings that were settled before a time, and the documents of rechecks whose job is gone.

    Return how many findings. A rejected one stays: its change would be shown again.
    """
    settled = [
        F.state.in_(("accepted", "superseded", "resolved")),
        func.coalesce(F.decided_at, F.seen_at) < before,
    ]
    present = select(tables.jobs.c.id).where(tables.jobs.c.id == K.job).exists()
    connection.execute(tables.rechecks.delete().where(~present))
    return connection.execute(tables.findings.delete().where(*settled)).rowcount


def _settle(connection: Connection, conditions: Sequence[ColumnElement[bool]], state: FindingState) -> None:
    row = {"state": state, "decided_at": now(), "proposals": ""}
    connection.execute(update(tables.findings).where(*conditions).values(row))


def _conditions(chosen: FindingFilter) -> Iterator[ColumnElement[bool]]:
    if chosen.states:
        yield F.state.in_(chosen.states)
    if chosen.name is not None:
        yield F.name == chosen.name
    if chosen.job is not None:
        yield F.job == chosen.job
    if chosen.cause is not None:
        yield F.causes.contains(f'"{chosen.cause}"', autoescape=True)


def _read(row: RowMapping) -> Finding:
    return Finding(**{**row, **{key: json.loads(row[key]) for key in JSON}})
