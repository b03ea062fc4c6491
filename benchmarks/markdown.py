"""Our reader of cards beside markdown-it-py: time on hostile cards, and what both find in ordinary ones."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt

from importer.signals import card
from importer.signals.card import LONGEST, Block, _Reader, body, plain, without_comments
from tests import card_texts
from tests.clock.repositories import snapshot

HEADING = f"{'card':36} {'ours':>16} {'markdown-it-py':>24}"
SIZE = 400_000
NOTE = re.compile(r"^\[!\w{1,20}\]")
Reads = Callable[[str], Iterable[Block]]

HOSTILE: dict[str, Callable[[int], str]] = {
    "prose": lambda n: "We recommend temperature=0.6.\n\n" * (n // 31),
    "rows of a table": lambda n: "|a|b|\n|-|-|\n" + "|1|2|\n" * (n // 6),
    "list items": lambda n: "- temperature: 0.6\n" * (n // 19),
    "opened brackets": lambda n: "[" * n,
    "opened images": lambda n: "![](" * (n // 4),
    "underlined headings": lambda n: "a\n=" * (n // 3),
}
WRITTEN: dict[str, Callable[[str], str]] = {
    "as they are": lambda text: text,
    "in a <div>": lambda text: f"\n<div>\n{text.lstrip()}\n</div>\n",
    "<details> under each heading": lambda text: re.sub(
        r"^(#+ .*)\n", r"\1\n<details open>\n", text, flags=re.MULTILINE
    ),
    "lists indented by four": lambda text: re.sub(
        r"^(\s*(?:[-*]|\d\.) )", r"    \1", text, flags=re.MULTILINE
    ),
    "• for bullets": lambda text: re.sub(r"^(\s*)- ", r"\1• ", text, flags=re.MULTILINE),
}


@dataclass(frozen=True)
class Line:
    """One card, or all of them in one manner."""

    what: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        """As it is printed."""
        return f"{self.what:36} {self.ours:>16} {self.theirs:>24}"


def rows() -> Iterator[Line]:
    """Seconds of processor time for each hostile card, then values found in the tests' cards."""
    whole, bare = MarkdownIt("commonmark").enable("table"), _bare()
    for what, make in HOSTILE.items():
        text = make(SIZE)
        seconds = [_seconds(read, text) for read in (_ours, bare.parse, whole.parse)]
        yield Line(what, f"{seconds[0]:.2f} s", f"{seconds[1]:.2f} s, inline {seconds[2]:.2f} s")
    for what, write in WRITTEN.items():
        texts = [_rewritten(text, write) for text in _cards()]
        ours = [_values(text, card.blocks) for text in texts]
        theirs = [_values(text, blocks) for text in texts]
        lost = sum(len(a - b) for a, b in zip(ours, theirs, strict=True))
        others = sum(len(b - a) for a, b in zip(ours, theirs, strict=True))
        yield Line(what, f"{sum(map(len, ours))} values", f"{lost} lost, {others} others")


def blocks(text: str) -> Iterator[Block]:  # noqa: C901 - one branch for each kind of token
    """The blocks of a card from markdown-it-py's tokens."""
    reader, cells, depth, head = _Reader(), list[str](), 0, False
    first: list[bool] = []  # for each open list item, whether its first paragraph is still to come
    tokens = iter(_bare().parse(without_comments(body(text))))
    for token in tokens:
        kind = token.type
        depth += kind.endswith("_list_open") - kind.endswith("_list_close")
        if kind == "list_item_open":
            first.append(True)
        elif kind == "list_item_close":
            first.pop()
        elif kind == "heading_open":
            reader.head(int(token.tag[1]), plain(next(tokens).content[:LONGEST]))
        elif kind in ("thead_open", "thead_close"):
            head = kind == "thead_open"
        elif kind in ("th_open", "td_open"):
            cells.append(plain(next(tokens).content))
        elif kind == "tr_close" and head:
            reader.columns, cells = tuple(cells), []
        elif kind == "tr_close":
            yield reader.block("row", " | ".join(cells))
            cells = []
        elif kind == "table_close":
            reader.columns = ()
        elif kind in ("fence", "code_block"):
            yield reader.block("code", token.content[:LONGEST])
        elif kind in ("inline", "html_block"):
            reader.kind, reader.depth = "item" if first and first[-1] else "text", depth
            reader.lines = NOTE.sub("", token.content).split("\n")
            first[-1:] = [False] * bool(first)
            yield from reader.close()


def _bare() -> MarkdownIt:
    """Without inline markup, which our own ``plain`` takes out."""
    return MarkdownIt("commonmark").enable("table").disable("inline")


def _ours(text: str) -> list[Block]:
    return list(card.blocks(text))


def _seconds(read: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    read(text)
    return time.process_time() - began


def _cards() -> list[str]:
    return [text for name, text in vars(card_texts).items() if name.isupper() and len(text) > 100]


def _rewritten(text: str, write: Callable[[str], str]) -> str:
    rest = body(text)
    return text[: len(text) - len(rest)] + write(rest)


def _values(text: str, read: Reads) -> set[tuple[str, str]]:
    """What the card's reader finds with these blocks."""
    usual = card.blocks
    card.blocks = read  # type: ignore[assignment]
    try:
        return {(fact.key, str(fact.value)) for fact in card.evidence(snapshot(README_md=text))}
    finally:
        card.blocks = usual
