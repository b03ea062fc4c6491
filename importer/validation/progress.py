"""The pace of a validation: which probes run, how fast answers come, and when no more requests are sent.

How long a server is silent to everybody: a machine without time holds a stream back, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from statistics import median
from threading import Event, Lock, Thread
from typing import TypeVar

from importer.progress import Progress, Step
from importer.reasons import Reason
from importer.validation.client import Client
from importer.validation.errors import AnswerFailure, ExchangeError, SilenceReason, spent
from importer.validation.expectations import CommonReason
from importer.validation.outcome import Inconclusive, Outcome, Pass, ProbeRow, Stage, counts_as_passed
from importer.validation.remedy import Remedy

ENOUGH = 4  # consecutive probes without an answer
IN_PIECES = 0.1  # share of an answer's time that follows its first piece at least
FEW = 4  # tokens; a shorter answer has no speed
SHOWN = 3  # running probes that a step names


class CircuitBreaker:
    """The end of all requests: a dead engine, no answers, a refusal for load, or a spent run."""

    def __init__(self, client: Client) -> None:
        self._client, self._lock, self._rows = client, Lock(), 0
        self._ended: ProbeRow | None = None

    def record(self, row: ProbeRow) -> None:
        """Count one more probe; a probe that sent nothing changes no count."""
        with self._lock:
            if self._ended is None and row.outcome.gives(AnswerFailure.OVERLOADED, AnswerFailure.DIED):
                self._ended = row
        requests = [exchange for exchange in row.outcome.evidence if exchange["method"] == "POST"]
        if not requests:
            return
        late = all(e["status"] is None and e["seconds"] >= self._client.time_limit for e in requests)
        with self._lock:
            self._rows = self._rows + 1 if late else 0

    @property
    def verdict(self) -> Inconclusive | None:
        """Return the outcome of all further probes once no more requests are sent, else ``None``."""
        if self._ended is not None:
            return not_asked(self._ended)
        if (over := self._client.over) is not None:
            return spent(over)
        if self._rows < ENOUGH:
            return None
        reason = Reason(SilenceReason.NO_ANSWERS, probes=self._rows, seconds=self._client.time_limit)
        return Inconclusive(reason, Stage.MACHINE, Reason(Remedy.READ_LOG), trials=0)


def not_asked(row: ProbeRow) -> Inconclusive:
    """Return the outcome of the probes that were not asked because of the one of ``row``."""
    reason = Reason(CommonReason.NOT_ASKED, why=row.outcome.reason)
    return Inconclusive(
        reason, row.outcome.stage, trials=0, follows=(row.probe,), part=row.outcome.attribution
    )


class ProbeProgress:
    """The steps of the probes: how many of them are done, the seconds, and the ones that run."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total, self._begun = progress, total, time.monotonic()
        self._lock, self._running, self._results = Lock(), dict[str, None](), list[Outcome]()

    @contextmanager
    def during(self, probe: str, text: str | None = None) -> Iterator[None]:
        """Report the probe as running until the block ends, with ``text`` in place of the names."""
        self._report(probe, text)
        try:
            yield
        finally:
            with self._lock:
                self._running.pop(probe, None)

    def done(self, row: ProbeRow) -> None:
        """Count a result."""
        with self._lock:
            self._results.append(row.outcome)

    def _report(self, started: str, text: str | None) -> None:
        with self._lock:
            self._running[started] = None
            running, results = tuple(self._running), tuple(self._results)
            more = f" and {len(running) - SHOWN} more" if len(running) > SHOWN else ""
            self._progress(  # under the lock, so that no earlier count comes later
                Step(
                    text or f"{', '.join(running[-SHOWN:])}{more}",
                    len(results),
                    self._total,
                    passed=sum(isinstance(one, Pass) for one in results),  # not what does not apply
                    failed=sum(not counts_as_passed(one) for one in results),
                    running=running,
                    seconds=time.monotonic() - self._begun,
                )
            )


def speed(rows: Sequence[ProbeRow]) -> dict[str, object]:
    """Return medians of the streamed answers, up to four at a time; empty without answers of some tokens.

    ``first_token_seconds``, and ``tokens_per_second`` after it: ``None`` where answers come in one piece.
    """
    answers = {
        (e["seconds"], e["body"]): (first, tokens)
        for row in rows
        for e in row.outcome.evidence
        if (first := e["first"]) and (tokens := e["tokens"] or 0) >= FEW
    }
    rates = [
        (tokens - 1) / (seconds - first)
        for (seconds, _), (first, tokens) in answers.items()
        if seconds - first > IN_PIECES * seconds
    ]
    if not answers:
        return {}
    return {
        "first_token_seconds": round(median(first for first, _ in answers.values()), 3),
        "tokens_per_second": round(median(rates), 1) if rates else None,
        "answers": len(answers),
    }


T = TypeVar("T")
PATH = "/v1/models"  # which all servers answer without the model; an error is an answer, too
PAUSE = 0.02  # seconds


def listened(client: Client, request: Callable[[], T]) -> tuple[T, float]:
    """Return what ``request`` returns, and the longest time in seconds without an answer to a light question.

    The questions go through this process and through what stands before the engine: each of them may be what
    has no time.
    """
    over, beats = Event(), [time.monotonic()]
    beating = Thread(target=_beat, args=(client, over, beats))
    beating.start()
    try:
        result = request()
        beats.append(time.monotonic())
    finally:
        over.set()
        beating.join()
    return result, max(later - earlier for earlier, later in pairwise(sorted(beats)))


def _beat(client: Client, over: Event, beats: list[float]) -> None:
    while not over.wait(PAUSE):
        with suppress(ExchangeError):
            client.get(PATH, [])
        if not over.is_set():
            beats.append(time.monotonic())
