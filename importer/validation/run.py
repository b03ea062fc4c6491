"""The run of a validation: all probes against a running engine, side by side or alone, then its stop.

A run of some probes is a partial report: it proves nothing of the document as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from importer import tracing
from importer.document.document import Document
from importer.progress import Progress, silent
from importer.reasons import Reason, ReasonKind
from importer.registry import PartReason
from importer.signals.evidence import TASKS
from importer.validation import call_forms, failures, served_engine
from importer.validation.attribution import setting_bisection, stage_cause
from importer.validation.client import Client
from importer.validation.context import SIDE_BY_SIDE, STEADY, Context, Shared
from importer.validation.errors import AnswerFailure, ExchangeError, RunOver, SilenceReason, spent
from importer.validation.evidence_sources import Background
from importer.validation.expectations import WARM, Expectations, other_task, promise_of
from importer.validation.explain import explain
from importer.validation.outcome import (
    Fail,
    Inconclusive,
    NotApplicable,
    Outcome,
    Pass,
    ProbeRow,
    Report,
    Stage,
    Tried,
    by_stage,
    counts_as_passed,
    failing,
)
from importer.validation.probe import ALL_PROBES, Probe, ProbeOptions, Rests
from importer.validation.probes import BY_NAME, every
from importer.validation.probes.chat import no_special_tokens
from importer.validation.probes.sampling import sampling_arrives
from importer.validation.probes.server import counted, first_answer, health, paced
from importer.validation.progress import CircuitBreaker, ProbeProgress, not_asked, speed
from importer.validation.remedy import Remedy
from importer.validation.served_engine import ServedEngine


class SpoiltReason(ReasonKind):
    """The effect of a sampling value of the document."""

    PASSES_WITHOUT = "passes-without", "without {name} {value:g} it passes"
    ONLY_STEADY = "only-steady", "at temperature 0; {missed:drawn answer|drawn answers} did not show it"


# Neutral values.
STOPWORDS = "stopwords"  # the one of these values that stands beside the parameters
PENALTIES = ("repetition_penalty", "presence_penalty", "frequency_penalty")
NEUTRAL = {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "temperature": 0.0}
# Requests without an answer: a value that clients send may be one that the server cannot read.
BROKEN = (AnswerFailure.UNREACHABLE, AnswerFailure.REPORTS_ERROR, AnswerFailure.REFUSED)
OF_THE_MOMENT = (
    AnswerFailure.TIMED_OUT, AnswerFailure.OVERLOADED, AnswerFailure.ANSWERED_AGAIN, *SilenceReason,
)  # fmt: skip
ENOUGH = 2  # probes that fail alike, and do so without a value, too: further ones are not asked without it
EXCHANGES = 40  # of one probe that a receipt keeps: the first and the last ones
Run = Callable[[Context], Outcome]


def suspects(sampling: Mapping[str, object]) -> dict[str, object]:
    """Return the sampling values of the document that may spoil an answer."""
    values = {k: v for k, v in sampling.items() if k in NEUTRAL and isinstance(v, int | float)}
    return {k: v for k, v in values.items() if (v > WARM if k == "temperature" else v != NEUTRAL[k])}


def without(ctx: Context, outcome: Outcome, run: Run, shared: dict[str, Shared]) -> Outcome:
    """Return the outcome; a fault of the configuration where the probe passes without one sampling value.

    ``run`` runs the probe again; ``shared`` has the answers without each value.
    """
    if counts_as_passed(outcome) or outcome.gives(*OF_THE_MOMENT):
        return outcome
    harmful = suspects(ctx.promise.sampling)
    if outcome.gives(*BROKEN):
        harmful |= {k: v for k, v in ctx.promise.client_sampling.items() if k not in NEUTRAL}
    for name, value in harmful.items():
        sent = {**ctx.promise.client_sampling, name: NEUTRAL.get(name)}
        changed = replace(
            ctx,
            promise=replace(ctx.promise, client_sampling=sent),
            shared=shared.setdefault(name, Shared(leaking=ctx.shared.leaking)),
        )
        alike = [kind for kind in changed.shared.unhelped if outcome.gives(kind)]
        if len(alike) < ENOUGH and isinstance(run(changed), Pass):
            return judge(outcome, name, value)
        changed.shared.unhelped.append(outcome.reason.kind)
    return outcome


def steadied(ctx: Context, outcome: Outcome, run: Run, shared: dict[str, Shared]) -> Outcome:
    """Return the outcome; that of answers without chance, where drawn ones of the model show nothing."""
    settled = not isinstance(outcome, Inconclusive) or outcome.attribution != "model"
    if settled or ctx.promise.hot or outcome.gives(*OF_THE_MOMENT):
        return outcome
    sent = {**ctx.promise.client_sampling, **STEADY}
    steady = replace(ctx.promise, client_sampling=sent)
    answers = shared.setdefault("steady", Shared(leaking=ctx.shared.leaking))
    again = run(replace(ctx, promise=steady, shared=answers))
    if isinstance(again, Inconclusive):
        return outcome
    note = Reason(SpoiltReason.ONLY_STEADY, missed=outcome.trials)
    return replace(again, trials=outcome.trials + again.trials, notes=(*again.notes, note))


def judge(outcome: Outcome, name: str, value: object) -> Fail:
    """Return the failure of a probe that passes without this value."""
    note = Reason(SpoiltReason.PASSES_WITHOUT, name=name, value=value)
    own = failures.DOCUMENT_NAMES.get(name, name)
    key = own if own == STOPWORDS else f"parameters.{own}"
    changes = {"temperature": Remedy.LOWER_TEMPERATURE, **dict.fromkeys(PENALTIES, Remedy.TAKE_OUT_SETTING)}
    remedy = Reason(changes.get(name, Remedy.CORRECT_SETTING), key=key)
    failure = failing(outcome, Stage.START, remedy, note)
    return replace(failure, trials=outcome.trials + 1, agreed=None, tried=Tried(1, 1))


def validate(
    document: Document,
    served: ServedEngine,
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
    probed = time.monotonic() - begun
    with steps.during(served_engine.STOPS_CLEANLY, "stopping the engine"):
        stop = served.stop()
    rows.append(
        ProbeRow(served_engine.STOPS_CLEANLY, served_engine.STOP_LESSON, served_engine.judge_stop(stop))
    )
    rows = call_forms.with_remedy(rows, forms, promise.tool_parser)
    if known.controls is not None:
        again = partial(_again, bench)
        rows = setting_bisection.settled(rows, known.controls, again, client.seconds_left, report_step)
    seconds = {"start": served.start_seconds, "probes": probed, "stop": stop.seconds}
    names = [one.name for one in chosen]
    partial_of = None if BY_NAME.keys() <= {*names} else {"probes": names, "against": None}
    began = started.isoformat(timespec="seconds")
    return Report(_engine(document), began, seconds, tuple(rows), partial_of, speed(rows), forms)


def _again(first: Context, served: ServedEngine, some: Sequence[Probe]) -> list[ProbeRow]:
    """Run some probes against another start of the engine."""
    bench = replace(
        first,
        model=served.model,
        client=replace(first.client, base_url=served.base_url),
        shared=Shared(leaking=first.shared.leaking),
        journal=None, memory=None, fit=None, argv=(),  # they are of the first start
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
    with tracing.span(f"probe {one.name}") as spanned:
        try:
            outcome = _outcome(one, ctx, shared)
        except Exception as error:
            if not package:
                raise
            reason = Reason(PartReason.FAILED, error=f"{type(error).__name__}: {error}")
            outcome = Inconclusive(reason, Stage.MACHINE)
        spanned.note(importer__outcome=outcome.outcome)
    complaints = "" if counts_as_passed(outcome) or ctx.journal is None else ctx.journal.complaints()
    seconds = time.monotonic() - begun
    return ProbeRow(one.name, one.lesson, outcome, seconds, complaints, package, one.ability)


def _outcome(one: Probe, ctx: Context, shared: dict[str, Shared]) -> Outcome:
    """Run one probe; its exchanges are the evidence of any outcome."""
    needless = _other_task(one, ctx.promise) or one.needs(ctx.promise)
    if needless is not None:
        return NotApplicable(needless)
    outcome = _attributed(one, ctx)
    if one is no_special_tokens or not (one.alone or one is sampling_arrives):
        outcome = steadied(ctx, outcome, partial(_attributed, one), shared)
        outcome = without(ctx, outcome, partial(_attributed, one), shared)
    outcome = stage_cause.remedied(stage_cause.tried(stage_cause.within(outcome, one, ctx)))
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


def _attributed(one: Probe, ctx: Context) -> Outcome:
    try:
        outcome: Outcome = one.run(ctx)
    except RunOver as error:
        return error.outcome()
    except ExchangeError as error:
        outcome = failures.failed(error, ctx)
    placed = outcome if ctx.client.over is not None else stage_cause.placed(outcome, ctx)
    if placed.attribution != "model" or outcome.attribution == "model" or one.of_model:
        return placed
    own = replace(outcome, facts=placed.facts)
    read = by_stage(own.facts).get(
        Stage.PARSED
    )  # what no parser reads the model wrote; it fails all the same
    return placed if read is not None and read.state == "broken" else own


def _engine(document: Document) -> dict[str, object]:
    """Return name and version of the engine as the document records them."""
    recorded = (document.get("importer") or {}).get("engine") or {}
    return {"name": document.get("backend"), "version": None} | dict(recorded)
