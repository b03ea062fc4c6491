"""A parser name that no supported version has, that the newest has lost, or that is too new for the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gen_defaults.checks.finding import PARSERS, Finding, Subject
from importer.engines.registries import PINNED, Kind, Registry
from importer.evidence import tables

KINDS: dict[str, Kind] = {"tool_parser": "tool", "reasoning_parser": "reasoning"}


def check(subject: Subject) -> Iterator[Finding]:
    """Every name in the table, asked of every registry."""
    known = subject.registries
    for row in subject.table.rows if known else ():
        for field in tables.PARSERS:
            name = row.parsers.get(field)
            having = [r for r in known if name is not None and r.has(KINDS[field], name)]
            if name is not None and known[-1] not in having:
                yield _finding(row.family, field, name, having, known)
            elif name is not None and any(_is_ours(r) and r not in having for r in known):
                yield _too_new(row.family, field, name, having[0])


def _is_ours(registry: Registry) -> bool:
    """Whether it is the version whose names the table has."""
    return registry.version == PINNED.get(registry.engine)


def _too_new(family: str, field: str, name: str, first: Registry) -> Finding:
    says = f"the {field.replace('_', ' ')} {name} comes with {first.engine} {first.version} only"
    return Finding(
        PARSERS, family, says, f"take one that {PINNED[first.engine]} has, which is installed", "note"
    )


def _finding(
    family: str, field: str, name: str, having: Sequence[Registry], known: Sequence[Registry]
) -> Finding:
    newest, word = known[-1], field.replace("_", " ")
    near = ", ".join(newest.near(KINDS[field], name))
    step = f"take one of {near}" if near else "look up what its format's parser is called now"
    if having:
        last = having[-1]
        says = f"{last.engine} {last.version} is the last with the {word} {name}, {newest.version} has none"
        return Finding(PARSERS, family, says, step, "note")
    versions = ", ".join(r.version for r in known)
    return Finding(PARSERS, family, f"no {newest.engine} of {versions} has a {word} {name}", step)
