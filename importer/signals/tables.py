"""The two tables: the parsers of each family, and the sampling values that its vendor recommends.

Both have LocalAI's shape (``families`` and ``patterns``), so LocalAI reads them too. In the parser table
each value of a row is a string or null, and lists are words with blanks between. In the sampling table each
value of a row is a number; all other fields stand beside ``families``. gen_defaults/README.md has every key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

from importer import config
from importer.frozen import frozen
from importer.signals import name as pattern
from importer.signals.name import Name, is_suffix, words_of

PARSERS = ("tool_parser", "reasoning_parser")
TABLES = ("parser_defaults", "inference_defaults")

# Words of a base model's name beside its family: sizes, dates, versions and the like.
_SIZE = re.compile(
    r"(?:[0-9]+x)?[0-9]+(?:\.[0-9]+)?[bmkte]?|a[0-9]+(?:\.[0-9]+)?[bm]|[ev]?[0-9]+(?:\.[0-9]+)*"
    r"|meta|nvidia|mistral|preview|vision|vl|scout|maverick|coder|code|math|moe|dense|text|small|large|medium|mini|tiny|nano|micro|unsloth"
)

_PARAMETERS = re.compile(r"[0-9][bm]\Z")
_SIZE_PART = re.compile(r"[-*]a?(?:#\.)?#[bm]")

# Order of the rows: by the purpose of a model, then by its fine-tune, then by its base model.
_TURN = {"base": 1, "fine-tune": 2, "family": 3}


@frozen
class TableRow:
    """One family's row of the parser table.

    ``family``   its pattern, see ``importer.signals.name``.
    ``parsers``  a name, or ``None`` (known to have none); a missing key is unknown.
    ``kind``     ``chat`` by default.
    ``role``     ``family``, or ``fine-tune`` where the name usually stands beside the name of its base model.
    ``chat``     words; each name of a chat model has one of them, a size without one marks a base model.
    ``exclude``  words that a name of this family does not have.
    ``types``    values of ``model_type`` that only this family has.
    """

    family: str
    parsers: Mapping[str, str | None]
    kind: str = "chat"
    role: str = "family"
    chat: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    notes: str = ""
    source: str = ""

    @property
    def label(self) -> str:
        """Return the family's name for messages: the pattern without organisation, sizes and wildcards."""
        return _SIZE_PART.sub("", self.family.rpartition("/")[2]).replace("*", "-").replace("#", "x")

    @property
    def turn(self) -> tuple[int, int, bool, str]:
        """Return the sort key of rows: purpose and role, then the longest pattern first."""
        first = _TURN[self.role] if self.kind == "chat" else _TURN.get(self.kind, 0)
        return first, -pattern.length(self.family), "/" not in self.family, self.family

    def covers(self, name: Name) -> str | None:
        """Return the part of the name that the row recognises; ``None`` for a name with an excluded word."""
        part = _search(self.family, name)
        if part is None or any(pattern.search(word, name.name) for word in self.exclude):
            return None
        return part


@frozen
class Match:
    """A row that covers a name, with the kind and the parsers for this name."""

    row: TableRow
    kind: str
    parsers: Mapping[str, str | None]
    quote: str


@frozen
class Table:
    """The parser table, its rows in their precedence."""

    rows: tuple[TableRow, ...]

    def find(self, name: Name) -> Match | None:
        """Return the first row that covers the name."""
        for row in self.rows:
            quote = row.covers(name)
            if quote is not None:
                return _read(row, name, quote)
        return None

    def find_type(self, model_type: str) -> TableRow | None:
        """Return the row of the only family with this ``model_type``."""
        return next((row for row in self.rows if model_type in row.types), None)

    def without(self, families: Collection[str]) -> Table:
        """Return the table without the rows of these families."""
        return Table(tuple(r for r in self.rows if r.family not in families))


@frozen
class SamplingRow:
    """A family's sampling values in LocalAI's names; ``modes`` keeps thinking and non-thinking sets apart."""

    family: str
    values: Mapping[str, float]
    modes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    source: str = ""


@frozen
class SamplingTable:
    """The sampling table, longest pattern first."""

    rows: tuple[SamplingRow, ...]

    def find(self, name: Name) -> SamplingRow | None:
        """Return the first row that covers the name."""
        return next((row for row in self.rows if _search(row.family, name) is not None), None)


_STAND_IN: ContextVar[Table | None] = ContextVar("stand-in", default=None)


def parser_table() -> Table:
    """Return the parser table in force: the stand-in, else the shipped one."""
    return stand_in() or shipped()


def stand_in() -> Table | None:
    """Return the table in place of the shipped one, if there is any."""
    return _STAND_IN.get()


@cache
def shipped() -> Table:
    """Return the parser table as shipped."""
    return parse_parsers(raw("parser_defaults"))


@contextmanager
def standing_in(table: Table) -> Iterator[None]:
    """Use another table in place of the shipped one, to measure the worth of a row."""
    token = _STAND_IN.set(table)
    try:
        yield
    finally:
        _STAND_IN.reset(token)


@cache
def sampling_table() -> SamplingTable:
    """Return the sampling table as shipped."""
    return parse_sampling(raw("inference_defaults"))


def parse_parsers(data: Mapping[str, Any]) -> Table:
    """Return rows from a file that follows the schema."""
    rows = [
        TableRow(
            family=family,
            parsers={p: row[p] for p in PARSERS if p in row},
            kind=row.get("kind", "chat"),
            role=row.get("role", "family"),
            chat=tuple(row.get("chat", "").split()),
            exclude=tuple(row.get("exclude", "").split()),
            types=tuple(row.get("model_type", "").split()),
            notes=row.get("notes", ""),
            source=row.get("source", ""),
        )
        for family, row in data["families"].items()
    ]
    return Table(tuple(sorted(rows, key=lambda r: r.turn)))


def parse_sampling(data: Mapping[str, Any]) -> SamplingTable:
    """Return rows from a file that follows the schema."""
    modes, sources = data.get("modes", {}), data.get("sources", {})
    rows = [SamplingRow(f, v, modes.get(f, {}), sources.get(f, "")) for f, v in data["families"].items()]
    return SamplingTable(tuple(sorted(rows, key=lambda r: (-pattern.length(r.family), r.family))))


def path_of(table: str) -> Path:
    """Return the file of a table: inside the installed package, else at the top of a checkout."""
    packed = config.data(f"{table}.json")
    return packed if packed.is_file() else Path(__file__).parents[2] / f"{table}.json"


def raw(table: str) -> Mapping[str, Any]:
    """Return a table's file as data; ``table`` is one of ``TABLES``."""
    data: Mapping[str, Any] = json.loads(path_of(table).read_text(encoding="utf-8"))
    return data


def _search(family: str, name: Name) -> str | None:
    org, _, words = family.rpartition("/")
    return None if org and org != name.org else pattern.search(words, name.name)


def _read(row: TableRow, name: Name, quote: str) -> Match:
    if not row.chat or any(pattern.search(word, name.name) for word in row.chat):
        return Match(row, row.kind, row.parsers, quote)
    words = words_of(name.name)
    sized = any(_PARAMETERS.search(word) for word in words)  # an alias or a folder has no size
    if sized and all(
        is_suffix(word) or _SIZE.fullmatch(word) for word in words_of(name.name.replace(quote, "-", 1))
    ):
        return Match(row, "base", dict.fromkeys(PARSERS), quote)
    return Match(row, row.kind, {}, quote)
