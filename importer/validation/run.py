"""The run of a validation: all probes against a running engine, side by side or alone, then its stop.

A run of some probes is a partial report: it proves nothing of the document as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from importer.document.document import Document
from importer.engines.process import EngineServer
from importer.progress import Progress, silent
from importer.reasons import Reason
from importer.registry import PartReason
from importer.signals.evidence import TASKS
from importer.validation import call_forms, cause, experiments, served_engine, thorough
from importer.validation.client import Client
from importer.validation.context import SIDE_BY_SIDE, Context, Shared
from importer.validation.errors import AnswerFailure, SilenceReason, spent
from importer.validation.evidence_sources import Background
from importer.validation.expectations import Expectations, other_task, promise_of
from importer.validation.explain import explain
from importer.validation.outcome import (
    Inconclusive,
    NotApplicable,
    Outcome,
    ProbeRow,
    Report,
    Stage,
    counts_as_passed,
)
from importer.validation.probe import ALL_PROBES, Probe, ProbeOptions, Rests
from importer.validation.probes import BY_NAME, every
from importer.validation.probes.chat import no_special_tokens
from importer.validation.probes.sampling import sampling_arrives
from importer.validation.probes.server import counted, first_answer, health, paced
from importer.validation.progress import CircuitBreaker, ProbeProgress, not_asked, speed

EXCHANGES = 40  # of one probe that a receipt keeps: the first and the last ones


def validate(
    document: Document,
    served: EngineServer,
    known: Background | None = None,
    options: ProbeOptions = ALL_PROBES,
    *,
    offers: frozenset[str] | None = None,
) -> Report:
    """Probe ``served``, stop it, and report; partial if some probes were left out.

    ``known`` is what there is beside the API; ``offers`` are the features of the engine's server.
    A failed exchange is an outcome. Only a fault of importer itself is raised; the caller stops the engine.
    """
    report_step = options.progress
    started = datetime.now(UTC)
    chosen = every() if options.probes is None else tuple(options.probes)
    begun = time.monotonic()
    promise, known = promise_of(document, offers), known or Background()
    client = Client(served.base_url, options.time_limit, deadline=begun + options.total_limit)
    bench = Context.of(promise, served.model, client, known, thorough=options.thorough)
    steps = ProbeProgress(report_step, len(chosen) + 1)  # the stop is a probe, too
    rows = probe(bench, chosen, report_step, steps)
    forms = call_forms.observed(bench, rows, report_step)
    rows = call_forms.with_remedy(rows, forms, promise.tool_parser)
    spared = experiments.spared(rows, known.controls)
    figures = thorough.figures(bench, rows, document, report_step, spared)
    probed = time.monotonic() - begun
    with steps.during(served_engine.STOPS_CLEANLY, "stopping the engine"):
        stop = served.stop()
    rows.append(
        ProbeRow(served_engine.STOPS_CLEANLY, served_engine.STOP_LESSON, served_engine.judge_stop(stop))
    )
    if known.controls is not None:
        again = partial(_again, bench)
        rows = experiments.controlled(rows, known.controls, again, client.seconds_left, report_step)
        rows = experiments.beside_scaling(rows, known.controls.stretched)
    seconds = {"start": served.start_seconds, "probes": probed, "stop": stop.seconds}
    names = [one.name for one in chosen]
    partial_of = None if BY_NAME.keys() <= {*names} else {"probes": names, "against": None}
    began = started.isoformat(timespec="seconds")
    return Report(_engine(document), began, seconds, tuple(rows), partial_of, speed(rows), forms, figures)


def _again(first: Context, served: EngineServer, some: Sequence[Probe]) -> list[ProbeRow]:
    """Run some probes against another start of the engine."""
    bench = replace(
        first,
        model=served.model,
        client=replace(first.client, base_url=served.base_url),
        shared=Shared(leaking=first.shared.leaking),
        journal=None, argv=(),  # they are of the first start
    )  # fmt: skip
    return probe(bench, some, silent)


def probe(
    bench: Context, probes: Sequence[Probe], progress: Progress, steps: ProbeProgress | None = None
) -> list[ProbeRow]:
    """Run probes against an API; rows keep the order of ``probes``. Health and the first answer come first,
    one at a time; where one does not pass, nothing else is asked, but for what needs no chat.

    Each probe gets ``bench`` with a log of its own. Those marked ``alone`` follow the others, one at a time.
    An engine that leaves everything unanswered gets no more requests. ``steps`` counts further probes of the
    run, too.
    """
    shared: dict[str, Shared] = {}
    breaker, steps = CircuitBreaker(bench.client), steps or ProbeProgress(progress, len(probes))
    made: dict[str, ProbeRow] = {}
    for gate in (health, first_answer):
        if gate is health or gate in probes:
            with steps.during(gate.name):
                made[gate.name] = _row(gate, bench, shared)
        if not counts_as_passed(made[health.name].outcome):
            break
    closed = next((row for row in made.values() if not counts_as_passed(row.outcome)), None)
    if first_answer.name in made:
        bench = replace(bench, promise=paced(bench.promise, made[first_answer.name].outcome))
        known = counted(bench) if closed is None else None
        bench = replace(bench, promise=replace(bench.promise, counted=known))

    def row(one: Probe) -> ProbeRow:
        refused = (
            closed is not None and closed.probe != health.name and closed.outcome.gives(AnswerFailure.REFUSED)
        )
        asks = closed is None or (refused and one.rests_on is Rests.NOTHING)  # what may say why
        why = breaker.verdict if closed is None or asks else not_asked(closed)
        if one.name in made:
            result = made[one.name]
        elif why is not None:
            result = ProbeRow(one.name, one.lesson, why, ability=one.ability)
        else:
            with steps.during(one.name):
                result = _row(one, bench, shared)
            breaker.record(result)
        steps.done(result)
        return result

    # Where the time ends early, the contract has its verdict.
    together = sorted((one for one in probes if not one.alone), key=lambda one: bool(one.ability))
    pool = ThreadPoolExecutor(SIDE_BY_SIDE)
    try:
        here = [copy_context() for _ in together]  # of the span that asks
        rows = list(pool.map(lambda context, one: context.run(row, one), here, together))
    finally:  # on Ctrl-C no answer is awaited: they end with the engine
        pool.shutdown(wait=False, cancel_futures=True)
    rows += [row(one) for one in probes if one.alone]
    order = {one.name: place for place, one in enumerate(probes)}
    place = bench.render.place if bench.render is not None else ""
    return sorted(explain(rows, place), key=lambda made: order[made.probe])


def _row(one: Probe, bench: Context, shared: dict[str, Shared]) -> ProbeRow:
    ctx, begun, package = bench.apart(), time.monotonic(), BY_NAME.package(one.name)
    try:
        outcome = _outcome(one, ctx, shared)
    except Exception as error:
        if not package:
            raise
        reason = Reason(PartReason.FAILED, error=f"{type(error).__name__}: {error}")
        outcome = Inconclusive(reason, Stage.MACHINE)
    complaints = "" if counts_as_passed(outcome) or ctx.journal is None else ctx.journal.complaints()
    seconds = time.monotonic() - begun
    return ProbeRow(one.name, one.lesson, outcome, seconds, complaints, package, one.ability)


def _outcome(one: Probe, ctx: Context, shared: dict[str, Shared]) -> Outcome:
    """Run one probe; its exchanges are the evidence of any outcome."""
    needless = _other_task(one, ctx.promise) or one.needs(ctx.promise)
    if needless is not None:
        return NotApplicable(needless)
    outcome = cause.of(one, ctx)
    if one is no_special_tokens or not (one.alone or one is sampling_arrives):
        outcome = experiments.steadied(ctx, outcome, partial(cause.of, one), shared)
        outcome = experiments.without(ctx, outcome, partial(cause.of, one), shared)
    outcome = cause.settled(outcome, ctx)
    if not counts_as_passed(outcome) and (over := _cut_short(ctx)) is not None:
        outcome = spent(over)
    log = ctx.log if len(ctx.log) <= EXCHANGES else [*ctx.log[: EXCHANGES // 2], *ctx.log[-EXCHANGES // 2 :]]
    return replace(outcome, evidence=tuple(exchange.to_json() for exchange in log))


def _cut_short(ctx: Context) -> Reason | None:
    """Return why an exchange of the probe was not asked or not ended: a verdict without it is none."""
    errors = (exchange.error for exchange in ctx.log)
    return next((e for e in errors if e is not None and isinstance(e.kind, SilenceReason)), None)


def _other_task(one: Probe, promise: Expectations) -> Reason | None:
    """Return why a probe does not apply to a model that pools or transcribes: it is about text."""
    if promise.kind not in TASKS:
        return None
    return other_task(promise, one.tasks)


def _engine(document: Document) -> dict[str, object]:
    """Return name and version of the engine as the document records them."""
    recorded = (document.get("importer") or {}).get("engine") or {}
    return {"name": document.get("backend"), "version": None} | dict(recorded)
