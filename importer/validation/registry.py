"""The probes by name, the document that each one needs, and a probe for a question of the user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial

from importer.chat_template.samples import Tool
from importer.engines.base import OFFERS
from importer.errors import UsageError
from importer.reasons import Reason, ReasonKind
from importer.validation import served_engine
from importer.validation.calls import both_ways, judge_call
from importer.validation.client import trim
from importer.validation.context import Context
from importer.validation.expectations import Expectations, no_chat, no_tools
from importer.validation.outcome import Outcome, Pass
from importer.validation.probe import Probe
from importer.validation.probes import BY_NAME, every
from importer.validation.probes.chat import judge_plain_chat
from importer.validation.prompts import Prompt, user
from importer.validation.reply import Reply


class OwnReason(ReasonKind):
    """The answer to the question."""

    ANSWER = "answer", "{text}"


SHOWN = 4000  # characters of an answer


def own_question(text: str, tools: tuple[Tool, ...] = ()) -> Probe:
    """Return a probe for a question of the user; with ``tools`` the answer must be a structured call that is
    valid to one schema.
    """
    prompt = Prompt("own-question", (user(text),), tools)

    def run(ctx: Context) -> Outcome:
        if tools:
            return both_ways(ctx, prompt, partial(judge_call, prompt=prompt))
        return ctx.judged(prompt, partial(judge, markers=ctx.promise.markers))

    lesson = "A model may pass every question of others and fail the one that it is wanted for."
    return Probe(prompt.name, lesson, no_tools if tools else no_chat, run)


def judge(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge the answer to a question without a known right answer, and quote it."""
    outcome = judge_plain_chat(reply, markers)
    if not isinstance(outcome, Pass):
        return outcome
    return replace(outcome, reason=Reason(OwnReason.ANSWER, text=trim(reply.content.strip(), SHOWN)))


# Expectations that differ in one value: the last one to which a probe applies is its condition.
PROMISES = {
    "the document names a context": Expectations(context=2048),
    "a tool parser is named": Expectations(tool_parser="x"),
    "a reasoning parser is named": Expectations(reasoning_parser="x"),
    "sampling is set at the start": Expectations(sampling={"temperature": 0.6}),
    "the engine is known to offer it": Expectations(offers=frozenset(OFFERS)),
    "the document takes images": Expectations(images=2),
    "the model embeds, ranks, classifies or rewards": Expectations(kind="reward"),
    "the model transcribes": Expectations(kind="transcription"),
    "the model chats": Expectations(),
    "the model does not chat": Expectations(chats=False),
}


def listed() -> Iterator[tuple[str, str, str]]:
    """Yield name, condition and lesson of every probe, in the order of a report."""
    for probe in every():
        when = [name for name, promise in PROMISES.items() if probe.needs(promise) is None]
        yield probe.name, "always" if len(when) == len(PROMISES) else when[-1], probe.lesson
    yield served_engine.STOPS_CLEANLY, "always", served_engine.STOP_LESSON


def named(names: Sequence[str]) -> tuple[Probe, ...]:
    """Return the probes of these names, in the order of a report; raises UsageError: "unknown-probe" or
    "broken-part".

    ``stops-cleanly`` is valid, and has no probe here: it always follows.
    """
    known = [name for name, _, _ in listed()]
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 3, 0.3) or known[:3]
            raise BY_NAME.fault(name) or UsageError("unknown-probe", name=name, near=", ".join(near))
    return tuple(probe for probe in every() if probe.name in names)
