"""Limits of an engine: a failure that its server or its parsers are known to have is not the document's.

What a server cannot do stands in ``Engine.offers``, measured for each version. What its parsers cannot do
with the model's format stands in the proof. The outcome keeps the exchange that shows the limit.
"""

from __future__ import annotations

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.expectations import CommonReason
from importer.validation.outcome import NotApplicable, Outcome, counts_as_passed
from importer.validation.probe import Probe
from importer.validation.probes import no_special_tokens, reasoning_cut, stream_equals_whole
from importer.validation.proof_check import none_better

STREAMED = "streamed"  # the name of that part of a probe
CASE = "thinking-cut"  # of the proof
ONLY_STREAMED = (
    CommonReason.WHOLE_IS_RIGHT,
    stream_equals_whole.StreamReason.DIFFERS,
    no_special_tokens.SpecialTokensReason.ONLY_STREAMED,
)


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
        outcome.trials,
        outcome.evidence,
        agreed=outcome.agreed,
        notes=(outcome.reason, *outcome.notes),
    )


def explaining(outcome: Outcome, probe: Probe, ctx: Context) -> Reason | None:
    """Return the limit that explains a failure of the probe; ``None`` where there is none."""
    feature = getattr(probe, "FEATURE", None)
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
    about = getattr(probe, "CONCERNS", ())
    return not about or any(name in ctx.promise.sampling for name in about)


def _calls(ctx: Context) -> bool:
    """Return whether the last chat has tools."""
    requests = [e.request for e in ctx.log if e.request is not None and "messages" in e.request]
    return bool(requests and requests[-1].get("tools"))
