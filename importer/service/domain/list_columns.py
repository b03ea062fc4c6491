"""The columns of lists: facts of a document, its newest run and its attention, as storage has them."""

from __future__ import annotations

from collections.abc import Mapping

from importer.app.overview import PublicationState, needs_attention
from importer.config_file.entry_facts import EntryFacts, entry_facts
from importer.config_file.store import StoredDocument
from importer.hub.snapshot import mapping, text
from importer.storage import documents
from importer.storage.documents import LARGEST, OTHER

LONGEST = 500  # characters of a description in a list
PASSED, FAILED = ("pass",), ("fail", "inconclusive")


def columns(stored: StoredDocument, state: PublicationState) -> dict[str, object]:
    """Return the columns of a document in its state; an unknown one is ``None``."""
    kinds = {one["kind"] for one in needs_attention(stored, state)}
    named = {kind if kind in documents.KINDS else OTHER for kind in kinds}
    run = mapping(None if stored.receipt is None else stored.receipt.validation)
    known = (None if stored.receipt is None else stored.receipt.imported_at, run.get("started"))
    times = [at for at in known if isinstance(at, str)]
    listed = {"checked_at": max(times, default=None), "attention": documents.words(named)}
    return _about(entry_facts(stored.data, stored.receipt)) | _run(run) | listed


def _about(facts: EntryFacts) -> dict[str, object]:
    memory = facts.memory
    count = 1 if memory is None else memory.cards
    whole, part = (None, None) if memory is None else (memory.whole, memory.part)
    device = None if memory is None else memory.device
    return {
        "description": facts.description[:LONGEST],
        "license": facts.license,
        "tags": documents.words({tag.lower().replace(" ", "-") for tag in facts.tags}),
        "quantization": facts.quantization,
        "modalities": documents.words({one for one in facts.modalities if " " not in one}),
        "tool_parser": facts.tool_parser, "reasoning_parser": facts.reasoning_parser,
        "context": _bounded(facts.context), "parameters": _bounded(facts.parameters),
        "size": documents.size_of(facts.parameters), "weights": _bounded(facts.weights),
        "memory": None if memory is None else _bounded(memory.bytes),
        "device": device if count == 1 or device is None else f"{count}x{device}", "devices": count,
        "whole_bytes": _bounded(whole), "part_bytes": _bounded(part),
    }  # fmt: skip


def _bounded(number: int | None) -> int | None:
    return None if number is None or number > LARGEST else number


def _run(run: Mapping[str, object]) -> dict[str, object]:
    """Return the columns of the newest whole run, whose text may be of any form."""
    engine, outcomes = mapping(run.get("engine")), run.get("outcomes")
    ended = [mapping(one).get("outcome") for one in outcomes] if isinstance(outcomes, list) else []
    spent = [n for n in mapping(run.get("seconds")).values() if isinstance(n, int | float)]
    return {
        "run_engine": text(engine.get("name")), "run_version": text(engine.get("version")),
        "run_at": text(run.get("started")),
        "run_passed": sum(one in PASSED for one in ended) if run else None,
        "run_failed": sum(one in FAILED for one in ended) if run else None,
        "run_total": len(ended) if run else None, "run_seconds": sum(spent) if run else None,
    }  # fmt: skip
