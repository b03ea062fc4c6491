"""The probe of memory: up to twenty turns of one conversation do not make the engine's memory grow."""

from __future__ import annotations

import time
from collections.abc import Sequence

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.expectations import Expectations, no_chat
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.prompts import Message, Prompt, user
from importer.validation.remedy import Remedy


class MemoryFlatReason(ReasonKind):
    """The reasons of ``memory-flat``."""

    TOO_SHORT = "too-short", "the context is too short for twenty turns"
    NOT_SEEN = "not-seen", "the engine's memory cannot be seen from here"
    CHANGED = "changed", "{mebibytes:+.0f} MiB between turn {turn} and {last}, of {held:,.0f}"
    GROWS = "grows", "its memory grows: {change}"


NAME = "memory-flat"
LESSON = "With every turn of a conversation another copy of it stayed in memory, until the machine had none."
ALONE = True  # it measures memory
TURNS = 20
SECONDS = 8.0  # after which half of the turns are enough
WARM = 5  # turns until caches are made and libraries loaded
EACH = 16  # tokens of a turn, about; twenty of them must fit
SLACK = 64 * 2**20  # bytes that the memory may grow between the fifth and the last turn, and besides
SHARE = 0.05  # of what it was: caches keep the last few conversations


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no chat, or a context too short for twenty turns."""
    short = promise.context is not None and promise.context < 2 * TURNS * EACH // 2
    return no_chat(promise) or (Reason(MemoryFlatReason.TOO_SHORT) if short else None)


def run(ctx: Context) -> Outcome:
    """Request one token after each turn, and measure the memory."""
    if ctx.memory is None or ctx.memory() is None:
        return NotApplicable(Reason(MemoryFlatReason.NOT_SEEN))
    messages: list[Message] = []
    sizes: list[int] = []
    begun = time.monotonic()
    for turn in range(1, TURNS + 1):
        messages.append(user(f"Number {turn}?"))
        ctx.ask(Prompt("twenty-turns", tuple(messages)), max_tokens=1)
        messages.append({"role": "assistant", "content": "Yes."})
        sizes.append(ctx.memory() or 0)
        if turn >= 2 * WARM and time.monotonic() - begun > SECONDS:
            break
    return judge(sizes)


def judge(sizes: Sequence[int]) -> Outcome:
    """Judge the bytes after each turn."""
    before, after = sizes[WARM - 1], sizes[-1]
    change = Reason(
        MemoryFlatReason.CHANGED,
        mebibytes=(after - before) / 2**20,
        turn=WARM,
        last=len(sizes),
        held=before / 2**20,
    )
    if after - before > SLACK + SHARE * before:
        return Fail(
            Reason(MemoryFlatReason.GROWS, change=change), "engine", Reason(Remedy.START_ANEW), len(sizes)
        )
    return Pass(change, trials=len(sizes))
