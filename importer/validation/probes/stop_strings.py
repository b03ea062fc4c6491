"""The probe of stop strings: the text before one is whole, nothing of it is shown, nothing follows."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from itertools import pairwise

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context, ask_both_ways, together
from importer.validation.diagnosis import endless
from importer.validation.expectations import CommonReason, Expectations, no_chat
from importer.validation.mutations import ends_otherwise
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass
from importer.validation.prompts import COUNT, GREETING, SUM_SILENT
from importer.validation.reply import Reply


class StopStringsReason(ReasonKind):
    """The reasons of ``stop-strings``."""

    NO_MIDDLE = "no-middle", "the answer has no middle to stop in: {content!r}"
    SHOWN = "shown", "the stop string is shown"
    CUT_OUT = "cut-out", "the stop string is cut out, and the answer goes on after it"
    PART_SHOWN = "part-shown", "a part of the stop string is shown: {shown!r}"
    NOT_WHOLE = "not-whole", "the text before the stop string is not whole: it ends in {shown!r}"
    ENDS = "ends", "ends before {stop!r}"
    OTHER = "other", "the model wrote something else this time: {shown!r}"


NAME = "stop-strings"
LESSON = "A stop string that fell across two tokens was shown by half, or cut out while the answer went on."
COUNT_SILENT = replace(COUNT, name="count-silent", switches=SUM_SILENT.switches)
NEVER = "\u2603\u2603"  # in no answer
WORDS = 4  # an answer of fewer has no middle
TRIES = 32  # places from the middle on; an answer that counts to ten has ten


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no chat, or an engine that stops only at tokens."""
    return no_chat(promise) or promise.lacks("stop")


def run(ctx: Context) -> Outcome:
    """Stop in the middle of a known answer: at a word, and across two, where another string stands first."""
    prompt, full, places = COUNT, ctx.first(COUNT), middle(ctx.first(COUNT))
    if not places and full.reasoning.strip():  # it counts in its thoughts, too
        prompt, full = COUNT_SILENT, ctx.first(COUNT_SILENT)
        places = middle(full) or middle(replace(full, reasoning=""))
    if full.finish_reason == "length":
        return endless(full, ctx.promise.markers)
    if not places and ctx.first(GREETING).finish_reason != "length":
        prompt, full = GREETING, ctx.first(GREETING)
        places = middle(full)
    if not places:
        return Inconclusive(Reason(StopStringsReason.NO_MIDDLE, content=full.content.strip()[:80]), "model")
    outcomes = {
        s: ask_both_ways(ctx, prompt, partial(judge, full=full, stop=s), stop=[*before, s])
        for s, before in zip(places, ((), (NEVER,)), strict=True)
    }
    return together({repr(stop): outcome for stop, outcome in outcomes.items()})


def middle(full: Reply) -> tuple[str, ...]:
    """Return a word in the middle of the answer, and a string across its left border; each occurs once."""
    words = list(re.finditer(r"\w+", full.content))
    text = full.reasoning + full.content
    half = max(0, len(words) // 2 - 1)
    for left, right in pairwise(words[half : half + TRIES]):
        across = full.content[left.end() - 2 : right.start() + 2]
        if len(words) < WORDS or "\n" in across:
            continue
        if text.count(right.group()) == text.count(across) == 1:
            return right.group(), across
    return ()


def judge(reply: Reply, full: Reply, stop: str) -> Outcome:
    """Judge an answer that must end before ``stop``, beside one without a stop string."""
    shown, before = reply.content.strip(), full.content.partition(stop)[0].strip()
    if stop in reply.content:
        return Fail(Reason(StopStringsReason.SHOWN), "engine")
    if shown == full.content.replace(stop, "").strip():
        return Fail(Reason(StopStringsReason.CUT_OUT), "engine")
    if shown == before and reply.finish_reason == "stop":
        return Pass(Reason(StopStringsReason.ENDS, stop=stop))
    if shown == before:
        return Fail(
            Reason(CommonReason.NOT_STOPPED, finish_reason=reply.finish_reason),
            "engine",
            ends_otherwise("stop", reply),
        )
    if any(shown == (before_raw(full, stop) + stop[:n]).strip() for n in range(1, len(stop))):
        return Fail(Reason(StopStringsReason.PART_SHOWN, shown=shown[-20:]), "engine")
    if shown and before.startswith(shown) and len(before) - len(shown) < len(stop):
        return Fail(Reason(StopStringsReason.NOT_WHOLE, shown=shown[-20:]), "engine")
    if stopped_at(reply) == stop:
        return Pass(Reason(StopStringsReason.ENDS, stop=stop))
    return Inconclusive(Reason(StopStringsReason.OTHER, shown=shown[:80]), "model")


def before_raw(full: Reply, stop: str) -> str:
    """Return the text before the stop string, with white space."""
    return full.content.partition(stop)[0]


def stopped_at(reply: Reply) -> object:
    """Return the stop string that ended the answer, where the engine reports it."""
    choices = [
        choice for data in reply.raw for choice in data.get("choices") or () if isinstance(choice, dict)
    ]
    return next((c["stop_reason"] for c in reversed(choices) if c.get("stop_reason") is not None), None)
