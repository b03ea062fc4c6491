"""The log of an engine: its file, and the cause of the engine's end that it shows."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from importer.engines.deaths import Death, DeathCause, Died, causes
from importer.engines.lacking import AT_WORK, ENVIRONMENT_ERRORS, LIMITS, PYTHON_FAILS, of_signal
from importer.errors import DocumentError
from importer.reasons import Reason

MAX_LOGS = 20  # logs in the folder
TAIL = 64 * 1024  # bytes of a log that are searched
LONGEST = 2000  # characters of a line


def fresh(folder: Path, name: str) -> Path:
    """Return the path of a new log; the folder's oldest are removed, but none of a running engine."""
    _make(folder)
    old = sorted(folder.glob("*.log"), key=_written)
    for path in old[: max(0, len(old) - MAX_LOGS + 1)]:
        if not _in_use(path):
            path.unlink(missing_ok=True)
    stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns() % 10_000:04d}"
    return folder / f"{name}-{stamp}.log"


def _written(path: Path) -> float:
    """Return when a log was last written to; another process may remove it at any time."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _in_use(path: Path) -> bool:
    """Return whether a process holds the log: whoever opened it, or the engine that writes to it."""
    try:
        with path.open("rb") as log:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # it is gone
        return False
    return False


def opened(path: Path) -> BinaryIO:
    """Return the log, empty and open for writing; raises DocumentError("cannot-write").

    It is locked until each process that has it has closed it, so that nobody removes it meanwhile.
    """
    _make(path.parent)
    try:
        log = path.open("wb")
    except OSError as error:
        raise DocumentError("cannot-write", path=path, problem=error.strerror) from None
    with contextlib.suppress(OSError):  # some file systems have no locks
        fcntl.flock(log, fcntl.LOCK_SH)
    return log


def tail(path: Path) -> str:
    """Return the end of a log."""
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - TAIL))
        return bounded(log.read().decode(errors="replace"))


def bounded(text: str) -> str:
    """Return the text with its lines cut: some patterns take time by the square of a line."""
    return "\n".join(line[:LONGEST] for line in text.split("\n"))


def explain(
    path: Path, deaths: Iterable[Death], code: int | None = None, *, served: bool = False
) -> DeathCause:
    """Return why the engine ended: a limit by its exit status, else the first known cause in its log, else
    the signal that ended it, else its last error.

    The causes of the engine come before those of any engine. One that has ``served`` has read its files and
    options, so these did not end it: its log has errors of requests, too.
    """
    text, ended = tail(path), of_signal(code)
    if ended is not None and ended.reason.kind in LIMITS:
        return ended
    own = (death for death in deaths if not served or death.kind in AT_WORK)
    known = next(causes(text, (PYTHON_FAILS, *own, *ENVIRONMENT_ERRORS)), None)
    return known or ended or DeathCause(_last_words(text))


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
