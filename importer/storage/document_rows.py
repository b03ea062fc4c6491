"""A document's row in lists: its columns, and the JSON of them, rendered whenever one of them changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, insert, select, update

from importer.frozen import frozen
from importer.storage.tables import configs, marks

C = configs.c
OTHER = "other"
DIFFERS = "differs"  # the reason that an import would change the document
# Kinds of what needs attention, the gravest first. Those of an import are the kinds of its warnings.
KINDS = (
    "will-not-start", "does-not-fit", "may-not-start", "no-receipt", "failed", "outdated", "edited",
    "no-entry", DIFFERS, "grant", "needs-code", "foreign-code", "prompts", "parser", "no-tools",
    "request-coverage", "conflict", "other-device", OTHER,
)  # fmt: skip
# Parameters of a model below each bound.
SIZES: Mapping[str, float] = {
    "under-1b": 1e9, "1b-4b": 4e9, "4b-10b": 10e9, "10b-35b": 35e9, "35b-100b": 100e9,
    "over-100b": float("inf"),
}  # fmt: skip
Json = Mapping[str, Any]

PLAIN = (
    "name", "version", "digest", "model", "revision", "backend", "family", "kind", "state", "review",
    "validation", "reason", "release", "created_at", "updated_at", "checked_at",
)  # fmt: skip
FACTS = (
    "description", "license", "tags", "quantization", "modalities", "tool_parser", "reasoning_parser",
    "context", "parameters", "size", "weights", "memory", "device", "devices", "whole_bytes", "part_bytes",
)  # fmt: skip
RUN = ("engine", "version", "at", "passed", "failed", "total", "seconds")  # columns that begin with run_


@frozen
class Summary:
    """A document in a list: what changes and cursors need of it, and its ``row`` as JSON."""

    name: str
    version: int
    digest: str
    state: str
    row: str


SUMMARY = [C[f.name] for f in fields(Summary)]


def summary(connection: Connection, name: str) -> Summary | None:
    """Return a document's row of the list, if it is there."""
    query = select(*SUMMARY).where(C.name == name, C.deleted_at.is_(None))
    row = connection.execute(query).mappings().first()
    return None if row is None else Summary(**row)


def put(connection: Connection, name: str, columns: Json) -> None:
    """Change columns of a document, if there is one, and render its row anew."""
    connection.execute(update(configs).where(C.name == name).values(columns))
    for whole in connection.execute(select(configs).where(C.name == name)).mappings().all():
        connection.execute(update(configs).where(C.name == name).values(row=rendered({**whole})))


def rendered(columns: Json) -> str:
    """Return the JSON of a document as lists have it."""
    listed = {key: (columns[key] or "").split() for key in ("tags", "modalities")}
    run = None if columns["run_total"] is None else {key: columns[f"run_{key}"] for key in RUN}
    row = {key: columns[key] for key in PLAIN} | {
        "attention": sorted((columns["attention"] or "").split(), key=KINDS.index),
        "facts": {key: columns[key] for key in FACTS} | listed, "run": run,
        "links": json.loads(columns["links"]),
    }  # fmt: skip
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def words(names: set[str]) -> str | None:
    """Return names as a column has them, between spaces; ``None`` for none."""
    return f" {' '.join(sorted(names))} " if names else None


def search(name: str, model: str | None, family: str | None, made: Json) -> str:
    """Return the text that a search looks through: name, model, family, description, tags, license."""
    parts = (name, model, family, made["description"], (made["tags"] or "").strip(), made["license"])
    return "\n".join(part for part in parts if part).lower()


def urgency(kinds: str | None) -> int:
    """Return the rank of the gravest kind, the gravest the highest; 0 for none."""
    present = (kinds or "").split()
    return max((len(KINDS) - KINDS.index(kind) for kind in present if kind in KINDS), default=0)


def checked(connection: Connection, name: str, version: int, at: str, *, differs: bool) -> bool:
    """Record that a version was compared with an import, and whether that would change it; false where there
    is a later one. The caller holds the database's lock.
    """
    present = (C.name == name, C.version == version, C.deleted_at.is_(None))
    found = connection.execute(select(C.attention).where(*present)).first()
    if found is None:
        return False
    named = words({*(found[0] or "").split()} - {DIFFERS} | ({DIFFERS} if differs else set()))
    put(connection, name, {"checked_at": at, "attention": named, "urgency": urgency(named)})
    changed(connection)
    return True


def size_of(parameters: int | None) -> str | None:
    """Return the class of a model by the number of its parameters."""
    if parameters is None:
        return None
    return next(name for name, bound in SIZES.items() if parameters < bound)


MARK = "configs"
PRESENT = select(marks.c.value).where(marks.c.key == MARK)  # made once: each page asks for it


def changed(connection: Connection) -> None:
    """Record that a document, or what is listed of it, has changed."""
    grown = update(marks).where(marks.c.key == MARK).values(value=marks.c.value + 1)
    if connection.execute(grown).rowcount == 0:
        connection.execute(insert(marks).values(key=MARK, value=1))


def current(connection: Connection) -> int:
    """Return the mark as it is."""
    return connection.execute(PRESENT).scalar() or 0
