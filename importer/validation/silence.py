"""An engine that answers no more: after a few probes without an answer the others are not asked."""

from __future__ import annotations

from enum import StrEnum
from threading import Lock

from importer.reasons import Reason
from importer.validation.outcome import Inconclusive
from importer.validation.remedy import Remedy
from importer.validation.report import Row


class SilenceReason(StrEnum):
    """What is found."""

    NO_ANSWERS = "no-answers"


ENOUGH = 4  # probes one after the other: all that are asked side by side


class Silence:
    """Counts the last probes of which no request was answered; ``limit`` is seconds for one of them."""

    def __init__(self, limit: float) -> None:
        self._limit, self._lock, self._rows = limit, Lock(), 0

    def heard(self, row: Row) -> None:
        """One more probe is over; what sent nothing says nothing."""
        asked = [exchange for exchange in row.outcome.evidence if exchange["method"] == "POST"]
        if not asked:
            return
        late = all(e["status"] is None and e["seconds"] >= self._limit for e in asked)
        with self._lock:
            self._rows = self._rows + 1 if late else 0

    @property
    def told(self) -> Inconclusive | None:
        """Why nothing more is asked, once that is so."""
        if self._rows < ENOUGH:
            return None
        reason = Reason(SilenceReason.NO_ANSWERS, probes=self._rows, seconds=self._limit)
        return Inconclusive(reason, "environment", Reason(Remedy.MORE_TIME_OR_LOG), trials=0)
