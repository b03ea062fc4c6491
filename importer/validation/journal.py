"""What an engine says in its log while it is asked: errors, tracebacks, warnings, and why it ended."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from importer.engines import logs
from importer.engines import logs as surroundings
from importer.engines.deaths import Attribution, Death
from importer.reasons import Reason


class JournalReason(StrEnum):
    """What a log does not tell."""

    LOG_GONE = "log-gone"


KEPT = 4000  # characters of an excerpt
LOOK = 0.05  # seconds between two looks at an engine that may have ended
READ = 256 * 1024  # bytes that are looked at
SECRET = 8  # characters of the shortest key that is one
HEAD = 1024 * 1024  # bytes from a log's beginning: the engine's settings are said before the first request
# As Python ends a traceback, behind whatever a logger puts in front: ``ValueError: words``, ``a.b.KeyError``.
_RAISED = re.compile(
    r"^(?:.*[\s)\]])?(?<!raise )((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt)(?:: .*)?)$"
)
_LEVEL = re.compile(r"\b(?:WARNING|ERROR|CRITICAL|FATAL)\b|\b(?:Error|Warning):")
_SECRET = re.compile(r"\b(?:hf_|sk-)[A-Za-z0-9_-]{8,}|(?<=Bearer )\S+|(?<=://)[^\s/@]+@")


@dataclass(frozen=True, slots=True)
class Ended:
    """How an engine ended, and the part at fault."""

    says: Reason
    part: Attribution


@dataclass(frozen=True, slots=True)
class Journal:
    """A log from ``start`` (bytes) on.

    ``alive`` says whether the engine runs, ``deaths`` what it dies of, ``code`` its exit status.
    """

    path: Path
    alive: Callable[[], bool]
    deaths: Sequence[Death] = ()
    start: int = 0
    code: Callable[[], int | None] = lambda: None

    def from_here(self) -> Journal:
        """Return the same log from its present end on."""
        try:
            return replace(self, start=self.path.stat().st_size)
        except OSError:
            return self

    def opening(self) -> str:
        """Return what was said first."""
        try:
            with self.path.open("rb") as log:
                return log.read(HEAD).decode(errors="replace")
        except OSError:
            return ""

    def complaints(self) -> str:
        """Tracebacks, errors and warnings since the start, the latest if they are many; no secrets."""
        text = hidden("\n".join(complaining(self._read())))
        return text if len(text) <= KEPT else "…" + text[-KEPT:]

    def raised(self) -> str | None:
        """Return the last exception since the start, in one line."""
        found = [m.group(1) for line in self._read() if (m := _RAISED.match(line))]
        return hidden(found[-1].strip())[:300] if found else None

    def surroundings(self) -> Reason | None:
        """Return what since the start was in the engine's way that is not its own doing."""
        lacking = surroundings.lacking("\n".join(complaining(self._read())))
        return None if lacking is None else unsecret(lacking)

    def death(self, wait: float = 0.0) -> Ended | None:
        """Return why the engine ended; ``None`` while it runs, as seen for ``wait`` seconds."""
        deadline = time.monotonic() + wait
        while self.alive():
            if time.monotonic() >= deadline:
                return None
            time.sleep(LOOK)
        try:
            code = self.code()
            cause = logs.explain(self.path, self.deaths, code)
            return Ended(unsecret(cause.reason), cause.blames)
        except OSError:
            return Ended(Reason(JournalReason.LOG_GONE), "engine")

    def _read(self) -> list[str]:
        try:
            with self.path.open("rb") as log:
                log.seek(max(self.start, self.path.stat().st_size - READ))
                return log.read().decode(errors="replace").splitlines()
        except OSError:
            return []


def complaining(lines: Sequence[str]) -> list[str]:
    """Return lines of warnings and errors, and tracebacks whole."""
    kept: list[str] = []
    inside = False
    for line in lines:
        starts = "Traceback (most recent call last)" in line
        ends = inside and _RAISED.match(line) is not None
        if starts or inside or _LEVEL.search(line):
            kept.append(line.rstrip()[:500])
        inside = (inside or starts) and not ends
    return kept


def without(data: Any, secret: str) -> Any:
    """``data`` with the secret cut out of every text: a server may send back what it was sent.

    One that is too short to be secret stays: local servers take any word.
    """
    if isinstance(data, str):
        return data.replace(secret, "…") if len(secret) >= SECRET else data
    if isinstance(data, Mapping):
        return {without(key, secret): without(value, secret) for key, value in data.items()}
    return [without(value, secret) for value in data] if isinstance(data, list | tuple) else data


def hidden(text: str) -> str:
    """``text`` without what looks like a token or a password."""
    return _SECRET.sub("…", text)


def unsecret(reason: Reason) -> Reason:
    """Return the reason, its fields without what looks like a token or a password, and not long."""
    fields = {k: hidden(v)[:300] if isinstance(v, str) else v for k, v in reason.fields.items()}
    return Reason(reason.kind, **fields)
