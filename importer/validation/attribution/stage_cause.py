"""The part at fault: that of the first broken stage of the exchange that was judged wrong.

Limits of an engine: a failure that its server or its parsers are known to have is not the document's.

What a server cannot do stands in ``Engine.offers``, measured for each version. What its parsers cannot do
with the model's format stands in the proof. The outcome keeps the exchange that shows the limit.
"""

from __future__ import annotations

from dataclasses import replace

from importer import backends
from importer.reasons import Reason, ReasonKind
from importer.validation import diagnosis, proof_check
from importer.validation.calls import CallReason
from importer.validation.context import Context, Judgement
from importer.validation.errors import ExchangeError
from importer.validation.expectations import CommonReason
from importer.validation.mutations import BY_PARSERS
from importer.validation.outcome import (
    Fail,
    Inconclusive,
    NotApplicable,
    Outcome,
    Pass,
    Stage,
    Tried,
    asks_for,
    broken_in_answer,
    by_stage,
    counts_as_passed,
    failing,
)
from importer.validation.probe import Probe
from importer.validation.probes.chat import SpecialTokensReason, StreamReason
from importer.validation.probes.reasoning import reasoning_cut
from importer.validation.proof_check import none_better
from importer.validation.remedy import PARSER_OF, Remedy
from importer.validation.trace import Better, Trace, trace

REPEATS = 4  # of a request, until servers behind one address are taken for alike


def placed(outcome: Outcome, ctx: Context) -> Outcome:
    """Return the outcome with the facts that it rests on, and the part and the change that they show.

    Where they show none, the judge's own attribution stays, made specific by the proof and the log.
    """
    wrong = _judged(outcome, ctx)
    traced = None if wrong is None else trace(ctx, wrong)
    if wrong is None or traced is None or not isinstance(outcome, Fail | Inconclusive):
        return diagnosis.with_remedy(outcome, ctx)
    shown = replace(outcome, facts=traced.facts)
    placed_at = _placed(shown, wrong, traced, ctx)
    if placed_at is None:
        return diagnosis.with_remedy(shown, ctx)
    return diagnosis.altered(placed_at, ctx.promise)


def _judged(outcome: Outcome, ctx: Context) -> Judgement | None:
    """Return the judgement that the outcome comes from."""
    return next((one for one in reversed(ctx.judged_wrong) if one.outcome.gives(outcome.reason.kind)), None)


def _placed(outcome: Fail | Inconclusive, wrong: Judgement, traced: Trace, ctx: Context) -> Outcome | None:
    """Return the outcome with the part of the first broken stage between the prompt and the answer."""
    broken = broken_in_answer(traced.facts)
    if broken is None:
        return failing(outcome, None) if _contradicted(outcome, traced) else None
    if broken.stage is Stage.DRAWN:
        return diagnosis.of_the_model(outcome, ctx) if _blames_reading(outcome) else None
    if broken.stage is Stage.PARSED:
        if traced.better is None:
            return None
        decodes = traced.better.key == "tool_parser" and proof_check.encodes_twice(ctx)
        if decodes:  # what the model encodes once more than its template
            return failing(outcome, Stage.DRAWN, Reason(Remedy.DECODE_ONCE_MORE))
        return failing(outcome, Stage.PARSED, _change(traced.better, ctx))
    if broken.stage is Stage.WHOLE and not wrong.stream:
        own = outcome.remedy if outcome.gives(CallReason.OLD_FIELD) else _reads(outcome, wrong, traced, ctx)
        return failing(outcome, Stage.WHOLE, own or outcome.remedy)
    return None


def _by_turns(outcome: Fail | Inconclusive, wrong: Judgement, ctx: Context) -> bool:
    """Return whether the same request is answered right at times, and as wrong as before at others."""
    try:
        seen = [wrong.judge(ctx.ask(wrong.prompt)) for _ in range(REPEATS)]
    except ExchangeError:
        return False
    as_before = (one for one in seen if one.gives(outcome.reason.kind) or one.attribution == "configuration")
    return any(isinstance(one, Pass) for one in seen) and any(as_before)


def _contradicted(outcome: Fail | Inconclusive, traced: Trace) -> bool:
    """Return whether a parser is blamed, and an answer was read and served right when looked at."""
    known = by_stage(traced.facts)
    right = all(known[stage].state == "holds" for stage in (Stage.PARSED, Stage.WHOLE))
    return right and Stage.STREAM not in known and asks_for(outcome, *PARSER_OF)


def _blames_reading(outcome: Fail | Inconclusive) -> bool:
    """Return whether a judge blames a parser, or the engine that runs it."""
    return isinstance(outcome, Fail) and (outcome.attribution == "engine" or asks_for(outcome, *PARSER_OF))


def _change(better: Better, ctx: Context) -> Reason:
    """Return the change of a document, or of the model's files, to a parser that reads its text."""
    proof = ctx.proof
    if better.parser is None:
        return Reason(Remedy.LEAVE_OUT_PARSER, key=better.key)
    if proof is not None and backends.of(proof.engine).infers:
        return Reason(
            Remedy.SET_PARSER_TYPE,
            key=better.key,
            parser=better.parser,
            claimed=proof_check.claimed(better.key, ctx),
            named=better.named,
            engine=proof.engine,
            version=proof.version,
        )
    verdicts = () if proof is None else proof.verdicts[better.key]
    why = next((v.reason for v in verdicts if v.parser == better.named), None)
    return Reason(
        Remedy.SET_PARSER,
        key=better.key,
        parser=better.parser,
        named=better.named if why is not None else None,
        why=why,
    )


def _reads(outcome: Fail | Inconclusive, wrong: Judgement, traced: Trace, ctx: Context) -> Reason | None:
    """Return the remedy for an engine whose answer is not what its own parsers read."""
    if _by_turns(outcome, wrong, ctx):
        return Reason(Remedy.SERVERS_ALIKE)
    fields = by_stage(traced.facts)[Stage.PARSED].reason.fields
    parser = fields.get("tool_parser") or fields.get("reasoning_parser")
    if parser is not None and (traced.change is None or traced.change.kind in BY_PARSERS):
        return Reason(Remedy.OTHER_VERSION_READS, parser=parser, change=traced.change)
    return None if traced.change is None else Reason(Remedy.ANSWERS_UNALTERED, change=traced.change)


STREAMED = "streamed"  # the name of that part of a probe
CASE = "thinking-cut"  # of the proof
ONLY_STREAMED = (CommonReason.WHOLE_IS_RIGHT, StreamReason.DIFFERS, SpecialTokensReason.ONLY_STREAMED)


class LimitReason(ReasonKind):
    """What no parser of the engine does with the format of the model."""

    CUT_THOUGHTS = (
        "cut-thoughts",
        "no reasoning parser of {engine} that reads this model's thoughts reads a cut one",
    )
    IN_PIECES = (
        "in-pieces",
        "no tool parser of {engine} that reads this model's calls reads all of them in pieces",
    )


def within(outcome: Outcome, probe: Probe, ctx: Context) -> Outcome:
    """Return the outcome; not applicable where a limit of the engine explains why the probe did not pass."""
    limit = None if counts_as_passed(outcome) else explaining(outcome, probe, ctx)
    if limit is None:
        return outcome
    return NotApplicable(
        limit,
        trials=outcome.trials,
        evidence=outcome.evidence,
        agreed=outcome.agreed,
        notes=(outcome.reason, *outcome.notes),
    )


def explaining(outcome: Outcome, probe: Probe, ctx: Context) -> Reason | None:
    """Return the limit that explains a failure of the probe; ``None`` where there is none."""
    feature = probe.feature
    if feature is not None and not _concerns(probe, ctx):
        feature = None
    lacking = ctx.promise.lacks(feature) if feature is not None else None
    if lacking is not None or ctx.proof is None:
        return lacking
    engine = f"{ctx.proof.engine} {ctx.proof.shown}"
    if probe is reasoning_cut and none_better(
        "reasoning_parser", ctx, lambda verdict: CASE in verdict.failed
    ):
        return Reason(LimitReason.CUT_THOUGHTS, engine=engine)
    only_streamed = STREAMED in outcome.within or outcome.gives(*ONLY_STREAMED)
    if (
        only_streamed
        and _calls(ctx)
        and none_better("tool_parser", ctx, lambda verdict: bool(verdict.losses))
    ):
        return Reason(LimitReason.IN_PIECES, engine=engine)
    return None


def _concerns(probe: Probe, ctx: Context) -> bool:
    """Return whether the document sets a value that the probe's limit is about, where it is about some."""
    about = probe.concerns
    return not about or any(name in ctx.promise.sampling for name in about)


def _calls(ctx: Context) -> bool:
    """Return whether the last chat has tools."""
    requests = [e.request for e in ctx.log if e.request is not None and "messages" in e.request]
    return bool(requests and requests[-1].get("tools"))


# Changes that the reading of a text without the server has shown already: ``within`` tells no other.
READ = (Remedy.SET_PARSER, Remedy.SET_PARSER_TYPE, Remedy.LEAVE_OUT_PARSER)


def remedied(outcome: Outcome) -> Outcome:
    """Return the outcome; what an engine does wrong is to be corrected in it, or in what stands before it."""
    if not isinstance(outcome, Fail) or outcome.attribution != "engine" or outcome.remedy is not None:
        return outcome
    return replace(outcome, remedy=Reason(Remedy.ANSWERS_UNALTERED, change=outcome.reason))


def tried(outcome: Outcome) -> Outcome:
    """Return the outcome; a change of parsers by which the answer was read right counts as tried."""
    if not isinstance(outcome, Fail | Inconclusive) or outcome.remedy is None or outcome.tried is not None:
        return outcome
    broken = broken_in_answer(outcome.facts)
    seen = broken is not None and broken.stage is Stage.PARSED and outcome.remedy.kind in READ
    return replace(outcome, tried=Tried(1, 1)) if seen else outcome
