"""A model card's text in blocks: paragraphs, list items, tables and code, each with its headings.

One pass over the lines, with bounded work on each: a card is untrusted text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

LONGEST = 4000  # characters of a block that are read
DEEPEST = 20  # items within each other; items further out introduce nothing
HEADING = re.compile(r" {0,3}(#{1,6})\s+(.+)")
QUOTED = re.compile(r"(?:\s{0,3}>)+ ?(?:\[!\w{1,20}\])?")  # a note or a warning is read like the rest
FENCE = re.compile(r"\s*(`{3,}|~{3,})")
ITEM = re.compile(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s+(.*)")
RULE = re.compile(r"(?=[\s|:]*+-)[\s|:-]*+")
TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
WIDE = str.maketrans("：＝，（）\u00a0“”‘’−", ":=,() \"\"''-")
DECORATION = str.maketrans("", "", '*`$\\"')

Kind = Literal["text", "item", "row", "code"]


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a card.

    ``text``      plain words without Markdown's signs; of a row, its cells with ``|`` between.
    ``title``     the card's first heading.
    ``headings``  the headings above it, the outermost first, the title left out.
    ``before``    the paragraph that introduces it and the items it stands under, the nearest last.
    ``columns``   of a row, the cells of the table's first row.
    """

    kind: Kind
    text: str
    title: str = ""
    headings: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(slots=True)
class _Reader:
    """State of the pass over the lines."""

    title: str = ""
    headings: list[tuple[int, str]] = field(default_factory=list)
    above: list[tuple[int, str]] = field(default_factory=list)  # depth and text of the introducing blocks
    lines: list[str] = field(default_factory=list)
    kind: Kind = "text"
    depth: int = 0
    columns: tuple[str, ...] = ()  # of the table that is being read

    def block(self, kind: Kind, text: str) -> Block:
        """Return a block at the current place."""
        columns = self.columns if kind == "row" else ()
        headings = tuple(h for _, h in self.headings)
        return Block(kind, text, self.title, headings, tuple(t for _, t in self.above), columns)

    def head(self, level: int, text: str) -> None:
        """Add a heading; it ends the headings of its level and below."""
        self.headings = [h for h in self.headings if h[0] < level]
        self.above = []
        if self.title:
            self.headings.append((level, text))
        self.title = self.title or text

    def close(self) -> Iterator[Block]:
        """Yield the lines gathered so far as one block; it may introduce the next ones."""
        if not self.lines:
            return
        text = plain(" ".join(self.lines)[:LONGEST])
        self.lines = []
        while self.above and self.above[-1][0] >= self.depth:
            self.above.pop()
        yield self.block(self.kind, text)
        if self.kind == "item" or text.rstrip().endswith(":"):
            self.above = [*self.above[1 - DEEPEST :], (self.depth, text)]


def blocks(text: str) -> Iterator[Block]:
    """Yield every block of a card in order, its YAML header and its comments left out."""
    lines = iter(without_comments(body(text)).splitlines())
    reader = _Reader()
    for raw in lines:
        quoted = QUOTED.match(raw)
        line = raw[quoted.end() :] if quoted else raw
        fence, heading, item = FENCE.match(line), HEADING.match(line), ITEM.match(line)
        if fence or heading or item or not line.strip():
            yield from reader.close()
        if reader.columns and "|" in line:
            yield reader.block("row", " | ".join(cells(line)))
            continue
        reader.columns = ()
        if fence:
            yield reader.block("code", _code(lines, fence[1]))
        elif heading:
            reader.head(len(heading[1]), plain(heading[2][:LONGEST]))
        elif item:
            reader.kind, reader.depth, reader.lines = "item", len(item[1].expandtabs(4)) + 1, [item[2]]
        elif "|" in line and RULE.fullmatch(line) and reader.lines and "|" in reader.lines[-1]:
            columns = cells(reader.lines.pop())
            yield from reader.close()
            reader.columns = columns
        elif line.strip():
            if not reader.lines:
                reader.kind, reader.depth = "text", 0
            reader.lines.append(line.strip())
    yield from reader.close()


def _code(lines: Iterator[str], fence: str) -> str:
    code_lines: list[str] = []
    room = LONGEST
    for line in lines:
        if line.strip().startswith(fence) and not line.strip(" \t" + fence[0]):
            break
        if room > 0:
            code_lines.append(line[:room])
            room -= len(line) + 1
    return "\n".join(code_lines)


def cells(line: str) -> tuple[str, ...]:
    """Return the cells of a table's row, without the bars around it."""
    return tuple(plain(cell) for cell in line[:LONGEST].strip().strip("|").split("|"))


def header(text: str) -> str:
    """Return the card's YAML header; empty where there is none."""
    if not text.startswith("---"):
        return ""
    end = text.find("\n---", 3)
    return text[3:end] if end > 0 else ""


def body(text: str) -> str:
    """Return the card without its YAML header."""
    return text[len(header(text)) + 7 :] if header(text) else text


def plain(text: str) -> str:
    """Return words without Markdown's and HTML's signs, in plain punctuation."""
    return TAG.sub(" ", text.translate(WIDE)).translate(DECORATION).strip()


def without_comments(text: str) -> str:
    """Return the text without HTML comments; an unclosed comment hides the rest."""
    parts, start = [], 0
    while (opened := text.find("<!--", start)) >= 0:
        parts.append(text[start:opened])
        closed = text.find("-->", opened)
        if closed < 0:
            return "".join(parts)
        start = closed + 3
    return "".join((*parts, text[start:]))
