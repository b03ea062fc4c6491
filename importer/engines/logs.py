"""The log of an engine: where it is kept, its end, and what its end means."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from importer.engines.deaths import Cause, Death, Died, causes
from importer.engines.surroundings import SURROUNDINGS, of_signal
from importer.errors import DocumentError
from importer.reasons import Reason

KEPT = 20  # logs in the folder
TAIL = 64 * 1024  # bytes of a log that are searched
LONGEST = 2000  # characters of a line


def fresh(folder: Path, name: str) -> Path:
    """A new log's path; the oldest logs of the folder are removed."""
    _make(folder)
    old = sorted(folder.glob("*.log"), key=lambda p: p.stat().st_mtime)
    for path in old[: max(0, len(old) - KEPT + 1)]:
        path.unlink(missing_ok=True)
    stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns() % 10_000:04d}"
    return folder / f"{name}-{stamp}.log"


def opened(path: Path) -> BinaryIO:
    """The log, empty and ready to be written; raises DocumentError("cannot-write")."""
    _make(path.parent)
    try:
        return path.open("wb")
    except OSError as error:
        raise DocumentError("cannot-write", path=path, problem=error.strerror) from None


def tail(path: Path) -> str:
    """The end of a log."""
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - TAIL))
        return bounded(log.read().decode(errors="replace"))


def bounded(text: str) -> str:
    """The text with its lines cut: patterns that look for two words in one line take time by its square."""
    return "\n".join(line[:LONGEST] for line in text.split("\n"))


def explain(path: Path, deaths: Iterable[Death], code: int | None = None) -> Cause:
    """Why the engine ended: the first known death of its log, else its exit status, else its last words.

    The engine's own deaths are looked for first, then what any engine may lack.
    """
    text = tail(path)
    known = next(causes(text, (*deaths, *SURROUNDINGS)), None) or of_signal(code)
    return known or Cause(_last_words(text))


def _last_words(text: str) -> Reason:
    words = [line.strip() for line in text.splitlines() if line.strip() and "warnings.warn(" not in line]
    telling = [line for line in words if re.match(r"[\w.]*(Error|Exception|Interrupt)\b", line)]
    last = (telling or words or [""])[-1]
    return Reason(Died.LAST_WORDS, words=last) if last else Reason(Died.SILENT)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DocumentError("cannot-write", path=folder, problem=error.strerror) from None
