"""``python -m gen_defaults localai-diff PATH``: what LocalAI's parser table lacks, and what is refuted there.

PATH is a checkout of LocalAI, or its ``parser_defaults.json``. The output is a diff for a pull request, in
the shape that LocalAI's importer reads; ``--evidence`` prints each row with the models that speak for it.
A row of importer's table is taken where it makes an answer on the rows with a source right, and none wrong.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gen_defaults.paths import file
from gen_defaults.sources.outside import from_json
from gen_defaults.truth import FIELDS, ROWS, Truth, read
from importer.signals.tables import TableRow, parser_table
from importer.wheels.index import IndexFailure

FILE = "core/config/parser_defaults.json"
Row = Mapping[str, str]  # field to the name of a parser; a missing one is none


@dataclass(frozen=True, slots=True)
class LocalTable:
    """LocalAI's table: the first pattern that is in the name decides."""

    families: Mapping[str, Row]
    patterns: Sequence[str]

    @classmethod
    def of(cls, text: str, path: str) -> LocalTable:
        """Return the table of a file; raises IndexFailure."""
        data = from_json(text, FILE, path)
        return cls(data["families"], [p for p in data["patterns"] if p in data["families"]])

    def find(self, model_id: str) -> str | None:
        """Return the pattern that decides, as LocalAI's ``MatchParserDefaults`` finds it."""
        name = model_id.lower().rpartition("/")[2].removesuffix(".gguf").replace("_", "-")
        return next((pattern for pattern in self.patterns if pattern in name), None)

    def answer(self, model_id: str) -> Row:
        """Return the parsers of a model."""
        return self.families.get(self.find(model_id) or "", {})

    def with_row(self, pattern: str, row: Row) -> LocalTable:
        """Return the table with one more row, before every pattern that is a part of its own."""
        patterns = [p for p in self.patterns if p != pattern]
        place = next((i for i, p in enumerate(patterns) if p in pattern), len(patterns))
        return LocalTable({**self.families, pattern: row}, [*patterns[:place], pattern, *patterns[place:]])

    def text(self, before: str) -> str:
        """Return the file as LocalAI writes it; lines of rows that have not changed stay as they are."""
        old = LocalTable.of(before, FILE).families
        lines = {
            found[1]: found[0].rstrip(",")
            for found in re.finditer(r'^ *"([^"]+)": *{.*$', before, re.MULTILINE)
        }
        rows = [
            lines[p] if old.get(p) == self.families[p] and p in lines else _line(p, self.families[p])
            for p in self.patterns
        ]
        patterns = json.dumps([*self.patterns], separators=(",", ":"))
        return '{\n  "families": {\n' + ",\n".join(rows) + f'\n  }},\n  "patterns": {patterns}\n}}\n'


def _line(pattern: str, row: Row) -> str:
    return f"    {json.dumps(pattern) + ':':<15} {json.dumps(row)}"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A new or changed row, and the models whose answers it makes right."""

    pattern: str
    before: Row | None
    after: Row
    models: tuple[Truth, ...]

    def __str__(self) -> str:
        """The row with its evidence, as a list of Markdown."""
        was = "missing" if self.before is None else f"refuted, was {json.dumps(self.before)}"
        if self.before == self.after:
            was = "refuted by its place: it stood before a pattern that decides"
        lines = [f"- `{self.pattern}`: {json.dumps(self.after)} ({was})"]
        for truth in self.models:
            names = (f"{f} {' or '.join(a or 'none' for a in of)}" for f, of in truth.accepted.items())
            lines.append(f"  - {truth.model_id}: {'; '.join(names)} ([source]({truth.source}))")
        return "\n".join(lines)


def proposals(table: LocalTable, truths: Sequence[Truth]) -> Iterator[tuple[Proposal, LocalTable]]:
    """Yield each row that makes answers right and none wrong, with the table that has it."""
    for pattern, row in _candidates():
        better = table.with_row(pattern, row)
        gained = tuple(t for t in truths if _right(better, t) > _right(table, t))
        if gained and not any(_right(better, t) < _right(table, t) for t in truths):
            before = table.families.get(pattern)
            table = better
            yield Proposal(pattern, before, row, gained), table


def _candidates() -> Iterator[tuple[str, Row]]:
    """Yield importer's rows as LocalAI can have them, the shortest pattern first."""
    plain = [row for row in parser_table().rows if not {*row.family} & {*"*#/"}]
    for row in sorted(plain, key=lambda row: (len(row.family), row.family)):
        yield row.family, _parsers(row)


def _parsers(row: TableRow) -> Row:
    return {field: name for field in FIELDS if (name := row.parsers.get(field))}


def _right(table: LocalTable, truth: Truth) -> int:
    answer = table.answer(truth.model_id)
    return sum(truth.verdict(field, answer.get(field)) == "right" for field in truth.accepted)


def table_file(text: str) -> Path:
    """Return the file of a checkout, or the file itself; raises ArgumentTypeError."""
    return file(str(Path(text, FILE)) if Path(text).is_dir() else text)


def options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("path", type=table_file, metavar="PATH")
    parser.add_argument("--truth", type=file, default=ROWS, metavar="FILE", help="rows of another table")
    parser.add_argument("--evidence", action="store_true", help="the rows with their models and sources")


def main(options: argparse.Namespace) -> int:
    """Print the diff; 1 where the table cannot be read."""
    try:
        text, truths = options.path.read_text(encoding="utf-8"), read(options.truth)
        table = LocalTable.of(text, str(options.path))
    except (OSError, ValueError, KeyError, IndexFailure) as error:
        sys.stderr.write(f"localai-diff: {error}\n")
        return 1
    found = [*proposals(table, truths)]
    new = found[-1][1] if found else table
    if options.evidence:
        sys.stdout.write("".join(f"{proposal}\n" for proposal, _ in found))
    else:
        lines = (text.splitlines(keepends=True), new.text(text).splitlines(keepends=True))
        sys.stdout.write("".join(difflib.unified_diff(*lines, f"a/{FILE}", f"b/{FILE}")))
    shares = [sum(_right(one, t) == len(t.accepted) for t in truths) for one in (table, new)]
    refuted = sum(proposal.before is not None for proposal, _ in found)
    sys.stderr.write(
        f"localai-diff: {len(found) - refuted} rows missing, {refuted} refuted; "
        f"right for {shares[0]} of {len(truths)} models before, {shares[1]} after\n"
    )
    return 0
