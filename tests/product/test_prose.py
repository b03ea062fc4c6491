"""The pages keep the rules of prose in CONTRIBUTING.md: the words of its glossary, and short sentences."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from importer.cli import arguments
from importer.cli.commands import completion
from tests.prose import CODE, COMMENT, FENCE, blank, sentences

ROOT = Path(__file__).resolve().parents[2]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *sorted(p for p in (ROOT / "docs").glob("*.md") if not p.name.startswith("reference-")),
]
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
LONGEST = 25  # words in a sentence
# Parts of pages that are generated, as whole pages of reference are: their words are those of the messages.
PARTS = re.compile(r"<!-- (\w+) -->.*?<!-- /\1 -->", re.DOTALL)


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading of CONTRIBUTING.md, without its head."""
    below = TEXTS[CONTRIBUTING].partition(heading)[2]
    table = re.search(r"(?:^\|.*\n)+", below, re.MULTILINE)
    assert table is not None
    return [
        [cell.strip() for cell in line.strip("| \n").split(" |")] for line in table.group().splitlines()[2:]
    ]


GLOSSARY = rows("## Glossary")
WORDS = [row[0] for row in GLOSSARY]
HIDING = rows("These words stand in no page")


def disallowed() -> list[str]:
    """Return every word that a table of CONTRIBUTING.md disallows."""
    cells = [row[2] for row in GLOSSARY if len(row) > 2] + [row[0] for row in HIDING]
    return [word.strip() for cell in cells for word in cell.split(",") if word.strip()]


# "Which" begins a question, and no clause.
DISALLOWED = re.compile(rf"\b(?!(?-i:Which))(?:{'|'.join(map(re.escape, disallowed()))})\b", re.IGNORECASE)


def without_code(text: str) -> str:
    """Return a page without its code blocks, generated parts and code spans; lines keep their numbers."""
    text = COMMENT.sub(blank, FENCE.sub(blank, PARTS.sub(blank, text)))
    return CODE.sub("", re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE))


def written(page: Path) -> str:
    """Return what the tables of words are held against: of CONTRIBUTING.md all but these tables."""
    text = TEXTS[page]
    return without_code(text.partition("## Glossary")[0] if page == CONTRIBUTING else text)


def helps() -> Iterator[tuple[str, str]]:
    """Yield the --help text of every command."""
    waiting = [("importer", arguments._bare()), ("importer", completion.every_command())]
    while waiting:
        words, parser = waiting.pop()
        yield words, parser.format_help()
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += [(f"{words} {name}", sub) for name, sub in action.choices.items()]


def test_the_glossary_is_a_glossary() -> None:
    assert 30 <= len(WORDS) <= 50
    assert len(set(WORDS)) == len(WORDS)
    assert all(row[1] for row in GLOSSARY)
    assert len(disallowed()) > 15


@pytest.mark.parametrize("word", WORDS)
def test_each_word_of_the_glossary_is_used(word: str) -> None:
    plural = re.compile(rf"\b{word[:-1]}(?:{word[-1]}s?|ies|es)\b", re.IGNORECASE)
    assert [page.name for page in PAGES if page != CONTRIBUTING and plural.search(written(page))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_no_page_has_a_disallowed_word(page: Path) -> None:
    lines = enumerate(written(page).splitlines(), 1)
    assert [f"{page.name}:{n}: {m.group()}" for n, line in lines for m in DISALLOWED.finditer(line)] == []


def test_no_help_has_a_disallowed_word() -> None:
    assert [f"{words}: {m.group()}" for words, text in helps() for m in DISALLOWED.finditer(text)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_sentences_are_short(page: Path) -> None:
    long = [s for s in sentences(TEXTS[page]) if s.words > LONGEST]
    assert [f"{page.name}:{s.line}: {s.words} words: {s.text}" for s in long] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One two three.", [3]),
        ("One `a b c` three. Four [five](six) seven!", [3, 3]),
        ("# Head\n\n| a | b |\n|---|---|\n\n    code here\n\nOne.\n- two three\n- four\n", [1, 2, 1]),
        ("```\nno prose here\n```\n\nOne\ntwo.\n", [2]),
        ("Version 0.32.0 has 1.5 s. See e.g. the `a`. `b` is code.", [5, 4, 3]),
    ],
)
def test_sentences_are_counted(text: str, expected: list[int]) -> None:
    assert [s.words for s in sentences(text)] == expected
