"""Whether the merges of a tokenizer.json still yield the words of its vocabulary.

Training appends a word to the vocabulary with the merge that makes it, so a whole one yields nearly all.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from importer.hub.folders import read_object
from importer.hub.snapshot import listed, mapping, text, whole

TOKENIZER = "tokenizer.json"
LARGEST = 64 * 2**20  # bytes of a tokenizer file that are read
SAMPLE = 2000  # words
LONGEST = 24  # letters of a word
BYTE = re.compile(r"<0x[0-9A-F]{2}>")
# Variants of the algorithm that look words up first, or mark their edges.
VARIANTS = ("ignore_merges", "continuing_subword_prefix", "end_of_word_suffix")
MOST_UNMADE = 0.05  # of the words: whole tokenizers lose none, docs/validation.md has the figures
ENOUGH = 20  # words; fewer have no verdict
Merges = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class MergedWords:
    """Words of a vocabulary, and how many of them the merges do not yield.

    ``unmade``     the number of these words, of ``sampled``; ``example`` is one of them.
    """

    sampled: int
    unmade: int
    example: str = ""

    @property
    def other_order(self) -> bool:
        """Return whether the merges are not those of the vocabulary's training."""
        return self.sampled >= ENOUGH and self.unmade > MOST_UNMADE * self.sampled


def of_folder(folder: Path) -> MergedWords | None:
    """Return the words of a folder's tokenizer; ``None`` for another algorithm or a broken file."""
    data = read_object(folder, TOKENIZER, LARGEST)
    return None if data is None else of_tokenizer(data)


def of_tokenizer(data: Mapping[str, Any]) -> MergedWords | None:
    """Return the words of a tokenizer; ``None`` where they are not made by plain merges."""
    model = mapping(data.get("model"))
    vocabulary, merges = mapping(model.get("vocab")), _merges(model.get("merges"))
    if model.get("type") != "BPE" or not merges or any(model.get(name) for name in VARIANTS):
        return None
    added = {whole(mapping(token).get("id")) for token in listed(data.get("added_tokens"))}
    words = [
        word
        for word, number in vocabulary.items()
        if 1 < len(word) <= LONGEST and whole(number) not in added and not BYTE.fullmatch(word)
    ]
    some = words[:: max(1, len(words) // SAMPLE)]
    unmade = [word for word in some if merged(word, merges) != [word]]
    return MergedWords(len(some), len(unmade), unmade[0] if unmade else "")


def merged(word: str, merges: Merges) -> list[str]:
    """Return the parts of a word after all merges: the earliest one first, each from the left."""
    parts = list(word)
    while len(parts) > 1:
        pairs = list(itertools.pairwise(parts))
        first = min(pairs, key=lambda pair: merges.get(pair, len(merges)))
        if first not in merges:
            break
        parts = _joined(parts, first)
    return parts


def _joined(parts: Sequence[str], pair: tuple[str, str]) -> list[str]:
    joined: list[str] = []
    place = 0
    while place < len(parts):
        fits = tuple(parts[place : place + 2]) == pair
        joined.append("".join(pair) if fits else parts[place])
        place += 2 if fits else 1
    return joined


def _merges(given: object) -> Merges:
    """Return the merges with their places; older files write a pair as one text."""
    pairs = (one.split(" ") if isinstance(one, str) else listed(one) for one in listed(given))
    return {
        (str(pair[0]), str(pair[1])): place
        for place, pair in enumerate(pairs)
        if len(pair) == 2 and all(text(part) is not None for part in pair)
    }
