"""The words of a vocabulary that the merges of its tokenizer do not yield."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from importer.engines.tokenizer import LARGEST, TOKENIZER
from importer.frozen import frozen
from importer.hub.folders import read_object
from importer.hub.snapshot import listed, mapping, text, whole

SAMPLE = 2000  # words
LONGEST = 24  # letters of a word
BYTE = re.compile(r"<0x[0-9A-F]{2}>")
# Variants of the algorithm that look words up first, or mark their edges.
VARIANTS = ("ignore_merges", "continuing_subword_prefix", "end_of_word_suffix")
MOST_UNMADE = 0.05  # of the words: whole tokenizers lose none, sorted merges 14 to 85 %
ENOUGH = 20  # words; fewer have no verdict
Merges = Mapping[tuple[str, str], int]


@frozen
class MergedWords:
    """Words of a vocabulary, and how many of them the merges do not yield.

    ``unmade``     the number of these words, of ``sampled``; ``example`` is one of them.
    ``exchanged``  two words with each other's number, in a vocabulary whose numbers follow the merges.
    """

    sampled: int
    unmade: int
    example: str = ""
    exchanged: tuple[str, ...] = ()

    @property
    def other_order(self) -> bool:
        """Return whether the merges are not those of the vocabulary's training."""
        return self.sampled >= ENOUGH and self.unmade > MOST_UNMADE * self.sampled


def of_folder(folder: Path) -> MergedWords | None:
    """Return the words of a folder's tokenizer; ``None`` for another algorithm or a broken file."""
    data = read_object(folder, TOKENIZER, LARGEST)
    return None if data is None else of_tokenizer(data)


def of_tokenizer(data: Mapping[str, object]) -> MergedWords | None:
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
    return MergedWords(len(some), len(unmade), unmade[0] if unmade else "", exchanged(vocabulary, merges))


def exchanged(vocabulary: Mapping[str, object], merges: Merges) -> tuple[str, ...]:
    """Return the first two words that have each other's number; none where numbers follow no order.

    A training numbers words as it merges them. Where each word that is out of that order stands in the place
    of one other, and that one in its own, their numbers were exchanged. Signs and spaces are added by hand.
    """
    known = {word: whole(number) for word, number in vocabulary.items()}
    made = dict.fromkeys(one + other for one, other in sorted(merges, key=lambda pair: merges[pair]))
    words = [word for word in made if known.get(word) is not None]
    ordered = sorted(words, key=lambda word: known[word] or 0)
    moved = {
        word: there for word, there in zip(words, ordered, strict=True) if word != there and there.isalpha()
    }
    pairs = [(word, there) for word, there in moved.items() if moved.get(there) == word]
    whole_pairs = len(pairs) == len(moved) and len(words) >= ENOUGH and len(pairs) <= len(words) / 2
    return pairs[0] if pairs and whole_pairs else ()


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
