"""``importer fit``: the fit of a document, estimated, measured, or on each device."""

from __future__ import annotations

import argparse
from collections.abc import Container, Mapping
from functools import partial
from typing import Any

from importer import backends
from importer.app import approvals
from importer.app.measure import device_answers, measure, measure_document
from importer.app.session import ImportSession
from importer.cli import output
from importer.document.document_keys import differences
from importer.document.review import change_json
from importer.document.store import Store, StoredDocument, named
from importer.hub.local import ANYWHERE
from importer.memory.choose import Choice
from importer.memory.device_answers import Answer, DeviceAnswer
from importer.memory.devices import BY_MAKER, GIB
from importer.memory.measured import Measured
from importer.sentences import counted

WORDS = {
    Answer.WHOLE: "all", Answer.MAY_NOT_START: "may not start", Answer.NO: "too little",
    Answer.UNKNOWN: "unknown", Answer.NOT_APPLICABLE: "not applicable",
}  # fmt: skip


def fit(arguments: argparse.Namespace) -> None:
    """Run the command; raises what a measurement raises."""
    store, stored = named(arguments.name, arguments.folder)
    receipt = stored.need_receipt()
    if arguments.measure or arguments.log is not None:
        _measure(stored, store, arguments)
        return
    if arguments.devices is not None:
        _devices(stored, arguments.devices or BY_MAKER.values(), as_json=arguments.json)
        return
    _print(stored, receipt.fit or {}, as_json=arguments.json)


def _print(stored: StoredDocument, record: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.json_line({"schema": 1, "name": stored.name, "fit": record or None})
        return
    if not record:
        output.note(f"{stored.name} has no estimate: import it again.")
        return
    output.console().print(output.fit(record))
    for line in output.tries(record.get("try") or ()):
        output.note(line)
    if (ways := output.plans(record)) is not None:
        output.console().print(ways)


def _devices(stored: StoredDocument, kinds: Container[str], *, as_json: bool) -> None:
    """Print what each device of these kinds holds, the most first; a line of JSON for each."""
    with output.progress("asking each device") as progress:
        found = []
        for one in device_answers(stored, ANYWHERE, kinds):
            found.append(one)
            progress(one.device.name)
    found.sort(key=DeviceAnswer.order)
    if as_json:
        output.json_lines({"schema": 1, "name": stored.name, **one.to_json()} for one in found)
        return
    rows = [
        (
            one.device.name, f"{(one.device.memory or 0) / GIB:g} GiB", answered(one),
            "" if one.whole_on is None else one.whole_on.label,
            (one.device.engine or "") if backends.of(stored.backend).planned else "",
        )
        for one in found if one.answer is not Answer.NOT_APPLICABLE
    ]  # fmt: skip
    head = ("device", "memory", "one holds", "all of it on", "requires")
    output.console().print(output.table(head, rows, f"{stored.name} for {stored.backend}"))
    if left_out := len(found) - len(rows):
        output.note(
            f"Not applicable: {counted(left_out, 'device', 'devices')}, where {stored.backend} does not run."
        )


def answered(one: DeviceAnswer) -> str:
    """Return an answer in a few words."""
    if one.answer is Answer.PART:
        return f"{one.tokens:,} tokens" + (", fp8 cache" if one.fp8 else "")
    return WORDS[one.answer]


def _measure(stored: StoredDocument, store: Store, arguments: argparse.Namespace) -> None:
    """Measure, write what was chosen, and print it with what changed."""
    if arguments.log is None:
        approvals.need(stored)
    with (
        output.progress(stored.name if arguments.log else f"{stored.name} with random weights") as progress,
        ImportSession() as bench,
    ):
        start = partial(measure, engine_name=stored.backend, places=ANYWHERE, progress=progress)
        if arguments.log is not None:
            from importer.app import start_log

            text = start_log.read(stored, arguments.log)
            start = partial(start_log.measured_by_log, log=text, places=ANYWHERE)
        found, settled = measure_document(stored, store, bench, ANYWHERE, start, progress)
    again = store.load(stored.name)
    if not arguments.json:
        output.always(told(found))
        for change in differences(stored.data, again.data):
            output.note(f"changed: {output.change(change_json(change))}.")
        if (why := unlike(found, settled.plan.fit, settled.plan.target.version)) is not None:
            output.note(f"{stored.name}: {why}")
        output.note(f"review: {again.review}.")
    _print(again, again.need_receipt().fit or {}, as_json=arguments.json)


def unlike(found: Measured, choice: Choice, version: str | None) -> str | None:
    """Return why the settings rest on the estimate in spite of a measurement; ``None`` where they do not."""
    if choice.measured is not None:
        return None
    if version != found.version:
        return (
            f"the settings rest on the estimate: they are for {version}, and the run was of {found.version}."
        )
    differs = None if choice.fit is None else found.difference(choice.fit.load)
    if differs is None:
        return "the settings rest on the estimate: the measurement is of another device."
    key, value, run = differs
    return f"the settings rest on the estimate: {key} is {value}, and was {run} in the run."


def told(found: Measured) -> str:
    """Return a measurement in one line."""
    figures = found.reported
    parts = {
        "weights": figures.weights, "activations": figures.activations, "graphs": figures.graphs,
        "all beside the cache": found.beside, "cache": figures.cache,
    }  # fmt: skip
    sizes = ", ".join(f"{what} {size / GIB:.2f} GiB" for what, size in parts.items() if size is not None)
    tokens = "" if figures.tokens is None else f", {figures.tokens:,} tokens of cache"
    where = ", ".join(found.cards[:1]) or f"{found.device.get('name')}"
    where += f", {found.seconds:.0f} s" if found.seconds else ""
    ended = "" if found.served else "; it ended, for the context does not fit"
    return f"{found.name} on {where}: {sizes}{tokens}{ended}."
