"""The log of an engine: where it is kept, its end, and what its end means."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from importer.engines.base import Death
from importer.engines.surroundings import SIGNALS, SURROUNDINGS
from importer.errors import DocumentError

KEPT = 20  # logs in the folder
TAIL = 64 * 1024  # bytes of a log that are searched


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
        return log.read().decode(errors="replace")


def explain(path: Path, deaths: Iterable[Death], code: int | None = None) -> str:
    """Why the engine ended: the first known reason that its log or exit status tells, else its last words."""
    text = tail(path)
    for death, found in _known(text, deaths, code):
        return death.says.format(*(g for g in found.groups() if g is not None))
    words = [line.strip() for line in text.splitlines() if line.strip() and "warnings.warn(" not in line]
    telling = [line for line in words if re.match(r"[\w.]*(Error|Exception|Interrupt)\b", line)]
    return (telling or words or ["its log is empty"])[-1]


def known(path: Path, deaths: Iterable[Death], code: int | None = None) -> Death | None:
    """The first known reason that a log or an exit status tells."""
    return next((death for death, _ in _known(tail(path), deaths, code)), None)


def _known(text: str, deaths: Iterable[Death], code: int | None) -> Iterator[tuple[Death, re.Match[str]]]:
    """The engine's own reasons first, then what any engine may die of, and last the signal that ended it."""
    told = [Death("", SIGNALS[code], "environment")] if code in SIGNALS else []
    every = (*deaths, *SURROUNDINGS, *told)
    found = ((death, re.search(death.pattern, text, re.MULTILINE)) for death in every)
    return ((death, match) for death, match in found if match is not None)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DocumentError("cannot-write", path=folder, problem=error.strerror) from None
