"""The log of an engine during a validation: errors, tracebacks, warnings, and the cause of its end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from importer.engines import logs
from importer.engines.deaths import Attribution, Death
from importer.engines.logs import Lacking
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind


class JournalReason(ReasonKind):
    """Why a log has no answer."""

    LOG_GONE = "log-gone", "its log is gone"


EXCERPT = 4000  # characters of an excerpt
LOOK = 0.05  # seconds between two checks of an engine that may have ended
READ = 256 * 1024  # bytes from the end of a log that are read
HEAD = 1024 * 1024  # bytes from a log's beginning: it has the engine's settings
# The end of a traceback of Python, behind any prefix of a logger: ``ValueError: words``, ``a.b.KeyError``.
_RAISED = re.compile(
    r"^(?:.*[\s)\]])?(?<!raise )((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt)(?:: .*)?)$"
)
_LEVEL = re.compile(r"\b(?:WARNING|ERROR|CRITICAL|FATAL)\b|\b(?:Error|Warning):")
_SECRET = re.compile(r"\b(?:hf_|sk-)[A-Za-z0-9_-]{8,}|(?<=Bearer )\S+|(?<=://)[^\s/@]+@")


@frozen
class Ended:
    """The cause of an engine's end, and the part at fault."""

    cause: Reason
    part: Attribution


@frozen
class Journal:
    """A log from ``start`` (bytes) on; it had ``ready`` bytes when the engine was ready.

    ``alive``   whether the engine runs, ``code`` its exit status.
    ``deaths``  the known causes of its end. ``full``  whether its log may not grow.
    """

    path: Path
    alive: Callable[[], bool]
    deaths: Sequence[Death] = ()
    start: int = 0
    code: Callable[[], int | None] = lambda: None
    full: Callable[[], bool] = lambda: False
    ready: int = 0

    @property
    def size(self) -> int:
        """Return the present size in bytes; 0 where the log is gone."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def from_here(self) -> Journal:
        """Return the same log from its present end on."""
        return replace(self, start=self.size) if self.path.exists() else self

    def opening(self) -> str:
        """Return the first ``HEAD`` bytes of the log."""
        try:
            with self.path.open("rb") as log:
                return log.read(HEAD).decode(errors="replace")
        except OSError:
            return ""

    def complaints(self) -> str:
        """Return tracebacks, errors and warnings since the start, without secrets; the latest of many."""
        text = hidden("\n".join(complaining(self._read())))
        return text if len(text) <= EXCERPT else "…" + text[-EXCERPT:]

    def raised(self) -> str | None:
        """Return the last exception since the start, in one line."""
        errors = [m.group(1) for line in self._read() if (m := _RAISED.match(line))]
        return hidden(errors[-1].strip())[:300] if errors else None

    def lacking(self) -> Reason | None:
        """Return the missing part of the environment in the log since the start, or ``None``."""
        if self.full():
            return Reason(Lacking.BIG_FILES)
        lacking = logs.lacking("\n".join(complaining(self._read())))
        return None if lacking is None else unsecret(lacking)

    def death(self, wait: float = 0.0) -> Ended | None:
        """Return why the engine ended; ``None`` if it still runs after ``wait`` seconds."""
        deadline = time.monotonic() + wait
        while self.alive():
            if time.monotonic() >= deadline:
                return None
            time.sleep(LOOK)
        try:
            code = self.code()
            cause = logs.explain(self.path, self.deaths, code, served=True)
            return Ended(unsecret(cause.reason), cause.attribution)
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
    """Return the lines of warnings and errors, with whole tracebacks."""
    faults: list[str] = []
    inside = False
    for line in lines:
        starts = "Traceback (most recent call last)" in line
        ends = inside and _RAISED.match(line) is not None
        if starts or inside or _LEVEL.search(line):
            faults.append(line.rstrip()[:500])
        inside = (inside or starts) and not ends
    return faults


def hidden(text: str) -> str:
    """Return ``text`` without tokens and passwords."""
    return _SECRET.sub("…", text)


def unsecret(reason: Reason) -> Reason:
    """Return the reason with short fields, without tokens and passwords."""
    fields = {k: hidden(v)[:300] if isinstance(v, str) else v for k, v in reason.fields.items()}
    return Reason(reason.kind, **fields)
