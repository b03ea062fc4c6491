"""A field that nobody knows: of a source it is listed, never dropped in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gen_defaults.checks.finding import Finding, Subject


def check(subject: Subject) -> Iterator[Finding]:
    """Fields that the schema lacks, and a source's that are neither taken over nor left out by name."""
    for fault in subject.faults:
        if fault.rule == "additionalProperties":
            yield Finding(
                fault.file,
                fault.row,
                f"no field is called {fault.key}",
                "correct its name, see docs/tables.md",
            )
    for upstream in subject.upstream:
        rows: dict[str, list[str]] = {}
        for family, row in upstream.rows.items():
            for name in row if isinstance(row, Mapping) else ():
                if name not in upstream.known and name not in upstream.ignored:
                    rows.setdefault(str(name), []).append(family)
        for name, families in sorted(rows.items()):
            more = f" and {len(families) - 1} more" if len(families) > 1 else ""
            says = f"{name} is a field that is not known here, in {families[0]}{more}"
            yield Finding(
                upstream.source, families[0], says, "name it in the source as taken over or as left out"
            )
