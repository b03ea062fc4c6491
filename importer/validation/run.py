"""Validate: all probes against a running engine, side by side, then its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Protocol

from importer.validation.client import TIME_LIMIT, Client
from importer.validation.context import Context, Render
from importer.validation.errors import ExchangeError
from importer.validation.outcome import Inconclusive, NotApplicable, Outcome, Pass
from importer.validation.probes import PROBES, Probe, health, stops_cleanly
from importer.validation.promise import promise_of
from importer.validation.report import Report, Row

SIDE_BY_SIDE = 4  # probes at a time; engines batch, and no probe here measures time
Progress = Callable[[str], None]


class Served(Protocol):
    """An engine that serves a document's model."""

    @property
    def base_url(self) -> str:
        """``http://127.0.0.1:PORT``."""

    @property
    def model(self) -> str:
        """The name that requests use."""

    @property
    def start_seconds(self) -> float:
        """From the start of the process to its first healthy answer."""

    def stop(self) -> stops_cleanly.StopReport:
        """End it and say how that went."""


def validate(
    document: Mapping[str, Any],
    served: Served,
    *,
    probes: Sequence[Probe] | None = None,
    progress: Progress | None = None,
    time_limit: float = TIME_LIMIT,
    offers: frozenset[str] | None = None,
    render: Render | None = None,
) -> Report:
    """Run ``probes`` (all by default) against ``served``, stop it, and report.

    ``offers`` is what the engine's server has; ``render`` writes a prompt as the model's own template does.
    ``time_limit`` is seconds for one exchange; ``progress`` is called with each step, from several threads.
    What goes wrong in an exchange is an outcome; only a fault of the importer itself is raised, and then the
    engine is the caller's to stop.
    """
    tell = progress or _quiet
    started = datetime.now(UTC)
    chosen = PROBES if probes is None else tuple(probes)
    begun = time.monotonic()
    client = Client(served.base_url, time_limit)
    bench = Context(promise_of(document, offers), served.model, client, render=render)
    rows = probe(bench, chosen, tell)
    probed = time.monotonic() - begun
    tell("stopping the engine")
    stop = served.stop()
    rows.append(Row(stops_cleanly.NAME, stops_cleanly.LESSON, stops_cleanly.judge(stop)))
    seconds = {"start": served.start_seconds, "probes": probed, "stop": stop.seconds}
    return Report(_engine(document), started.isoformat(timespec="seconds"), seconds, tuple(rows))


def probe(bench: Context, probes: Sequence[Probe], progress: Progress) -> list[Row]:
    """Run probes against an API; rows keep the order given. Health is asked first, by itself.

    Each probe gets ``bench`` with a log of its own.
    """
    healthy = _outcome(health, replace(bench, log=[]))
    unasked = Inconclusive(f"not asked: {healthy.reason}", "engine", trials=0)

    def row(one: Probe) -> Row:
        progress(one.NAME)
        if one is health:
            outcome = healthy
        elif isinstance(healthy, Pass):
            outcome = _outcome(one, replace(bench, log=[]))
        else:
            outcome = unasked
        return Row(one.NAME, one.LESSON, outcome)

    pool = ThreadPoolExecutor(SIDE_BY_SIDE)
    try:
        return list(pool.map(row, probes))
    finally:  # on Ctrl-C nobody waits for answers: they end with the engine
        pool.shutdown(wait=False, cancel_futures=True)


def _outcome(one: Probe, ctx: Context) -> Outcome:
    """Run one probe; what it exchanged is its evidence, whatever came of it."""
    reason = one.needs(ctx.promise)
    if reason is not None:
        return NotApplicable(reason)
    try:
        outcome: Outcome = one.run(ctx)
    except ExchangeError as error:
        outcome = error.outcome()
    return replace(outcome, evidence=tuple(exchange.to_json() for exchange in ctx.log))


def _engine(document: Mapping[str, Any]) -> dict[str, Any]:
    """Name and version as the document records them."""
    recorded = (document.get("importer") or {}).get("engine") or {}
    return {"name": document.get("backend"), "version": None} | dict(recorded)


def _quiet(_step: str) -> None:
    """Tell nobody."""
