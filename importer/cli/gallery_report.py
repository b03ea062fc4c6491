"""Findings about a gallery as text, JSON or GitHub's annotations; changes as Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from importer.app.gallery import ERROR, NOTE, WARNING, GalleryChange, GalleryFinding
from importer.cli import messages
from importer.document.document_keys import ABSENT, Change, KeyPath, dotted, json_text
from importer.errors import one_line
from importer.sentences import counted

LEVELS = (ERROR, WARNING, NOTE)
GITHUB = {ERROR: "error", WARNING: "warning", NOTE: "notice"}
MOST_ROWS = 40  # of one entry's changes
LONGEST_VALUE = 120
KEPT = 30  # characters before a difference
COMMENT = 60_000  # characters; GitHub takes 65,536
# What decides first about a change.
FIRST: tuple[KeyPath, ...] = (
    ("config_file", "parameters", "model"), ("config_file", "artifacts"), ("config_file", "backend"),
    ("license",), ("config_file", "options"),
)  # fmt: skip


def line(finding: GalleryFinding) -> str:
    """Return a finding in one line: file, line of its value, level, entry and text."""
    return f"{one_line(finding.file)}:{finding.line}: {finding.level}: {_about(finding)}"


def text(findings: Sequence[GalleryFinding], entries: int) -> str:
    """Return a line for each finding, the errors first, then the totals."""
    lines = map(line, _sorted(findings))
    totals = ", ".join(counted(_count(findings, level), level, f"{level}s") for level in LEVELS)
    return "\n".join([*lines, f"{counted(entries, 'entry', 'entries')}: {totals}."]) + "\n"


def as_json(findings: Sequence[GalleryFinding], entries: int) -> str:
    """Return one JSON object."""
    rows = [
        {"entry": f.entry, "file": f.file, "line": f.line, "level": f.level, "rule": f.reason.kind.value,
         "message": one_line(messages.text(f.reason))}
        for f in _sorted(findings)
    ]  # fmt: skip
    totals = {level: _count(findings, level) for level in LEVELS}
    return json.dumps({"schema": 1, "entries": entries, "totals": totals, "findings": rows}) + "\n"


def github(findings: Sequence[GalleryFinding], _entries: int) -> str:
    """Return workflow commands: GitHub shows each beside its line of a pull request."""
    return "".join(
        f"::{GITHUB[f.level]} file={_escaped(one_line(f.file), ':,')},line={f.line},"
        f"title={_escaped(f.reason.kind.value, ':,')}::{_escaped(_about(f))}\n"
        for f in _sorted(findings)
    )


FORMATS: Mapping[str, Callable[[Sequence[GalleryFinding], int], str]] = {
    "text": text, "json": as_json, "github": github,
}  # fmt: skip


def markdown(changes: Iterable[GalleryChange]) -> str:
    """Return the changes for those who run the models, in less than a comment's length."""
    changed = list(changes)
    if not changed:
        return "No entry of the gallery changes.\n"
    groups = {
        what.capitalize(): [c for c in changed if c.what == what] for what in ("added", "removed", "changed")
    }
    parts = [
        "**" + ", ".join(f"{len(group)} {name.lower()}" for name, group in groups.items() if group) + "**\n"
    ]
    for name, group in groups.items():
        parts += [_section(name, change) for change in group]
    kept, size = [], 0
    for number, part in enumerate(parts):
        size += len(part) + 1
        if size > COMMENT:
            kept.append(f"… and {counted(len(parts) - number, 'entry', 'entries')} more.\n")
            break
        kept.append(part)
    return "\n".join(kept)


def unread(findings: Iterable[GalleryFinding]) -> Iterator[str]:
    """Yield the lines on files that no comparison has read."""
    for number, finding in enumerate(findings):
        yield from () if number else ["\n### Not read\n\n"]
        yield f"- {_cell(line(finding))}\n"


def _section(title: str, change: GalleryChange) -> str:
    def rank(one: Change) -> int:
        return next((at for at, first in enumerate(FIRST) if one.path[: len(first)] == first), len(FIRST))

    values = sorted(change.values, key=rank)
    rows = [f"| {_cell(dotted(one.path))} | {' | '.join(_pair(one.before, one.after))} |" for one in values]
    more = [f"| … | {len(rows) - MOST_ROWS} more | |"] if len(rows) > MOST_ROWS else []
    head = f"### {title}: {_cell(change.name)}\n\n| key | before | after |\n|---|---|---|\n"
    return head + "\n".join([*rows[:MOST_ROWS], *more]) + "\n"


def _pair(old: object, new: object) -> tuple[str, str]:
    """Return two values as cells; of long ones the part in which they differ."""
    before, after = (None if one is ABSENT else json_text(one) for one in (old, new))
    if before is None or after is None:
        return _cell(before), _cell(after)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    cut = max(0, same - KEPT) if same > LONGEST_VALUE - KEPT else 0
    return _cell(before, cut), _cell(after, cut)


def _cell(value: str | None, cut: int = 0) -> str:
    """Return a value as code in a table's cell: nothing in it is markup or a mention."""
    if value is None:
        return ""
    plain = one_line(f"…{value[cut:]}" if cut else value).replace("|", "\\|").replace("`", "'")
    return f"`{plain[:LONGEST_VALUE]}{'…' if len(plain) > LONGEST_VALUE else ''}`" if plain else ""


def _about(finding: GalleryFinding) -> str:
    name = f"{finding.entry}: " if finding.entry else ""
    return one_line(f"{name}{messages.text(finding.reason)}")


def _escaped(value: str, also: str = "") -> str:
    """Return a value for a workflow command, by GitHub's own escapes."""
    for char in ("%", "\r", "\n", *also):
        value = value.replace(char, f"%{ord(char):02X}")
    return value


def _sorted(findings: Sequence[GalleryFinding]) -> list[GalleryFinding]:
    return sorted(findings, key=lambda f: (LEVELS.index(f.level), f.file, f.line))


def _count(findings: Sequence[GalleryFinding], level: str) -> int:
    return sum(finding.level == level for finding in findings)
