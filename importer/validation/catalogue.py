"""The probes by name: which there are, what each needs of a document, and those that somebody asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from importer.engines.base import OFFERS
from importer.errors import UsageError
from importer.validation.probes import PROBES, Probe, stops_cleanly
from importer.validation.promise import Promise

# Documents that differ in one thing; what a probe applies to tells what it needs.
PROMISES = {
    "tools, and the engine is known to offer it": Promise(tool_parser="x", offers=frozenset(OFFERS)),
    "the document names a context": Promise(context=2048),
    "a tool parser is named": Promise(tool_parser="x"),
    "a reasoning parser is named": Promise(reasoning_parser="x"),
    "sampling is set at the start": Promise(sampling={"temperature": 0.6}),
    "clients send stop words": Promise(client_sampling={"stop": ["x"]}),
    "the engine is known to offer it": Promise(offers=frozenset(OFFERS)),
    "the document takes images": Promise(images=2),
    "the model chats": Promise(),
    "the model does not chat": Promise(chats=False),
}


def listed() -> Iterator[tuple[str, str, str]]:
    """Name, what it applies to, and lesson of every probe, in the order of a report."""
    for probe in PROBES:
        when = [name for name, promise in PROMISES.items() if probe.needs(promise) is None]
        yield probe.NAME, "always" if len(when) == len(PROMISES) else when[-1], probe.LESSON
    yield stops_cleanly.NAME, "always", stops_cleanly.LESSON


def named(names: Sequence[str]) -> tuple[Probe, ...]:
    """The probes of these names, in the order of a report; raises UsageError("unknown-probe").

    ``stops-cleanly`` is no probe that asks: whatever is started is stopped, and told.
    """
    known = [name for name, _, _ in listed()]
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 3, 0.3) or known[:3]
            raise UsageError("unknown-probe", name=name, near=", ".join(near))
    return tuple(probe for probe in PROBES if probe.NAME in names)
