"""The description of a model: the first plain paragraph of its card, as short text without any markup.

A card is untrusted text, so the work on it is bounded, and the sandbox runs this reader. A paragraph that
is made of links, badges or code describes nothing.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from itertools import islice

from importer.hub.snapshot import Snapshot
from importer.signals.card import FILE, LONGEST, blocks, body, without_comments

READ = 64 * 1024  # characters of a card that are read
MOST_BLOCKS = 400  # that are looked at
MOST = 500  # characters of a description
LEAST = 40  # characters of one, and of letters in a script without spaces
FEWEST = 6  # words of one
LINKED = 0.5  # share of a paragraph that links may have
LETTERS = 0.6  # share of a paragraph that are letters
SIGNS = 0.03  # share that signs of code may have
MARKS = 4  # marks on one letter; more hide the lines around it

# What belongs to no paragraph: elements with another content, quotes and rules.
HIDDEN = re.compile(
    r"<(button|code|details|head|math|ol|pre|script|style|svg|table|title|ul)\b.*?(?:</\1\s*>|\Z)"
    r"|^ {0,3}>[^\n]*|^ {0,3}(?:=+|-+|[-*_](?:[ \t]*[-*_]){2,})[ \t]*$",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)
BREAK = re.compile(r"</?(?:center|div|h[1-6]|hr|p|section|span)\b[^<>]{0,2000}>", re.IGNORECASE)
ANCHOR = re.compile(r"<a\b[^<>]{0,2000}>([^<>]{0,500})</a>", re.IGNORECASE)

# Links are taken away in this order: an image may be the text of a link.
IMAGE = re.compile(r"!\[[^\[\]]{0,500}\](?:\([^()\s]{0,1000}(?:\s[^()]{0,300})?\)|\[[^\[\]]{0,200}\])")
LINK = re.compile(
    r"\[([^\[\]]{0,500})\](?:\([^()]{0,1000}(?:\([^()]{0,200}\)[^()]{0,200})?\)|\[[^\[\]]{0,200}\])"
)
ADDRESS = re.compile(r"<?\b(?:https?://|www\.|mailto:)[^\s<>]{1,2000}>?", re.IGNORECASE)
EMPHASIS = re.compile(r"(?<![\w/])_{1,3}(?=\S)|(?<=\S)_{1,3}(?![\w/])|~~")
SHORTCODE = re.compile(r"(?<!\S):[a-z0-9_+-]{2,40}:(?!\S)")
UNREAD = re.compile(r"<[A-Za-z/!?]|\]\(|!\[|\]\[|\}\}")  # markup that was not understood
CODE = re.compile(r"[{}<>=;\\]")
SENTENCE = re.compile(r"[.!?][\"')\]]*(?=\s)|[。！？]")
# A card that nobody filled in, and what speaks to the reader of the card's own page.
NOTHING = re.compile(
    r"(?:please|note|warning|disclaimer|see|check out|join|click|download|using|to use|original model)\b"
    r"|.*(?:more information needed|automatically generated|has been pushed on the hub)",
    re.IGNORECASE,
)


def description(snapshot: Snapshot) -> str | None:
    """Return the first plain paragraph of the card; ``None`` where there is none."""
    text = without_comments(body(snapshot.texts.get(FILE, ""))[:READ])
    text = BREAK.sub("\n\n", ANCHOR.sub(r"[\1]()", HIDDEN.sub("\n\n", text)))
    paragraphs = (block.text for block in islice(blocks(text), MOST_BLOCKS) if block.kind == "text")
    return next((found for one in paragraphs if (found := _paragraph(one)) is not None), None)


def _paragraph(text: str) -> str | None:
    """Return the paragraph as a description; ``None`` for one that is none."""
    text = html.unescape(text[:LONGEST])
    unlinked, linked = _unlinked(text)
    plain = _readable(unlinked)
    if linked > LINKED * len(plain) or UNREAD.search(plain) or NOTHING.match(plain):
        return None
    plain = _whole(plain)
    return plain if _describes(plain) else None


def _unlinked(text: str) -> tuple[str, int]:
    """Return the text without images, links and addresses, and how many characters these had to read."""
    linked = 0

    def words(found: re.Match[str]) -> str:
        nonlocal linked
        linked += len(found[1].strip())
        return found[1]

    for _ in range(3):  # an image in a link, a link in brackets
        text = LINK.sub(words, IMAGE.sub("", text))
    shorter = ADDRESS.sub("", text)
    return shorter, linked + len(text) - len(shorter)


def _readable(text: str) -> str:
    """Return one line of visible characters, without emphasis and decoration around it."""
    text = SHORTCODE.sub("", EMPHASIS.sub("", "".join(_visible(text))))
    text = re.sub(r"\(\s*\)|\[\s*\]", "", " ".join(text.split()))
    text = re.sub(r"\s+([,.;:!?)\]])", r"\1", text)
    first = next((i for i, c in enumerate(text) if c.isalnum() or c in "\"'(“‘「『¿¡"), len(text))
    return text[first:].rstrip(" -–—|#·•>*=").strip()


def _visible(text: str) -> Iterator[str]:
    """Yield the characters without control, format and bidirectional ones, and without piles of marks."""
    marks = 0
    for one in text:
        category = unicodedata.category(one)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if category in ("Zs", "Zl", "Zp") or one in "\t\r\n":
            yield " "
        elif one in "\u200c\u200d" or (category[0] != "C" and marks <= MARKS):
            yield one


def _whole(text: str) -> str:
    """Return at most ``MOST`` characters, whole sentences where one ends; a text before a list is none."""
    ends = [found.end() for found in SENTENCE.finditer(f"{text} ") if found.end() <= MOST]
    if len(text) <= MOST and not text.endswith((":", "：")):
        return text
    if ends and ends[-1] >= LEAST:
        return text[: ends[-1]].strip()
    if len(text) <= MOST:
        return ""
    head, _, _ = text[: MOST - 1].rpartition(" ")
    return f"{(head or text[: MOST - 1]).rstrip(' ,;:-–—')}…"


def _describes(text: str) -> bool:
    """Return whether a text is long enough, and made of words."""
    letters = sum(one.isalpha() or unicodedata.category(one)[0] == "M" for one in text)
    if letters < LETTERS * (len(text) - text.count(" ")) or len(CODE.findall(text)) > SIGNS * len(text):
        return False
    wide = sum(unicodedata.east_asian_width(one) in "WF" for one in text)
    if wide > len(text) / 3:
        return wide >= LEAST / 2
    return len(text) >= LEAST and len(text.split()) >= FEWEST
