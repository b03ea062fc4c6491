"""A registered parser that no row uses, with what is known of its format."""

from __future__ import annotations

from collections.abc import Iterator

from gen_defaults.checks.absent import KINDS
from gen_defaults.checks.finding import PARSERS, Finding, Subject
from gen_defaults.checks.wire import described, markers
from importer.engines.registries import PINNED, Entry, Registry

# Parsers that no family needs, and why. Another name of a class that a row uses needs no entry.
EXEMPT = {
    ("tool_parser", "hf"): "reads what a repository's response_template says, whatever the family",
    ("reasoning_parser", "hf"): "reads what a repository's response_template says, whatever the family",
    ("reasoning_parser", "minimax_m2_append_think"): "leaves thoughts in the answer, for other clients",
}
STEP = "add the family that it is for, or say in gen_defaults/checks/unused.py why none needs it"


def check(subject: Subject) -> Iterator[Finding]:
    """Parsers of the version whose names the table has; what a newer one adds is noted."""
    known = [r.version for r in subject.registries]
    own = known.index(PINNED["vllm"]) if PINNED["vllm"] in known else len(known) - 1
    told: set[tuple[str, str]] = set()
    for registry in subject.registries[max(own, 0) :]:
        for field, entry in _unused(subject, registry):
            if (field, entry.name) not in told:
                told |= {(field, name) for name in (entry.name, *entry.aliases)}
                yield _finding(field, entry, registry, subject, own=registry.version == known[own])


def _unused(subject: Subject, registry: Registry) -> Iterator[tuple[str, Entry]]:
    for field, kind in KINDS.items():
        used = {row.parsers.get(field) for row in subject.table.rows}
        for name, entry in registry.entries[kind].items():
            if not used & {name, *entry.aliases} and (field, name) not in EXEMPT:
                yield field, entry


def _finding(field: str, entry: Entry, registry: Registry, subject: Subject, *, own: bool) -> Finding:
    word, source = field.replace("_", " "), subject.modules.get(entry.module, "")
    about = [f"class {entry.class_name} in {entry.module}", described(source, entry.class_name)]
    found = markers(source)
    about.append(f"its format has {' '.join(found)}" if found else "")
    says = f"no row uses the {word} {entry.name} of {registry.engine} {registry.version}"
    known = ", ".join(filter(None, about))
    return Finding(PARSERS, entry.name, f"{says} ({known})", STEP, "error" if own else "note")
