"""What the receipt's fit says of the machine that a document was written for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importer.document.receipt import Receipt
from importer.exports.base import Device, Options
from importer.exports.kinds import ExportComment, MemoryReason
from importer.reasons import Reason

GIB = 2**30
BESIDE = 8 * GIB  # of a machine's own memory, which vLLM takes beside what is on the cards
KINDS: Mapping[str, Device] = {"cpu": "cpu", "cuda": "gpu"}


def device(options: Options, receipt: Receipt | None) -> Device:
    """What was asked for, else what the document was fitted to, else cards."""
    return options.device or KINDS.get(_kind(receipt), "gpu")


def comments(receipt: Receipt | None, chosen: Device) -> list[Reason]:
    """A warning where the document was fitted to something else."""
    if receipt is None or receipt.fit is None or KINDS.get(_kind(receipt)) == chosen:
        return []
    meant = "NVIDIA cards" if chosen == "gpu" else "processors"
    return [Reason(ExportComment.FITTED_TO_OTHER, meant=meant)]


def memory(receipt: Receipt | None, chosen: Device) -> tuple[int, Reason] | None:
    """GiB of a machine's own memory, and why; ``None`` where no fit tells."""
    fit: Mapping[str, Any] = (receipt.fit if receipt is not None else None) or {}
    if chosen == "gpu" and "weights" in fit:
        why = Reason(MemoryReason.WEIGHTS_ONCE, gib=BESIDE // GIB)
        return _gib(fit["weights"]["likely"] + BESIDE), why
    if chosen == "cpu" and _kind(receipt) == "cpu" and "estimate" in fit:
        high = fit["estimate"]["total"]["high"] * fit.get("cards", 1)
        return _gib(high), Reason(MemoryReason.ESTIMATE)
    return None


def _gib(amount: float) -> int:
    return -int(-amount // GIB)


def _kind(receipt: Receipt | None) -> str:
    return str(receipt.fit["device"].get("kind")) if receipt is not None and receipt.fit else ""
