"""The tokenizer beside the weights: run in an engine's environment, its numbers and its merges checked."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

from importer import launcher
from importer.chat_template import find
from importer.errors import RepositoryError
from importer.frozen import frozen
from importer.hub import local, tensor_headers
from importer.hub.content import weight_files
from importer.hub.folders import Folder, read_object
from importer.hub.snapshot import listed, mapping, text, whole
from importer.launcher import Purpose, isolated
from importer.memory.weights import embedding_rows
from importer.signals import token_numbers
from importer.signals.token_numbers import BeyondToken

SCRIPT = Path(__file__).with_name("parser_worker") / "tokens.py"
LARGEST = 64 * 2**20  # bytes of a tokenizer file that are read
SECONDS = 60.0  # it takes 0.2 s, on vocabularies of a quarter of a million 1 s


@cache
def byte_of_character() -> dict[str, int]:
    """Return the byte of each character in byte-level vocabularies; unprintable bytes stand past 255
    (GPT-2).
    """
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in shown]
    return {chr(b): b for b in shown} | {chr(256 + n): b for n, b in enumerate(moved)}


@frozen
class Redrawn:
    """Tokens that a model has drawn, beside those that the tokenizer makes of their text.

    ``cut``      of ``tokens`` are several ones in any text, or have none; ``joined`` end where none does, or
                 are several beside their neighbours.
    ``example``  the text of the first of these.
    """

    tokens: int
    cut: int
    joined: int
    example: str = ""


@frozen
class Tokenized:
    """Texts after tokenization and back, and the use of the vocabulary.

    ``back``     each text after tokens and back.
    ``sampled``  words of the vocabulary; ``reached`` of them are one token in a text.
    ``exact``    tokens are bytes: every space comes back, and no other.
    ``ids``      the numbers of each text's tokens; none is added before or behind them.
    ``words``    numbers and texts of words that are one token, some with letters beyond ASCII.
    ``steady``   each text has the same tokens each time.
    ``split``    added tokens that stand in a text, and are not one token there.
    ``drawn``    each list of drawn tokens beside the tokens of its text.
    ``behind``   what the tokenizer adds behind each text.
    """

    back: tuple[str, ...]
    sampled: int
    reached: int
    exact: bool = False
    ids: tuple[tuple[int, ...], ...] = ()
    words: tuple[tuple[int, str], ...] = ()
    steady: bool = True
    split: tuple[str, ...] = ()
    drawn: tuple[Redrawn, ...] = ()
    behind: tuple[str, ...] = ()


Texts = tuple[str, ...]
Drawn = tuple[tuple[int, ...], ...]


class Ask(Protocol):
    """A tokenizer that is at hand."""

    def __call__(self, texts: Texts, /, drawn: Drawn = ()) -> Tokenized | None:
        """Return the tokenization of texts and of the texts of drawn tokens; ``None`` without a file or a
        library that reads it.
        """


def asker(python: Path, weights: Path) -> Ask:
    """Return the tokenizer beside the weights, run in an engine's environment; answers are cached."""

    @cache
    def ask(texts: Texts, /, drawn: Drawn = ()) -> Tokenized | None:
        return _ask(python, weights, texts, drawn)

    return ask


def _ask(python: Path, weights: Path, texts: Texts, drawn: Drawn) -> Tokenized | None:
    try:
        with Folder(weights) as folder:
            tokenizer = folder.read("tokenizer.json", LARGEST).decode()
        asked = json.dumps({"tokenizer": tokenizer, "texts": texts, "drawn": drawn})
        argv = isolated(str(SCRIPT), python=python)
        done = launcher.run(argv, Purpose.TOKENIZER, seconds=SECONDS, text=asked)
        answer = json.loads(done.output)
        ids, words = tuple(map(tuple, answer["ids"])), tuple(map(tuple, answer["words"]))
        back, sampled, reached = tuple(answer["back"]), answer["sampled"], answer["reached"]
        steady, split = answer["steady"], tuple(answer["split"])
        redrawn = tuple(Redrawn(**each) for each in answer["drawn"])
        behind = tuple(answer["behind"])
        return Tokenized(back, sampled, reached, answer["exact"], ids, words, steady, split, redrawn, behind)
    except (OSError, ValueError, KeyError, TypeError):
        return None


TOKENIZER = "tokenizer.json"


@frozen
class TokenTable:
    """The embedding's rows, whether the weights show them (else config.json), and the tokens beyond."""

    rows: int
    exact: bool
    highest: int
    beyond: tuple[BeyondToken, ...]


def of_folder(folder: Path) -> TokenTable | None:
    """Return the table of a folder; ``None`` where tokens or rows are unknown, or no header can be read."""
    try:
        snapshot = local.resolve(str(folder), folder)
        tensors = tensor_headers.tensors(snapshot, [file.path for file in weight_files(snapshot.files)])
        template = find.find(snapshot)
        numbers = token_numbers.declared(snapshot)
    except RepositoryError:
        return None
    tokenizer = read_object(folder, TOKENIZER, LARGEST) or {}
    words = dict(_vocabulary(tokenizer))
    numbers = {**words, **numbers, **dict(_added(tokenizer))}
    held = embedding_rows(tensors)
    rows = held if held is not None else token_numbers.size(snapshot)
    if not numbers or rows is None:
        return None
    written = "" if template is None else template.text
    found = token_numbers.beyond(snapshot, numbers, rows, written)
    beyond = tuple(BeyondToken(t.number, t.content, t.needed or t.number in words) for t in found)
    return TokenTable(rows, held is not None, max(numbers), beyond)


def _vocabulary(tokenizer: dict[str, object]) -> Iterator[tuple[int, str]]:
    """Yield the words of the vocabulary that are no added tokens."""
    added = {number for number, _ in _added(tokenizer)}
    words = mapping(tokenizer.get("model")).get("vocab")
    pairs = words.items() if isinstance(words, dict) else ()
    for word, number in pairs:
        if isinstance(number, int) and number not in added:
            yield number, word


def _added(tokenizer: dict[str, object]) -> Iterator[tuple[int, str]]:
    listed = tokenizer.get("added_tokens")
    for token in listed if isinstance(listed, list) else ():
        number = whole(mapping(token).get("id"))
        if number is not None:
            yield number, text(mapping(token).get("content")) or ""


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


def merges_of_folder(folder: Path) -> MergedWords | None:
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
