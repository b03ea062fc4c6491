"""Columns of lists: words, ranks and counts of findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, func, select, update

from importer.storage import change_counter
from importer.storage.tables import configs, findings

T, F = configs.c, findings.c
OTHER = "other"
FINDING = "finding"  # the reason that an open finding of a recheck is
# Kinds of what needs attention, the gravest first. Those of an import are the kinds of its warnings.
KINDS = (
    "will-not-start", "does-not-fit", "no-receipt", "failed", "outdated", "edited", "no-entry", FINDING,
    "grant", "needs-code", "foreign-code", "prompts", "parser", "limited-tools", "no-tools", "way-in",
    "conflict", "other-device", OTHER,
)  # fmt: skip
# Parameters of a model below each bound.
SIZES: Mapping[str, float] = {
    "under-1b": 1e9, "1b-4b": 4e9, "4b-10b": 10e9, "10b-35b": 35e9, "35b-100b": 100e9,
    "over-100b": float("inf"),
}  # fmt: skip
Json = Mapping[str, Any]


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


def attend(connection: Connection, name: str) -> None:
    """Count a document's open findings anew, and rank its attention."""
    number = connection.execute(select(func.count()).where(F.name == name, F.state == "open")).scalar_one()
    kinds = {*(connection.execute(select(T.attention).where(T.name == name)).scalar() or "").split()}
    named = words(kinds | {FINDING} if number else kinds - {FINDING})
    row = {"findings": number, "attention": named, "urgency": urgency(named)}
    connection.execute(update(configs).where(T.name == name).values(row))
    change_counter.changed(connection)


def checked(connection: Connection, name: str, at: str) -> None:
    """Record that a document was compared with an import."""
    connection.execute(update(configs).where(T.name == name).values(checked_at=at))


def size_of(parameters: int | None) -> str | None:
    """Return the class of a model by the number of its parameters."""
    if parameters is None:
        return None
    return next(name for name, bound in SIZES.items() if parameters < bound)
