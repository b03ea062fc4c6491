"""Amounts of memory in words."""

from __future__ import annotations

from importer.fit.devices import GIB, Device
from importer.fit.place import Placed
from importer.fit.result import Amount, Fit


def gib(size: float) -> str:
    """``15.3 GiB``; what is smaller than half of one in MiB, and small change in KiB."""
    if size >= GIB / 2:
        return f"{size / GIB:.1f} GiB"
    return f"{size / 2**20:.0f} MiB" if size >= 2**20 else f"{size / 2**10:.0f} KiB"


def usable(device: Device, placed: Placed) -> str:
    """``21.6 GiB of rtx4090``, or ``4 of 8 h100-80g, 72.8 GiB of each,``."""
    cards = placed.split.cards
    if cards == device.count == 1:
        return f"{gib(placed.budget)} of {device.name}"
    of = f" of {device.count}" if device.count > cards else ""
    what = f"memory nodes of {device.name}" if device.kind == "cpu" else device.name
    return f"{cards}{of} {what}, {gib(placed.budget)} of each,"


def parts(fit: Fit) -> str:
    """``weights 15.3 GiB, KV cache 144 KiB per token, the rest 1.9 to 4.2 GiB``."""
    weights, cache = fit.term("weights"), fit.term("kv cache")
    rest = Amount.sum(t.amount for t in fit.terms if t not in {weights, cache})
    said = [f"weights {gib(weights.amount.likely)}"] if weights else []
    said += [f"KV cache {gib(cache.amount.likely / max(1, fit.load.context))} per token"] if cache else []
    return ", ".join([*said, f"the rest {rest.likely / GIB:.1f} to {gib(max(rest.high, GIB))}"])
