"""What each device holds of a model, judged as an import for that device judges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum

from importer.frozen import frozen
from importer.memory.choose import Choice
from importer.memory.devices import Device, unsuited
from importer.memory.engine_keys import CONTEXT, FP8, KV_DTYPE
from importer.memory.judgement import too_old
from importer.reasons import Reason
from importer.sentences import render
from importer.signals.evidence import is_warning

COUNTS = (2, 4, 8)  # of one device that are tried, in one machine


class Answer(StrEnum):
    """Whether a device holds a model."""

    WHOLE = "whole"
    PART = "part"
    MAY_NOT_START = "may-not-start"
    NO = "no"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not-applicable"


ANSWERS = {
    "fits": Answer.WHOLE, "shortened": Answer.PART, "may-not-start": Answer.MAY_NOT_START,
    "too-large": Answer.NO,
}  # fmt: skip


@frozen
class DeviceAnswer:
    """The answer for one device.

    ``tokens``    of the longest sequence, ``None`` without any. ``fp8``  whether keys and values have 8 bits.
    ``whole_on``  the fewest of this device in one machine that hold the whole context.
    """

    device: Device
    answer: Answer
    reason: Reason
    tokens: int | None = None
    fp8: bool = False
    whole_on: Device | None = None

    def order(self) -> tuple[int, int, int]:
        """Return the key of an order: what holds the most of the model first, of those the least memory."""
        return [*Answer].index(self.answer), -(self.tokens or 0), self.device.memory or 0

    def to_json(self) -> dict[str, object]:
        """Return the answer as front ends have it."""
        return {
            "device": self.device.name, "kind": self.device.kind, "memory": self.device.memory,
            "answer": str(self.answer), "tokens": self.tokens, "kv_cache_dtype": FP8 if self.fp8 else "auto",
            "whole_on": None if self.whole_on is None else self.whole_on.label, "reason": render(self.reason),
        }  # fmt: skip


def not_applicable(backend: str, device: Device) -> Reason | None:
    """Return why no document of an engine starts on a device, whatever the model; ``None`` where some do."""
    kind = unsuited(backend, device)
    return too_old(backend, device) if kind is None else Reason(kind, backend=backend)


def answer(backend: str, device: Device, choose: Callable[[Device], Choice]) -> DeviceAnswer:
    """Return the answer for one device; ``choose`` decides on it as an import does."""
    if (apart := not_applicable(backend, device)) is not None:
        return DeviceAnswer(device, Answer.NOT_APPLICABLE, apart)
    choice = choose(device)
    found, why, case = ANSWERS.get(choice.verdict, Answer.UNKNOWN), choice.reason, choice.case
    inner = why.fields.get("reason")
    why = inner if is_warning(why) and isinstance(inner, Reason) else why
    if case is None:
        return DeviceAnswer(device, found, why)
    fp8 = choice.chosen.get(KV_DTYPE) == FP8
    context = choice.chosen.get(CONTEXT, case.context)
    tokens = context if isinstance(context, int) and found is not Answer.NO else None
    found = Answer.PART if found is Answer.WHOLE and fp8 else found
    on = device if found is Answer.WHOLE else _whole_on(device, choose)
    return DeviceAnswer(device, found, why, tokens, fp8 and tokens is not None, on)


def _whole_on(device: Device, choose: Callable[[Device], Choice]) -> Device | None:
    """Return the fewest devices that hold all of the context, with keys and values as the checkpoint has
    them.
    """
    for more in (replace(device, count=n) for n in COUNTS if n <= device.node):
        choice = choose(more)
        if choice.verdict == "fits" and choice.chosen.get(KV_DTYPE) != FP8:
            return more
    return None
