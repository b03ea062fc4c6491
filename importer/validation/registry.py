"""The probes by name, and the document that each one needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from importer.engines.base import OFFERS
from importer.errors import UsageError
from importer.validation import served_engine
from importer.validation.expectations import Expectations
from importer.validation.probe import Probe
from importer.validation.probes import BY_NAME, every

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
