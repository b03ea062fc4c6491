"""``options``: LocalAI's typed ``key:value`` strings, read and written without loss."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

KEY = "options"  # where they stand in a document
NONE = {"", "none", "null"}  # what a person writes for a parser that there is to be none of
WORDS: Mapping[str, bool] = {"true": True, "false": False}
WHOLE = re.compile(r"[+-]?[0-9]{1,300}")
NUMBER = re.compile(r"[+-]?([0-9]{1,300}(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]{1,2})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Option:
    """One entry; ``text`` is written back as it stands, ``key`` and ``value`` are what it means.

    ``value`` is ``None`` for a bare word and may hold colons or be empty. An entry that begins with ``--``
    is a flag of the engine's, whose value may also stand after ``=``, as LocalAI's vLLM backend reads it.
    """

    text: str
    key: str
    value: str | None

    @property
    def typed(self) -> bool | int | float | str:
        """The value with its type inferred; a bare word is true."""
        if self.value is None:
            return True
        word = WORDS.get(self.value.lower())
        if word is not None:
            return word
        if WHOLE.fullmatch(self.value):
            return int(self.value)
        return float(self.value) if NUMBER.fullmatch(self.value) else self.value


def parse(text: str) -> Option:
    """Read one entry; white space around key and value means nothing."""
    separator = re.search("[:=]" if text.lstrip().startswith("--") else ":", text)
    if separator is None:
        return Option(text, text.strip(), None)
    return Option(text, text[: separator.start()].strip(), text[separator.end() :].strip())


def of(document: Mapping[str, Any]) -> tuple[Option, ...]:
    """Every entry of a document in its order, repeated keys included."""
    entries = document.get(KEY)
    return tuple(parse(str(e)) for e in entries) if isinstance(entries, list | tuple) else ()


def grouped(entries: Iterable[Option]) -> dict[str, tuple[Option, ...]]:
    """Key to its entries, both in their order."""
    found: dict[str, list[Option]] = {}
    for option in entries:
        found.setdefault(option.key, []).append(option)
    return {key: tuple(options) for key, options in found.items()}


def parser(document: Mapping[str, Any], key: str) -> str | None:
    """The parser named under ``key``: the last entry counts, and ``none`` or nothing is none."""
    named = [o.value or "" for o in of(document) if o.key == key]
    return named[-1] if named and named[-1].lower() not in NONE else None


def write(key: str, value: object) -> str:
    """An entry that says ``value``; ``None`` makes a bare word."""
    if value is None:
        return key
    return f"{key}:{str(value).lower() if isinstance(value, bool) else value}"
