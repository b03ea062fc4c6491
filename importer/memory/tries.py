"""Settings that would start a model on a device where those of a document may not: the least loss first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from importer.memory.case import FULLER_SHARE, LoadCase
from importer.memory.devices import GIB
from importer.memory.engine_keys import CONTEXT, EAGER, KV_DTYPE, PIPELINE, SHARE, SLOTS, TENSOR, FitRequest
from importer.memory.judgement import judge
from importer.memory.parallelism import divides
from importer.memory.planner import SHORTEST, with_fp8
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
    device, plan = case.device, judge(case, values).plan
    split, load = plan.split, plan.fit.load
    most = case.most_share(load)
    if plan.share > most or plan.share < min(FULLER_SHARE, most):
        yield {SHARE: min(FULLER_SHARE, most)}
    if case.running(split) > FEWER:
        yield {SLOTS: FEWER}
    cards = [n for n in (2, 4, 8) if split.tensor < n <= min(device.count, device.node)]
    stages = {PIPELINE: 1} if split.pipeline > 1 else {}
    yield from ({TENSOR: n, **stages} for n in cards if divides(case.config, case.shape, n))
    if not load.eager:
        yield {EAGER[0]: True}
    if with_fp8(replace(case, request=replace(values, fixed=()))) is not None:
        yield {KV_DTYPE: "fp8"}
    context = values.count(CONTEXT) or case.context
    if min(SHORTEST, case.context) <= plan.length < context:
        yield {CONTEXT: plan.length}
    if case.shape.tower and not load.text_only:
        yield {TEXT_ONLY: True}
    short = min(context, TYPICAL)
    least = judge(case, replace(values, values={**values.values, CONTEXT: short})).plan
    over = least.fit.total.likely + least.spare - least.budget
    weights = least.fit.term("weights")
    if weights is not None and 0 < over < weights.amount.likely // 2:
        yield {OFFLOAD: -(-over // GIB), CONTEXT: short}
