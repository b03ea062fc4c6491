"""A pattern that can never win.

Our rows are asked by purpose, maker and length, whatever the file says (docs/tables.md). A pattern is
shadowed where every name that it spells out is taken by a row that is asked before it, or is refused by its
own ``exclude``. LocalAI asks in the file's order and takes any part of a name, so for it a shorter pattern
that stands earlier takes the longer one's names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, product

from gen_defaults.checks.finding import PARSERS, SAMPLING, Finding, Subject
from importer.evidence import pattern
from importer.evidence.name import Name

Find = Callable[[Name], str]  # the family that a name is given, or an empty text
BETWEEN = ("-", "-zz-", "-7b-")  # what stands for a star
DIGITS = ("9", "27")  # what stands for a number sign
STEP = "amend the pattern, or take the row out"


def check(subject: Subject) -> Iterator[Finding]:
    """Both tables, by our rule and by LocalAI's."""
    table, sampling = subject.table, subject.sampling_table
    excluded = {row.family: row.exclude for row in table.rows}

    def parsers_of(name: Name) -> str:
        found = table.find(name)
        return "" if found is None else found.row.family

    def sampling_of(name: Name) -> str:
        found = sampling.find(name)
        return "" if found is None else found.family

    yield from _shadowed(PARSERS, excluded, parsers_of)
    yield from _shadowed(SAMPLING, {row.family: () for row in sampling.rows}, sampling_of)
    yield from _misplaced(PARSERS, subject.parsers["patterns"])
    yield from _misplaced(SAMPLING, subject.sampling["patterns"])


def _shadowed(file: str, excluded: dict[str, tuple[str, ...]], find: Find) -> Iterator[Finding]:
    for family, own in excluded.items():
        winners = _winners(family, find)
        # Words that keep a winner away: with one of them in the name this row may still be asked.
        words = {word for winner in winners for word in excluded.get(winner, ())} - {*own}
        if family in winners or family in _winners(family, find, words):
            continue
        others = [winner for winner in winners if winner]
        says = f"{others[0]} is asked first" if others else "its own exclude refuses every name"
        yield Finding(file, family, f"shadowed: {says}", STEP)


def _winners(family: str, find: Find, words: Iterable[str] = ("",)) -> list[str]:
    """Who is given the names that a pattern spells out, each with a word beside it, up to its own first."""
    winners: list[str] = []
    for name in dict.fromkeys(name for word in words for name in _names(family, word)):
        winners.append(find(name))
        if winners[-1] == family:
            break
    return winners


def _names(family: str, word: str) -> Iterator[Name]:
    org, _, bare = family.rpartition("/")
    for between, digit in product(BETWEEN, DIGITS):
        for text in (f"{bare}-{word}", f"{word}-{bare}") if word else (bare,):
            yield Name(org, text.replace("*", between).replace("#", digit))


def _misplaced(file: str, patterns: list[str]) -> Iterator[Finding]:
    """Patterns that LocalAI would ask too late."""
    for before, after in pairwise(patterns):
        if pattern.length(after) > pattern.length(before):
            says = f"it stands after {before}, which is shorter, and LocalAI asks in the file's order"
            yield Finding(file, after, says, "put the longest first")
