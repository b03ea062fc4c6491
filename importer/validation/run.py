"""Validate: all probes against a running engine, side by side, those that measure alone, then its end.

What is limited to some probes is a partial report: it proves nothing of the document as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from itertools import count
from threading import Lock
from typing import Any, Protocol

from importer.engines.tokenizer import Ask
from importer.progress import Step
from importer.proof.result import Proof
from importer.reasons import Reason
from importer.validation import diagnosis, root_causes
from importer.validation.client import TIME_LIMIT, Client
from importer.validation.context import Context, Render, Shared
from importer.validation.errors import ExchangeError
from importer.validation.expectations import CommonReason, promise_of
from importer.validation.journal import Journal
from importer.validation.outcome import (
    Fail,
    Inconclusive,
    NotApplicable,
    Outcome,
    Pass,
    ProbeRow,
    Report,
    counts_as_passed,
    failing,
)
from importer.validation.probes import PROBES, Probe, health, sampling_arrives, stops_cleanly
from importer.validation.remedy import Remedy


class SilenceReason(StrEnum):
    """What is found."""

    NO_ANSWERS = "no-answers"


ENOUGH = 4  # probes one after the other: all that are asked side by side


class CircuitBreaker:
    """Counts the last probes of which no request was answered; ``limit`` is seconds for one of them."""

    def __init__(self, limit: float) -> None:
        self._limit, self._lock, self._rows = limit, Lock(), 0

    def heard(self, row: ProbeRow) -> None:
        """One more probe is over; what sent nothing says nothing."""
        asked = [exchange for exchange in row.outcome.evidence if exchange["method"] == "POST"]
        if not asked:
            return
        late = all(e["status"] is None and e["seconds"] >= self._limit for e in asked)
        with self._lock:
            self._rows = self._rows + 1 if late else 0

    @property
    def told(self) -> Inconclusive | None:
        """Return why nothing more is asked, once that is so."""
        if self._rows < ENOUGH:
            return None
        reason = Reason(SilenceReason.NO_ANSWERS, probes=self._rows, seconds=self._limit)
        return Inconclusive(reason, "environment", Reason(Remedy.MORE_TIME_OR_LOG), trials=0)


class SpoiltReason(StrEnum):
    """What a value of the document's sampling does."""

    PASSES_WITHOUT = "passes-without"


# What changes nothing, and what would mend it. A temperature up to WARM spoils no answer of a whole model.
NEUTRAL = {
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "temperature": 0.0,
}
REMEDIES = {
    "repetition_penalty": Reason(Remedy.TAKE_OUT_REPEAT_PENALTY),
    "presence_penalty": Reason(Remedy.TAKE_OUT_PRESENCE_PENALTY),
    "frequency_penalty": Reason(Remedy.TAKE_OUT_FREQUENCY_PENALTY),
    "temperature": Reason(Remedy.LOWER_TEMPERATURE),
}
WARM = 1.0
Run = Callable[[Context], Outcome]


def suspects(sampling: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document's values that may spoil an answer."""
    given = {k: v for k, v in sampling.items() if k in NEUTRAL and isinstance(v, int | float)}
    return {k: v for k, v in given.items() if (v > WARM if k == "temperature" else v != NEUTRAL[k])}


def without(ctx: Context, outcome: Outcome, run: Run, kept: dict[str, Shared]) -> Outcome:
    """Return the outcome; a fault of the configuration where one value less makes the probe pass.

    ``run`` runs the probe again; ``kept`` holds the answers that were asked for without each value.
    """
    if counts_as_passed(outcome):
        return outcome
    for name, value in suspects(ctx.promise.sampling).items():
        sent = {**ctx.promise.client_sampling, name: NEUTRAL[name]}
        asked = replace(
            ctx, promise=replace(ctx.promise, client_sampling=sent), shared=kept.setdefault(name, Shared())
        )
        if isinstance(run(asked), Pass):
            return judge(outcome, name, value)
    return outcome


def judge(outcome: Outcome, name: str, value: float) -> Fail:
    """Return a probe that did not pass, and passes without this value."""
    note = Reason(SpoiltReason.PASSES_WITHOUT, name=name, value=value)
    found = failing(outcome, "configuration", REMEDIES[name], note)
    return replace(found, trials=outcome.trials + 1, agreed=None)


SIDE_BY_SIDE = 4  # probes at a time; engines batch, and what measures time, load or memory runs alone
EXCHANGES = 40  # of one probe that a receipt keeps: the first and the last ones
Progress = Callable[[str], None]


class ServedEngine(Protocol):
    """An engine that serves a document's model."""

    @property
    def base_url(self) -> str:
        """``http://127.0.0.1:PORT``."""

    @property
    def model(self) -> str:
        """Return the name that requests use."""

    @property
    def start_seconds(self) -> float:
        """From the start of the process to its first healthy answer."""

    def stop(self) -> stops_cleanly.StopFacts:
        """End it and say how that went."""


def validate(
    document: Mapping[str, Any],
    served: ServedEngine,
    *,
    probes: Sequence[Probe] | None = None,
    progress: Progress | None = None,
    time_limit: float = TIME_LIMIT,
    offers: frozenset[str] | None = None,
    render: Render | None = None,
    proof: Proof | None = None,
    journal: Journal | None = None,
    memory: Callable[[], int | None] | None = None,
    fit: Callable[[], Mapping[str, Any]] | None = None,
    told: tuple[str, ...] = (),
    tokens: Ask | None = None,
    files: Mapping[str, str] | None = None,
) -> Report:
    """Run ``probes`` (all by default) against ``served``, stop it, and report; partial if some were left out.

    ``offers`` is what the engine's server has; ``render`` writes a prompt as the model's own template does;
    ``proof`` says which parsers read that template; ``journal`` is the engine's log;
    ``memory`` gives the bytes that its processes hold, ``fit`` what was predicted beside what was reported;
    ``told`` is what the engine was started with, ``tokens`` asks the tokenizer beside the weights, ``files``
    are the hashes of the files beside them at the import.
    ``time_limit`` is seconds for one exchange; ``progress`` is called with each step, from several threads.
    What goes wrong in an exchange is an outcome; only a fault of the importer itself is raised, and then the
    engine is the caller's to stop.
    """
    tell = progress or quiet
    started = datetime.now(UTC)
    chosen = PROBES if probes is None else tuple(probes)
    begun = time.monotonic()
    client = Client(served.base_url, time_limit)
    promise = promise_of(document, offers)
    bench = Context(
        promise, served.model, client,
        render=render, proof=proof, journal=journal, memory=memory, fit=fit, told=told, tokens=tokens,
        files=files or {},
    )  # fmt: skip
    rows = probe(bench, chosen, tell)
    probed = time.monotonic() - begun
    tell("stopping the engine")
    stop = served.stop()
    rows.append(ProbeRow(stops_cleanly.NAME, stops_cleanly.LESSON, stops_cleanly.judge(stop)))
    seconds = {"start": served.start_seconds, "probes": probed, "stop": stop.seconds}
    asked = None if set(PROBES) <= set(chosen) else {"probes": [one.NAME for one in chosen], "against": None}
    return Report(_engine(document), started.isoformat(timespec="seconds"), seconds, tuple(rows), asked)


def probe(bench: Context, probes: Sequence[Probe], progress: Progress) -> list[ProbeRow]:
    """Run probes against an API; rows keep the order given. Health is asked first, by itself.

    Each gets ``bench`` with a log of its own. Those that say ``ALONE`` follow the others, one at a time. An
    engine that leaves everything unanswered is asked no more.
    """
    kept: dict[str, Shared] = {}
    numbers = count()
    silence = CircuitBreaker(bench.client.time_limit)
    healthy = _row(health, bench, kept)
    unasked = Inconclusive(Reason(CommonReason.NOT_ASKED, why=healthy.outcome.reason), "engine", trials=0)

    def row(one: Probe) -> ProbeRow:
        progress(Step(one.NAME, next(numbers), len(probes)))
        if one is health:
            return healthy
        why = silence.told if isinstance(healthy.outcome, Pass) else unasked
        if why is not None:
            return ProbeRow(one.NAME, one.LESSON, why)
        made = _row(one, bench, kept)
        silence.heard(made)
        return made

    together = [one for one in probes if not alone(one)]
    pool = ThreadPoolExecutor(SIDE_BY_SIDE)
    try:
        rows = list(pool.map(row, together))
    finally:  # on Ctrl-C nobody waits for answers: they end with the engine
        pool.shutdown(wait=False, cancel_futures=True)
    rows += [row(one) for one in probes if alone(one)]
    order = {one.NAME: place for place, one in enumerate(probes)}
    told = [root_causes.with_a_remedy(row) for row in root_causes.traced(rows)]
    return sorted(told, key=lambda made: order[made.probe])


def alone(one: Probe) -> bool:
    """Return whether a probe measures time, load or memory, and so must run with nothing beside it."""
    return bool(getattr(one, "ALONE", False))


def _row(one: Probe, bench: Context, kept: dict[str, Shared]) -> ProbeRow:
    ctx, begun = bench.apart(), time.monotonic()
    outcome = _outcome(one, ctx, kept)
    told = "" if counts_as_passed(outcome) or ctx.journal is None else ctx.journal.complaints()
    return ProbeRow(one.NAME, one.LESSON, outcome, time.monotonic() - begun, told)


def _outcome(one: Probe, ctx: Context, kept: dict[str, Shared]) -> Outcome:
    """Run one probe; what it exchanged is its evidence, whatever came of it."""
    needless = one.needs(ctx.promise)
    if needless is not None:
        return NotApplicable(needless)
    told = _blamed(one, ctx)
    if not alone(one) and one is not sampling_arrives:
        told = without(ctx, told, partial(_blamed, one), kept)
    log = ctx.log if len(ctx.log) <= EXCHANGES else [*ctx.log[: EXCHANGES // 2], *ctx.log[-EXCHANGES // 2 :]]
    return replace(told, evidence=tuple(exchange.to_json() for exchange in log))


def _blamed(one: Probe, ctx: Context) -> Outcome:
    try:
        outcome: Outcome = one.run(ctx)
    except ExchangeError as error:
        outcome = diagnosis.failed(error, ctx)
    return diagnosis.mended(outcome, ctx)


def _engine(document: Mapping[str, Any]) -> dict[str, Any]:
    """Name and version as the document records them."""
    recorded = (document.get("importer") or {}).get("engine") or {}
    return {"name": document.get("backend"), "version": None} | dict(recorded)


def quiet(_step: str) -> None:
    """Tell nobody."""
