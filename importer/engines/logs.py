"""The log of an engine: where it is kept, its end, and what its end means."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from importer.engines.deaths import ENVIRONMENT, Death, DeathCause, Died, causes
from importer.errors import DocumentError
from importer.reasons import Reason


class Lacking(StrEnum):
    """What an engine lacks of its surroundings."""

    BIG_FILES = "big-files"
    DISK = "disk"
    FIT = "fit"
    HIDDEN_MODULE = "hidden-module"
    INSTRUCTION = "instruction"
    KILLED = "killed"
    LIBRARY = "library"
    LIBRARY_VERSION = "library-version"
    LOCALE = "locale"
    MEMORY = "memory"
    MODULE_IN_THE_WAY = "module-in-the-way"
    OPEN_FILES = "open-files"
    PERMISSION = "permission"
    PROCESSOR = "processor"
    WRITABLE_FOLDER = "writable-folder"


LACKING_MEMORY = (
    r"\bMemoryError\b|bad_alloc|(?:not|n't|to) allocate|start new thread|failed to map segment"
    r"|[Oo]ut ?[Oo]f ?[Mm]emory"
)
# A file under the name of one of Python's own modules, in a folder that is searched before Python's.
OWN = "|".join(sorted(sys.stdlib_module_names))
ELSEWHERE = r"(?!\S*/(?:site-packages|dist-packages|lib/python3)[^/]*/)"
IN_THE_WAY = (
    rf"cannot import name '[^'\n]+' from (?:partially initialized module )?'(?P<module>{OWN})' "
    rf"(?:\(most likely[^()\n]*\) )?\({ELSEWHERE}(?P<file>\S+/(?P=module)\.py)\)"
)
HIDDEN = (
    rf"AttributeError: (?:partially initialized )?module '(?P<module>{OWN})' "
    r"has no attribute '(?P<attribute>\w+)'"
)
# vLLM says at every start what a low limit might lead to, error and all.
ADVICE = r".*`OSError: \[Errno 24\][^`\n]*`"
# Looked for behind an engine's own deaths, which know more.
SURROUNDINGS = tuple(
    Death(pattern, kind, ENVIRONMENT)
    for pattern, kind in (
        (r"\[Errno (?:28|122)\]|No space left on device|Disk quota exceeded", Lacking.DISK),
        (rf"^(?!{ADVICE}).*(?:\[Errno 2[34]\]|Too many open files)", Lacking.OPEN_FILES),
        (r"\[Errno 30\]|Read-only file system", Lacking.WRITABLE_FOLDER),
        (r"PermissionError: .*?(?P<words>Permission denied: .*)", Lacking.PERMISSION),
        (r"(?P<library>[\w.+-]+\.(?:so[.\d]*|dylib)): cannot open shared object file", Lacking.LIBRARY),
        (r"Library not loaded: (?P<library>\S+)", Lacking.LIBRARY),
        (r"version `(?P<version>\w+_[\d.]+)' not found", Lacking.LIBRARY_VERSION),
        (HIDDEN, Lacking.HIDDEN_MODULE),
        (IN_THE_WAY, Lacking.MODULE_IN_THE_WAY),
        (
            r"(?P<words>cannot import name '[^'\n]+' from '[\w.]+'|undefined symbol: \S+)",
            Lacking.FIT,
        ),
        (LACKING_MEMORY, Lacking.MEMORY),
        (r"Illegal instruction", Lacking.INSTRUCTION),
        (r"'(?:ascii|latin-1)' codec can't (?:en|de)code", Lacking.LOCALE),
    )
)
# By exit status, where the log says nothing: 128 and the signal, as a shell and the guardian tell it.
SIGNALS = {128 + 4: Lacking.PROCESSOR, 128 + 9: Lacking.KILLED, 128 + 25: Lacking.BIG_FILES}


def lacking(text: str) -> Reason | None:
    """Return what the system's words in ``text`` show to be lacking."""
    return next((cause.reason for cause in causes(text, SURROUNDINGS)), None)


def of_signal(code: int | None) -> DeathCause | None:
    """Return what an exit status tells of the surroundings."""
    kind = SIGNALS.get(code) if code is not None else None
    return None if kind is None else DeathCause(Reason(kind), ENVIRONMENT)


KEPT = 20  # logs in the folder
TAIL = 64 * 1024  # bytes of a log that are searched
LONGEST = 2000  # characters of a line


def fresh(folder: Path, name: str) -> Path:
    """Return a new log's path; the oldest logs of the folder are removed."""
    _make(folder)
    old = sorted(folder.glob("*.log"), key=lambda p: p.stat().st_mtime)
    for path in old[: max(0, len(old) - KEPT + 1)]:
        path.unlink(missing_ok=True)
    stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns() % 10_000:04d}"
    return folder / f"{name}-{stamp}.log"


def opened(path: Path) -> BinaryIO:
    """Return the log, empty and ready to be written; raises DocumentError("cannot-write")."""
    _make(path.parent)
    try:
        return path.open("wb")
    except OSError as error:
        raise DocumentError("cannot-write", path=path, problem=error.strerror) from None


def tail(path: Path) -> str:
    """Return the end of a log."""
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - TAIL))
        return bounded(log.read().decode(errors="replace"))


def bounded(text: str) -> str:
    """Return the text with its lines cut: patterns that look for two words in one line take time by its
    square.
    """
    return "\n".join(line[:LONGEST] for line in text.split("\n"))


def explain(path: Path, deaths: Iterable[Death], code: int | None = None) -> DeathCause:
    """Return why the engine ended: the first known death of its log, else its exit status, else its last
    words.

    The engine's own deaths are looked for first, then what any engine may lack.
    """
    text = tail(path)
    known = next(causes(text, (*deaths, *SURROUNDINGS)), None) or of_signal(code)
    return known or DeathCause(_last_words(text))


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
