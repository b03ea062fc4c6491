"""What is asked again: answers alone cannot tell a setting from a fault of the engine or the weights.

A probe that fails is run without chance, then without one sampling value of the document. What an engine or a
model is blamed for is tried against a start without one variable of the machine, or one setting of the
document or of ``config.json``. The one without which it passes is at fault.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from importer.engines import start_trials
from importer.engines.deaths import CONFIGURATION
from importer.engines.process import EngineServer
from importer.engines.start_trials import Setup
from importer.errors import ImporterError
from importer.progress import Progress
from importer.reasons import Reason
from importer.validation import failures, served_engine
from importer.validation.context import STEADY, Context, Shared
from importer.validation.errors import AnswerFailure, SilenceReason
from importer.validation.expectations import WARM
from importer.validation.outcome import (
    BY_ANSWERS,
    STAGE,
    Fail,
    Inconclusive,
    NotShown,
    Outcome,
    Pass,
    ProbeRow,
    Stage,
    Tried,
    asks_for,
    counts_as_passed,
    failing,
    note,
)
from importer.validation.probe import Probe
from importer.validation.probes import every
from importer.validation.remedy import Remedy
from importer.validation.served_engine import Controls

# Neutral values.
STOPWORDS = "stopwords"  # the one of these values that stands beside the parameters
PENALTIES = ("repetition_penalty", "presence_penalty", "frequency_penalty")
NEUTRAL = {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "temperature": 0.0}
# Requests without an answer: a value that clients send may be one that the server cannot read.
BROKEN = (AnswerFailure.UNREACHABLE, AnswerFailure.REPORTS_ERROR, AnswerFailure.REFUSED)
OF_THE_MOMENT = (
    AnswerFailure.TIMED_OUT, AnswerFailure.OVERLOADED, AnswerFailure.ANSWERED_AGAIN, *SilenceReason,
)  # fmt: skip
CONTROLLED = "a second start without this setting passes, and one with it does not"
ENOUGH = 2  # probes that fail alike, and do so without a value, too: further ones are not asked without it
SECONDS = 240.0  # for all control starts of one run
STARTS = 4  # that there has to be time for
CONFIRMED = 2  # the same, before a model is advised to go without tools: one without a setting, one with it
# Found by trying one form after another: answers alone show no more than that something is wrong.
INFERRED = (
    Remedy.WRITE_TURNS, Remedy.OWN_TEMPLATE, Remedy.SERVE_TEMPLATE, Remedy.OFFER_NO_TOOLS,
)  # fmt: skip


Ask = Callable[[EngineServer, Sequence[Probe]], Sequence[ProbeRow]]
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
        alike = [seen for seen in changed.shared.unhelped if outcome.shows(seen)]
        if len(alike) < ENOUGH and isinstance(run(changed), Pass):
            return judge(outcome, name, value)
        changed.shared.unhelped.append(outcome.seen)
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
    steady_alone = note(f"at temperature 0; {outcome.trials} drawn did not show it")
    return replace(again, trials=outcome.trials + again.trials, notes=(*again.notes, steady_alone))


def judge(outcome: Outcome, name: str, value: object) -> Fail:
    """Return the failure of a probe that passes without this value."""
    own = failures.DOCUMENT_NAMES.get(name, name)
    key = own if own == STOPWORDS else f"parameters.{own}"
    changes = {"temperature": Remedy.LOWER_TEMPERATURE, **dict.fromkeys(PENALTIES, Remedy.TAKE_OUT_SETTING)}
    remedy = Reason(changes.get(name, Remedy.CORRECT_SETTING), key=key)
    failure = failing(outcome, Stage.START, remedy, note(f"without {name} {value} it passes"))
    return replace(failure, trials=outcome.trials + 1, agreed=None, tried=Tried(1, 1))


def controlled(
    rows: list[ProbeRow], controls: Controls, ask: Ask, left: float, report: Progress
) -> list[ProbeRow]:
    """Return the rows; those that pass without one setting, and fail with it, are blamed on that setting.

    ``ask``  runs probes against an engine. ``left``  seconds of the run.
    """
    lead, suspects = _lead(rows), [row for row in rows if _suspect(row)]
    if lead is None:
        return rows
    seconds, named = min(left, SECONDS), None
    if (STARTS if isinstance(lead.outcome, Fail) else CONFIRMED) * controls.seconds <= seconds:
        named = _without(lead, suspects, controls, ask, time.monotonic() + seconds, report)
    return rows if named is None else [named.get(row.probe, row) for row in rows]


def spared(rows: Sequence[ProbeRow], controls: Controls | None) -> float:
    """Return the seconds that control starts may take: none where no setting may explain a failure."""
    return 0.0 if controls is None or _lead(rows) is None else SECONDS


def _lead(rows: Sequence[ProbeRow]) -> ProbeRow | None:
    """Return the failure that a setting may explain; ``None`` without one, and where the cause is named."""
    suspects = [row for row in rows if _suspect(row)]
    failed = (r for r in suspects if isinstance(r.outcome, Fail) and not r.outcome.follows)
    lead = next(failed, None) or next((r for r in suspects if isinstance(r.outcome, NotShown)), None)
    return None if any(_is_named(row) for row in rows) else lead


def _without(
    lead: ProbeRow,
    suspects: Sequence[ProbeRow],
    controls: Controls,
    ask: Ask,
    deadline: float,
    report: Progress,
) -> Mapping[str, ProbeRow] | None:
    """Return the failures that one setting explains, by probe; ``None`` where no setting does."""

    def asked(left_out: Collection[Setup], some: Sequence[ProbeRow]) -> Mapping[str, ProbeRow]:
        probes = [one for one in every() if one.name in {row.probe for row in some}]
        try:
            with controls.start(left_out, deadline - time.monotonic()) as served:
                return {row.probe: row for row in ask(served, probes)}
        except ImporterError:
            return {}

    def passes(left_out: Collection[Setup], _seconds: float) -> bool:
        return _passed(asked(left_out, [lead]).get(lead.probe))

    for group in controls.groups(lead):
        setup = start_trials.culprit(group, passes, deadline, report)
        if setup is None:
            continue
        if passes((), 0.0):  # with the setting, too: it failed by chance
            return {}
        without = asked([setup], suspects)
        ended = {name for name, row in without.items() if counts_as_passed(row.outcome)}
        return {row.probe: _named(row, setup) for row in suspects if row.probe in ended}
    return None


def beside_scaling(rows: Sequence[ProbeRow], stretched: Setup | None) -> list[ProbeRow]:
    """Return the rows; what a model does not show has a note on positions that are stretched for long texts.

    It is no fault, and no start without them is tried: a model that does a thing at times passes by chance.
    """
    if stretched is None:
        return list(rows)
    scaling = f"{stretched.name} in {stretched.key}"
    seen = note(f"{scaling} stretches positions for long texts: short ones may do better without it")
    return [
        replace(row, outcome=replace(row.outcome, notes=(*row.outcome.notes, seen)))
        if isinstance(row.outcome, NotShown) and row.outcome.remedy is None
        else row
        for row in rows
    ]


def _suspect(row: ProbeRow) -> bool:
    """Return whether a failure may be that of a setting which no remedy names, or calls that no form has."""
    if isinstance(row.outcome, NotShown):
        return asks_for(row.outcome, *INFERRED)
    if not isinstance(row.outcome, Fail | Inconclusive) or row.probe == served_engine.STOPS_CLEANLY:
        return False
    unnamed = row.outcome.remedy is None or asks_for(row.outcome, *INFERRED)
    return row.outcome.attribution in BY_ANSWERS or (row.outcome.attribution == CONFIGURATION and unnamed)


def _is_named(row: ProbeRow) -> bool:
    """Return whether a failure has a part and a remedy that rest on more than answers."""
    return isinstance(row.outcome, Fail) and row.probe != served_engine.STOPS_CLEANLY and not _suspect(row)


def _passed(row: ProbeRow | None) -> bool:
    return row is not None and isinstance(row.outcome, Pass)


def _named(row: ProbeRow, setup: Setup) -> ProbeRow:
    """Return the failure as one of a setting."""
    seen, remedy = note(CONTROLLED), Reason(Remedy.START_WITHOUT, setting=setup.reason)
    return replace(row, outcome=failing(row.outcome, STAGE[setup.attribution], remedy, seen))
