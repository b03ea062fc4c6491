"""The tokens of a model's folder without a row in its embedding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from importer.chat_template import find
from importer.errors import RepositoryError
from importer.hub import local, tensor_headers
from importer.hub.content import weight_files
from importer.hub.folders import read_object
from importer.hub.snapshot import mapping, text, whole
from importer.memory import embedding
from importer.signals import token_numbers
from importer.signals.token_numbers import BeyondToken

TOKENIZER = "tokenizer.json"
LARGEST = 64 * 2**20  # bytes of a tokenizer file that are read


@dataclass(frozen=True, slots=True)
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
    held = embedding.rows(tensors)
    rows = held if held is not None else token_numbers.size(snapshot)
    if not numbers or rows is None:
        return None
    written = "" if template is None else template.text
    found = token_numbers.beyond(snapshot, numbers, rows, written)
    beyond = tuple(BeyondToken(t.number, t.content, t.needed or t.number in words) for t in found)
    return TokenTable(rows, held is not None, max(numbers), beyond)


def _vocabulary(tokenizer: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the words of the vocabulary that are no added tokens."""
    added = {number for number, _ in _added(tokenizer)}
    words = mapping(tokenizer.get("model")).get("vocab")
    pairs = words.items() if isinstance(words, dict) else ()
    for word, number in pairs:
        if isinstance(number, int) and number not in added:
            yield number, word


def _added(tokenizer: dict[str, Any]) -> Iterator[tuple[int, str]]:
    listed = tokenizer.get("added_tokens")
    for token in listed if isinstance(listed, list) else ():
        number = whole(mapping(token).get("id"))
        if number is not None:
            yield number, text(mapping(token).get("content")) or ""
