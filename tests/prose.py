"""Read the prose of a Markdown page: its sentences, without code, tables and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# A block of prose ends at an empty line, and a list item begins a new one.
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
CODE = re.compile(r"`[^`]*`")
# A full stop ends a sentence before a capital, a digit, a bracket, or a name that has no capital.
NAMES = "CODE|importer|vLLM|vllm|mlx|gpt|compressed"
END = re.compile(rf"[.!?][)\"'*]*\s+(?=[A-Z0-9\"'(*]|(?:{NAMES})\b)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a page, on one line, with the number of the line where its paragraph begins."""

    line: int
    text: str

    @property
    def words(self) -> int:
        """How many words it has; a piece of code is one."""
        return len(re.findall(r"[^\W_][^\s/]*", self.text))


def blank(match: re.Match[str]) -> str:
    """Keep the lines of what is removed, so that later lines keep their numbers."""
    return "\n" * match.group().count("\n")


def paragraphs(page: str) -> Iterator[tuple[int, str]]:
    """Each paragraph and list item with its first line's number; headings, tables and code are left out."""
    lines = COMMENT.sub(blank, FENCE.sub(blank, page)).splitlines()
    gathered: list[str] = []
    start, in_list = 0, False
    for number, line in enumerate([*lines, ""], 1):
        item = ITEM.match(line)
        code = line.startswith("    ") and not in_list
        outside = not line.strip() or line.lstrip().startswith(("#", "|")) or code
        if (outside or item) and gathered:
            yield start, " ".join(gathered)
            gathered = []
        in_list = bool(item) or (in_list and (not line.strip() or line.startswith(" ")))
        if outside:
            continue
        start = start if gathered else number
        gathered.append(ITEM.sub("", line).strip())


def sentences(page: str) -> Iterator[Sentence]:
    """Every sentence of a page's prose, links by their text, code as ``CODE``."""
    for line, text in paragraphs(page):
        plain = CODE.sub("CODE", LINK.sub(r"\1", text)).replace("**", "")
        for sentence in END.split(plain + " "):
            if sentence.strip():
                yield Sentence(line, sentence.strip())
