"""The tokenizer beside the weights: run in an engine's environment, and its numbers beside the embedding."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
from importer.hub.snapshot import mapping, text, whole
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
    return TokenTable(rows, held is not None, beyond)


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
