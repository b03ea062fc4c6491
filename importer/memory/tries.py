"""Settings that would start a model on a device where those of a document may not: the least loss first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from importer.memory.devices import GIB
from importer.memory.judgement import CONTEXT, judge, rounded
from importer.memory.parallelism import (
    EAGER,
    FULLER_SHARE,
    KV_DTYPE,
    PIPELINE,
    SHARE,
    SHORTEST,
    SLOTS,
    TENSOR,
    FitRequest,
    LoadCase,
    divides,
)
from importer.memory.planner import with_fp8
from importer.memory.plans import TYPICAL

MOST = 3  # ways that are named
FEWER = 32  # sequences at the same time
OFFLOAD, TEXT_ONLY = "engine_args.cpu_offload_gb", "engine_args.language_model_only"

Change = Mapping[str, object]


def tries(case: LoadCase, values: FitRequest) -> tuple[Change, ...]:
    """Return up to three changes of ``values`` that start by the same judgement, each of the least loss.

    Where no single one does, the first of them together may.
    """
    if not case.planned or case.device.memory is None or not case.device.is_card:
        return ()
    single = [*_changes(case, values)]
    together: list[Change] = []
    for change in single:
        together.append({**(together[-1] if together else {}), **change})
    fits = (change for change in (*single, *together[1:]) if _starts(case, values, change))
    found: list[Change] = []
    for change in fits:
        if len(found) < MOST and not any(one.items() <= change.items() for one in found):
            found.append(change)
    return tuple(found)


def _starts(case: LoadCase, values: FitRequest, change: Change) -> bool:
    return judge(case, replace(values, values={**values.values, **change})).word == "fits"


def _changes(case: LoadCase, values: FitRequest) -> Iterator[Change]:
    """Yield changes from the least loss to the most: none, waiting, speed, precision, length, pictures."""
    device, judged = case.device, judge(case, values)
    split = judged.placed.split
    most = case.most_share(judged.fit.load)
    if judged.placed.share > most or judged.placed.share < min(FULLER_SHARE, most):
        yield {SHARE: min(FULLER_SHARE, most)}
    if case.running(split) > FEWER:
        yield {SLOTS: FEWER}
    cards = [n for n in (2, 4, 8) if split.tensor < n <= min(device.count, device.node)]
    stages = {PIPELINE: 1} if split.pipeline > 1 else {}
    yield from ({TENSOR: n, **stages} for n in cards if divides(case.config, case.shape, n))
    if not judged.fit.load.eager:
        yield {EAGER[0]: True}
    if with_fp8(replace(case, request=replace(values, fixed=()))) is not None:
        yield {KV_DTYPE: "fp8"}
    held = rounded(judged.placed.longest.context)
    if min(SHORTEST, case.context) <= held < (values.count(CONTEXT) or case.context):
        yield {CONTEXT: held}
    if case.shape.tower and not judged.fit.load.text_only:
        yield {TEXT_ONLY: True}
    short = min(values.count(CONTEXT) or case.context, TYPICAL)
    least = judge(case, replace(values, values={**values.values, CONTEXT: short}))
    over = least.fit.total.likely + least.placed.spare - least.placed.budget
    weights = least.fit.term("weights")
    if weights is not None and 0 < over < weights.amount.likely // 2:
        yield {OFFLOAD: -(-over // GIB), CONTEXT: short}
