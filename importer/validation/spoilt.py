"""Would a probe pass without the document's sampling? Asked where it did not and a value may be why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from importer.reasons import Reason
from importer.validation.context import Context, Shared
from importer.validation.outcome import Fail, Outcome, Pass, counts_as_passed, failing
from importer.validation.remedy import Remedy


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
    """The document's values that may spoil an answer."""
    given = {k: v for k, v in sampling.items() if k in NEUTRAL and isinstance(v, int | float)}
    return {k: v for k, v in given.items() if (v > WARM if k == "temperature" else v != NEUTRAL[k])}


def without(ctx: Context, outcome: Outcome, run: Run, kept: dict[str, Shared]) -> Outcome:
    """The outcome; a fault of the configuration where one value less makes the probe pass.

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
    """A probe that did not pass, and passes without this value."""
    note = Reason(SpoiltReason.PASSES_WITHOUT, name=name, value=value)
    found = failing(outcome, "configuration", REMEDIES[name], note)
    return replace(found, trials=outcome.trials + 1, agreed=None)
