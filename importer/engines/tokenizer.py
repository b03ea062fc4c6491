"""What the tokenizer beside the weights makes of texts, asked of its library in an engine's environment."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from importer import launcher
from importer.launcher import Purpose, isolated

SCRIPT = Path(__file__).with_name("parser_worker") / "tokens.py"
SECONDS = 60.0  # it takes 0.2 s, on vocabularies of a quarter of a million 1 s


@dataclass(frozen=True, slots=True)
class Tokenized:
    """``back`` holds each text after tokens and back; of ``sampled`` words a text can yield ``reached``.

    ``exact`` says that tokens are bytes: every space that was there has to come back, and no other.
    """

    back: tuple[str, ...]
    sampled: int
    reached: int
    exact: bool = False


Ask = Callable[[tuple[str, ...]], Tokenized | None]


def asker(python: Path, weights: Path) -> Ask:
    """Asks once for the same texts; it gives ``None`` where there is no such file, or nothing reads it."""
    return cache(lambda texts: _ask(python, weights / "tokenizer.json", texts))


def _ask(python: Path, path: Path, texts: Sequence[str]) -> Tokenized | None:
    if not path.is_file():
        return None
    argv = isolated(str(SCRIPT), str(path.absolute()), python=python)
    try:
        done = launcher.run(argv, Purpose.TOKENIZER, seconds=SECONDS, text=json.dumps(texts))
        told = json.loads(done.output)
        return Tokenized(tuple(told["back"]), told["sampled"], told["reached"], told["exact"])
    except (OSError, ValueError, KeyError):
        return None
