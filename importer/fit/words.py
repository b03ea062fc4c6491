"""Amounts of memory in words."""

from __future__ import annotations

from enum import StrEnum

from importer.fit.devices import GIB, Device
from importer.fit.place import Placed
from importer.fit.result import Amount, Fit
from importer.reasons import Reason


class AmountReason(StrEnum):
    """How much of a device may be filled, and with what."""

    OF_NODES = "of-nodes"
    OF_ONE = "of-one"
    OF_SEVERAL = "of-several"
    CACHE = "cache"
    REST = "rest"
    WEIGHTS = "weights"


def gib(size: float) -> str:
    """``15.3 GiB``; what is smaller than half of one in MiB, and small change in KiB."""
    if size >= GIB / 2:
        return f"{size / GIB:.1f} GiB"
    return f"{size / 2**20:.0f} MiB" if size >= 2**20 else f"{size / 2**10:.0f} KiB"


def usable(device: Device, placed: Placed) -> Reason:
    """``21.6 GiB of rtx4090``, or ``4 of 8 h100-80g, 72.8 GiB of each,``."""
    cards, budget = placed.split.cards, gib(placed.budget)
    if cards == device.count == 1:
        return Reason(AmountReason.OF_ONE, budget=budget, device=device.name)
    of = device.count if device.count > cards else None
    kind = AmountReason.OF_NODES if device.kind == "cpu" else AmountReason.OF_SEVERAL
    return Reason(kind, cards=cards, of=of, device=device.name, budget=budget)


def parts(fit: Fit) -> tuple[Reason, ...]:
    """``weights 15.3 GiB, KV cache 144 KiB per token, the rest 1.9 to 4.2 GiB``."""
    weights, cache = fit.term("weights"), fit.term("kv cache")
    rest = Amount.sum(t.amount for t in fit.terms if t not in {weights, cache})
    found = []
    if weights:
        found.append(Reason(AmountReason.WEIGHTS, size=gib(weights.amount.likely)))
    if cache:
        each = gib(cache.amount.likely / max(1, fit.load.context))
        found.append(Reason(AmountReason.CACHE, size=each))
    most = gib(max(rest.high, GIB))
    return (*found, Reason(AmountReason.REST, likely=rest.likely / GIB, high=most))
