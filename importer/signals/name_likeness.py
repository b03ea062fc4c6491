"""Parsers with the name of a model: of its type or its repository, of the same version or an earlier one.

Engines name parsers after models. No list is needed for that: ``qwen3`` is like
``Qwen3-8B``, ``deepseek_v31`` like ``DeepSeek-V3.1``, and ``glm45`` like the later ``GLM-4.6``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum

from importer.frozen import frozen

ENCODINGS = frozenset(("json", "xml", "pythonic", "parser"))  # words of a format and not of a model


WORD = re.compile(r"[a-z]+|[0-9]+(?:[.p][0-9]+)*")


SHORT = 4  # letters; a shorter word without a version is no name


SEPARATOR = re.compile(r"[^a-z0-9.]+")


def plain_name(name: str) -> str:
    """Return letters and digits of a name, for comparison."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


class Likeness(IntEnum):
    """How a parser's name is like a model's."""

    NONE = 0
    EARLIER = 1  # a parser of the same line, for an earlier version or without one
    MAJOR = 2  # the model's version refines the parser's
    SAME = 3


@frozen
class Liked:
    """A parser with its likeness; ``length`` is that of the common words, ``version`` the parser's."""

    parser: str
    likeness: Likeness
    length: int
    version: tuple[int, ...]


def closest(model: str, parsers: Mapping[str, str]) -> list[Liked]:
    """Return the parsers that are most like the model's name or type: all of the best likeness.

    ``parsers`` are names and their classes. A class with another name of more words, ``qwen3_coder`` beside
    ``qwen3_xml``, is for the models with these words: it stands back where the model lacks them.
    """
    found = [liked for name in parsers if (liked := likeness(model, name)) is not None]
    best = max((_turn(liked) for liked in found), default=None)
    first = [liked for liked in found if _turn(liked) == best]
    general = [liked for liked in first if not _for_others(model, liked.parser, parsers)]
    return general or first


def _for_others(model: str, parser: str, parsers: Mapping[str, str]) -> bool:
    """Return whether the class has a name that goes on behind this one's words, and is not like the model."""
    stem = _words(parser)
    names = (name for name, cls in parsers.items() if cls == parsers[parser])
    longer = (name for name in names if len(words := _words(name)) > len(stem) and words[: len(stem)] == stem)
    return any(likeness(model, name) is None for name in longer)


def _words(parser: str) -> list[str]:
    return [word for word in re.split(r"[_-]", parser.lower()) if word not in ENCODINGS]


def _turn(liked: Liked) -> tuple[int, bool, tuple[int, ...]]:
    return liked.length, liked.likeness is Likeness.SAME, liked.version


def likeness(model: str, parser: str) -> Liked | None:
    """Return the likeness of one parser; ``None`` for a name without the parser's words."""
    wanted = _joined(_parts(_words(parser)))
    versioned = any(not run.isalpha() for run, _ in wanted)
    if not wanted or not wanted[0][0].isalpha() or (len(wanted[0][0]) < SHORT and not versioned):
        return None
    words = [*_parts(SEPARATOR.split(model.lower().replace("_", "-")))]
    matches = (_match(words, at, wanted) for at in range(len(words)) if words[at][1])
    grade, version = max((m for m in matches if m is not None), default=(Likeness.NONE, ()))
    if grade is Likeness.NONE:
        return None
    return Liked(parser, grade, sum(len(w) for w, _ in wanted if w.isalpha()), version)


def _parts(words: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield runs of letters and numbers, each with whether it begins a word; not the v of a version."""
    for word in words:
        runs = WORD.findall(word)
        if runs[:1] == ["v"] and len(runs) > 1:
            runs = runs[1:]
        for at, run in enumerate(runs):
            yield run, at == 0


def _joined(runs: Iterable[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Return the runs with adjacent letters as one: ``deepseek_r1`` is ``deepseekr1`` as well."""
    joined: list[tuple[str, bool]] = []
    for run, begins in runs:
        if joined and run.isalpha() and joined[-1][0].isalpha():
            joined[-1] = joined[-1][0] + run, joined[-1][1]
        else:
            joined.append((run, begins))
    return joined


def _match(
    words: list[tuple[str, bool]], at: int, wanted: list[tuple[str, bool]]
) -> tuple[Likeness, tuple[int, ...]] | None:
    """Return likeness and version, where the words from ``at`` on are the parser's."""
    grade, letters = Likeness.SAME, ""
    version: tuple[int, ...] = ()
    for run, _ in wanted:
        if run.isalpha():
            letters = ""
            while letters != run:
                if (
                    at >= len(words)
                    or not words[at][0].isalpha()
                    or not run.startswith(letters + words[at][0])
                ):
                    return None
                letters += words[at][0]
                at += 1
            continue
        if at >= len(words) or words[at][0].isalpha():
            return None
        version = _version(run, words[at][0])
        grade = min(grade, _compared(version, _version(words[at][0], run)))
        at += 1
        if grade is Likeness.NONE:
            return None
    size = at + 1 < len(words) and not words[at + 1][1]  # letters behind the number: 36B
    if wanted[-1][0].isalpha() and at < len(words) and not words[at][0].isalpha() and not size:
        return min(grade, Likeness.EARLIER), version  # the model has a version, the parser none
    return grade, version


def _version(number: str, other: str) -> tuple[int, ...]:
    """Return the parts of a version; ``45`` beside ``4.6`` or ``5`` is 4.5."""
    parts = re.split(r"[.p]", number)
    if len(parts) == 1 and len(number) == 2 and (len(other) <= 2 or not other.isdigit()):
        parts = [*number]
    return tuple(int(part) for part in parts if part.isdigit())


def _compared(parser: tuple[int, ...], model: tuple[int, ...]) -> Likeness:
    if parser == model:
        return Likeness.SAME
    if model[: len(parser)] == parser:
        return Likeness.MAJOR
    return Likeness.EARLIER if parser < model else Likeness.NONE
