"""The description of a model: the first plain paragraph of its card, as short text without any markup.

A card is untrusted text, so the work on it is bounded, and the sandbox runs this reader. A paragraph that
is made of links, badges, labels or code describes nothing, and neither does a notice to the reader.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator

from importer.hub.snapshot import Snapshot
from importer.signals.card import FILE, LONGEST, blocks, body, without_comments

READ = 64 * 1024  # characters of a card that are read
MOST_LINES = 4000  # of these
MOST_BLOCKS = 400  # that are looked at
MOST = 500  # characters of a description
LEAST = 40  # characters of one, and of letters in a script without spaces
FEWEST = 6  # words of one
LINKED = 0.5  # share of a paragraph that links may have
LETTERS = 0.6  # share of a paragraph that are letters
SIGNS = 0.03  # share that signs of code may have
MARKS = 4  # marks on one letter; more hide the lines around it
TAG_AT_MOST = 4000  # characters of a tag

# Elements whose text belongs to no paragraph.
HIDDEN = frozenset({
    "button", "code", "details", "head", "iframe", "math", "noscript", "object", "pre", "script", "select",
    "style", "svg", "table", "template", "textarea", "title", "video",
})  # fmt: skip
BREAKS = frozenset({
    "article", "blockquote", "br", "center", "dd", "div", "dl", "dt", "figcaption", "figure", "footer",
    "header", "hr", "main", "ol", "p", "section", "span", "summary", "td", "th", "tr", "ul",
})  # fmt: skip
INLINE = frozenset({"br", "span"})
OPENED = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]{0,30})")
UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
DIVIDER = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")

# Links are taken away in this order: an image may be the text of a link.
IMAGE = re.compile(r"!\[[^\[\]]{0,500}\](?:\([^()\s]{0,1000}(?:\s[^()]{0,300})?\)|\[[^\[\]]{0,200}\])")
LINK = re.compile(
    r"\[([^\[\]]{0,500})\](?:\([^()]{0,1000}(?:\([^()]{0,200}\)[^()]{0,200})?\)|\[[^\[\]]{0,200}\])"
)
ADDRESS = re.compile(r"<?\b(?:https?://|www\.|mailto:)[^\s<>]{1,2000}>?", re.IGNORECASE)
EMPHASIS = re.compile(r"(?<![\w/])_{1,3}(?=\S)|(?<=\S)_{1,3}(?![\w/])|~~")
SHORTCODE = re.compile(r"(?<!\S):[a-z0-9_+-]{2,40}:(?!\S)")
UNREAD = re.compile(r"<[A-Za-z/!?]|\]\(|!\[|\]\[")  # markup that was not understood
CODE = re.compile(r"[{}<>=;\\]")
ITS_LABEL = re.compile(
    r"(?:model )?(?:description|overview|summary|about|introduction|abstract)\s*:\s*", re.IGNORECASE
)
LABEL = re.compile(r"[^\s:.!?]{1,30}(?: [^\s:.!?]{1,30}){0,3} ?:\s")  # ``Original model: …``
SENTENCE = re.compile(r"[.!?][\"')\]]*(?=\s)|[。！？]")
TEMPLATE_TEXT = re.compile(
    r"more information needed|automatically generated|generated automatically|model card for\b"
    r"|has been pushed on the hub|\{\{|insert .{0,30} here|lorem ipsum",
    re.IGNORECASE,
)
NOTICE = re.compile(
    r"(?:please|note|nb|warning|important|attention|disclaimer|caution|update[ds]?|news|tip|see|check out|"
    r"join|click|download|visit|try|read|follow|sponsor|support|thanks?|thank you|want|run|install|use|using|"
    r"contact|"
    r"this repo(?:sitory)? (?:requires|is gated)|by (?:using|downloading|accessing|clicking)|access to|"
    r"to (?:use|run|access|download|get|load|install|try|learn|reproduce)|you (?:can|need|must|should)|"
    r"if you|for more|we (?:recommend|suggest|thank)|license[ds]?|copyright|citation|cite|table of contents|"
    r"click here|coming soon|quantized by|made with|built with|powered by|original model|original card)\b",
    re.IGNORECASE,
)
ASIDE = re.compile(
    r"\b(?:citations?|cite|licen[cs]e|disclaimers?|acknowledge?ments?|contact|usage|how to|quick ?start|"
    r"install\w*|requirements?|training|hyper-?parameters?|evaluation|benchmarks?|results?|performance|"
    r"limitations?|bias\w*|risks?|ethic\w*|prompt|template|examples?|download\w*|files?|news|updates?|"
    r"change ?log|contents|references|contribut\w*|support|faq|notes?|warning|deploy\w*|inference|tutorial|"
    r"community|links|discord)\b",
    re.IGNORECASE,
)


def description(snapshot: Snapshot) -> str | None:
    """Return the first paragraph of the card that describes the model; ``None`` where there is none.

    A paragraph under a heading of another subject (usage, licence, results …) counts only without a better
    one.
    """
    aside: str | None = None
    text = _lines(_without_html(without_comments(body(snapshot.texts.get(FILE, ""))[:READ])))
    for number, block in enumerate(blocks(text)):
        if number >= MOST_BLOCKS:
            break
        if block.kind != "text":
            continue
        found = _paragraph(block.text)
        if found is None:
            continue
        if not any(ASIDE.search(heading[:200]) for heading in block.headings):
            return found
        aside = aside or found
    return aside


def _without_html(text: str) -> str:
    """Return Markdown in place of HTML: blocks are paragraphs, anchors links; some elements are hidden."""
    parts: list[str] = []
    at = 0
    while (opened := OPENED.search(text, at)) is not None:
        name, closes = opened[2].lower(), bool(opened[1])
        end = text.find(">", opened.end(), opened.end() + TAG_AT_MOST)
        if end < 0:
            parts.append(text[at : opened.end()])
            at = opened.end()
            continue
        parts.append(text[at : opened.start()])
        at = end + 1
        if name in HIDDEN and not closes and text[end - 1] != "/":
            at = _closed(text, name, at)
        parts.append(_written(name, closes=closes))
    return "".join((*parts, text[at:]))


def _closed(text: str, name: str, at: int) -> int:
    """Return where an element ends; without an end it takes the rest."""
    closed = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(text, at)
    return len(text) if closed is None else closed.end()


def _written(name: str, *, closes: bool) -> str:
    if name == "a":
        return "]()" if closes else "["
    if re.fullmatch("h[1-6]", name):
        return "\n\n" if closes else "\n\n# "
    if name == "li":
        return "\n" if closes else "\n- "
    if name in HIDDEN or (name in BREAKS and name not in INLINE):
        return "\n\n"
    return "\n" if name == "br" else ""


def _lines(text: str) -> str:
    """Return the lines with underlined headings as such; rules and quotes are left out."""
    lines: list[str] = []
    for line in text.splitlines()[:MOST_LINES]:
        if UNDERLINE.fullmatch(line) and len(lines) > 1 and lines[-1].strip() and not lines[-2].strip():
            lines[-1] = f"# {lines[-1].strip()}"
        elif UNDERLINE.fullmatch(line) and len(lines) == 1 and lines[0].strip():
            lines[0] = f"# {lines[0].strip()}"
        elif DIVIDER.fullmatch(line) or UNDERLINE.fullmatch(line) or line.lstrip().startswith(">"):
            lines.append("")
        else:
            lines.append(line)
    return "\n".join(lines)


def _paragraph(text: str) -> str | None:
    """Return the paragraph as a description; ``None`` for one that is none."""
    text = html.unescape(text[:LONGEST])
    unlinked, linked = _unlinked(text)
    plain = _without_label(_readable(unlinked))
    if not plain or linked > LINKED * len(plain) or UNREAD.search(plain) or TEMPLATE_TEXT.search(unlinked):
        return None
    if NOTICE.match(plain) or LABEL.match(plain) or plain.count(" | ") > 1 or plain.count("·") > 2:
        return None
    plain = _whole(plain)
    return plain if _describes(plain) else None


def _without_label(text: str) -> str:
    """Return the text without a label such as ``Description:`` in front."""
    label = ITS_LABEL.match(text)
    return text if label is None else text[label.end() :]


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
