"""The check of memory: weights, KV cache and engine against what is free here, or on the cards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from importer.engines import machine
from importer.engines.deaths import CONFIGURATION
from importer.engines.doctor.case import GB, VLLM, DoctorCase, Fine, Result, Trouble, number, text_of, workers
from importer.engines.doctor.kinds import DoctorReason, DoctorRemedy
from importer.engines.vllm import cache_space
from importer.hub import local
from importer.hub.content import weight_files
from importer.hub.snapshot import listed, mapping
from importer.memory.estimate_types import Amount
from importer.memory.rest import ENGINE
from importer.reasons import Reason

SHARE = 0.9  # of each card's memory that vLLM takes by default
LITTLE = 4 * GB  # vLLM by itself takes 2 GB, the rest is for weights and KV cache
NO_LIMIT = 2**60  # the value of control groups v1 without a limit
GIB = 2**30


def memory(case: DoctorCase) -> Result:
    """Compare weights, KV cache and the engine itself with the free memory, or a share of each card."""
    if case.engine is not None and case.engine.needs_card:
        return of_cards(case, machine.card_memory())
    free = available(case)
    need = needed_memory(case)
    if need is None:
        reason = Reason(DoctorReason.MEMORY, free=free / GB)
        if free >= LITTLE:
            return Fine(reason)
        return Trouble(reason, Reason(DoctorRemedy.END_PROGRAMS), stops=False)
    takes = Reason(DoctorReason.MEMORY_NEEDED, free=free / GB, likely=need.likely / GB, low=need.low / GB)
    if free >= need.likely:
        return Fine(takes)
    kind = DoctorRemedy.LESS_MEMORY_ON_CPU if case.runs("vllm-cpu") else DoctorRemedy.LESS_MEMORY
    remedy = Reason(kind, gib=max(1, free // GIB))
    swap = 0 if case.runs(*VLLM) else case.swap  # vLLM itself refuses memory that is not free
    return Trouble(takes, remedy, stops=free + swap < need.low)


def of_cards(case: DoctorCase, cards: list[tuple[int, int]]) -> Result:
    """Return whether enough of the cards, each with its (free, total) bytes, have what vLLM takes of each."""
    if not case.runs(*VLLM) or case.document is None or not cards:
        return None
    required = workers(case)
    if required > len(cards):
        few = Reason(DoctorReason.CARDS_FEW, wanted=required, count=len(cards))
        return Trouble(few, Reason(DoctorRemedy.FEWER_CARDS), part=CONFIGURATION)
    share = float(case.document.get("gpu_memory_utilization") or SHARE)
    short = [(free, total) for free, total in cards[:required] if free < share * total]
    if not short:
        free = cards[0][0] / GB
        return Fine(Reason(DoctorReason.CARDS_FREE, wanted=required, count=len(cards), free=free))
    free, total = (size / GB for size in short[0])
    held = tuple(machine.card_holders())
    used = Reason(DoctorReason.CARDS_IN_USE, free=free, total=total, share=share, held=held)
    return Trouble(used, Reason(DoctorRemedy.FREE_THE_CARD))


def available(case: DoctorCase) -> int:
    """Return the bytes that a program could have now: of the machine, and of each control group above it."""
    return min([case.free, *(max(0, limit - used) for limit, used in limits(case))])


def limits(case: DoctorCase) -> Iterator[tuple[int, int]]:
    """Yield limit and use of each control group that has one; pages that can be dropped do not count as
    used.

    psutil has the memory of the machine only, not that of control groups.
    """
    for line in case.text("proc/self/cgroup").splitlines():
        _, names, path = (*line.split(":", 2), "", "")[:3]
        if names and "memory" not in names.split(","):
            continue
        top = case.root / "sys/fs/cgroup" / ("memory" if names else "")
        files = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        steps = [step for step in path.split("/") if step not in {"", ".", ".."}]
        for count in range(len(steps), -1, -1):  # inside a container only the top may exist
            folder = top.joinpath(*steps[:count])
            limit, used, idle = files if names else ("memory.max", "memory.current", "inactive_file")
            most, now = (number(text_of(folder / file)) for file in (limit, used))
            if most is not None and now is not None and most < NO_LIMIT:
                unused = re.search(rf"^{idle} (\d+)", text_of(folder / "memory.stat"), re.MULTILINE)
                yield most, max(0, now - (int(unused[1]) if unused else 0))


def needed_memory(case: DoctorCase) -> Amount | None:
    """Return the bytes of the document on this machine; ``None`` for weights of unknown size."""
    weights = _weights(case)
    if weights is None or case.document is None:
        return None
    engine = ENGINE["cpu" if case.runs(*VLLM) else "metal"]
    return Amount.sum((weights, _cache(case), engine))


def _weights(case: DoctorCase) -> Amount | None:
    """Return the weights of the receipt's estimate for this kind of device, else the bytes of the files."""
    fit = mapping(case.fit)
    if mapping(fit.get("device")).get("kind") == _kind(case):
        for term in listed(mapping(fit.get("estimate")).get("terms")):
            if term.get("part") == "weights":
                return _amount(term)
    if case.weights is not None:
        sizes = [f.size or 0 for f in weight_files(local.listing(case.weights))]
        return Amount(int(sum(sizes) * 0.9), sum(sizes), sum(sizes)) if sizes else None
    return _amount(mapping(fit.get("weights")))


def _cache(case: DoctorCase) -> Amount:
    """Return the KV cache, that vLLM allocates at its start; on other engines it grows with the requests."""
    if case.runs("vllm-cpu") and case.document is not None:
        configured = (case.document.get("engine_args") or {}).get("kv_cache_memory_bytes")
        space = cache_space(case.document)
        size = int(space) * GIB if space.isdecimal() else configured if isinstance(configured, int) else 0
        return Amount.exactly(size)
    for term in listed(mapping(mapping(case.fit).get("estimate")).get("terms")):
        if term.get("part") == "kv cache" and (amount := _amount(term)):
            return Amount(0, amount.likely, amount.high)
    return Amount.exactly(0)


def _amount(bounds: Mapping[str, object]) -> Amount | None:
    values = [bounds.get(bound) for bound in ("low", "likely", "high")]
    whole = [value for value in values if isinstance(value, int)]
    return Amount(*whole) if len(whole) == 3 else None


def _kind(case: DoctorCase) -> str:
    return "metal" if case.system == "darwin" and not case.runs(*VLLM) else "cpu"
