"""What lists and answers show of a document, made when its version is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import quote

from importer.app.overview import PublicationState, needs_attention
from importer.document.entry_facts import EntryFacts, entry_facts
from importer.document.review import warnings
from importer.document.store import StoredDocument
from importer.document.validation_state import carried
from importer.exports.kinds import loss_json
from importer.exports.localai import losses
from importer.hub.snapshot import mapping, text
from importer.sentences import render
from importer.storage.document_rows import KINDS, OTHER, size_of, words
from importer.storage.documents import LARGEST
from importer.version import __version__

LONGEST = 500  # characters of a description in a list
PASSED, FAILED = ("pass",), ("fail", "inconclusive")


def columns(stored: StoredDocument, state: PublicationState, served: int | None = None) -> dict[str, object]:
    """Return the columns of a document in its state, but those of its version; an unknown one is ``None``.

    ``served``  the version that is served.
    """
    facts, needs = entry_facts(stored.data, stored.receipt), needs_attention(stored, state)
    named = {kind if kind in KINDS else OTHER for kind in (one["kind"] for one in needs)}
    run = mapping(None if stored.receipt is None else stored.receipt.validation)
    known = (None if stored.receipt is None else stored.receipt.imported_at, run.get("started"))
    times = [at for at in known if isinstance(at, str)]
    return _about(stored) | _fact_columns(facts) | _run(run) | {
        "model": (model := _model(stored)), "release": served, "links": _links(stored.name, model, served),
        "backend": stored.backend, "review": state.review,
        "validation": state.validation, "reason": None if state.reason is None else render(state.reason),
        "checked_at": max(times, default=None), "attention": words(named),
        "shown": shown(stored), "shown_by": __version__,
    }  # fmt: skip


def shown(stored: StoredDocument) -> str:
    """Return the JSON of what one document's answer has besides its row, its text and its data."""
    members = {
        "carried": carried(stored), "losses": losses_of(stored), "device": stored.device,
        "per_device": stored.own_device is not None, "warnings": [*warnings(stored)],
    }  # fmt: skip
    return json.dumps(members, ensure_ascii=False, separators=(",", ":"))


def losses_of(stored: StoredDocument) -> list[dict[str, str]] | None:
    """Return what LocalAI would drop, change, add or not pin; ``None`` where there is no entry."""
    found = losses(stored.data, stored.receipt)
    return None if found is None else [loss_json(loss) for loss in found]


def _fact_columns(facts: EntryFacts) -> dict[str, object]:
    memory = facts.memory
    count = 1 if memory is None else memory.cards
    whole, part = (None, None) if memory is None else (memory.whole, memory.part)
    device = None if memory is None else memory.device
    return {
        "description": facts.description[:LONGEST],
        "license": facts.license,
        "tags": words({tag.lower().replace(" ", "-") for tag in facts.tags}),
        "quantization": facts.quantization,
        "modalities": words({one for one in facts.modalities if " " not in one}),
        "tool_parser": facts.tool_parser, "reasoning_parser": facts.reasoning_parser,
        "context": _bounded(facts.context), "parameters": _bounded(facts.parameters),
        "size": size_of(facts.parameters), "weights": _bounded(facts.weights),
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


def _model(stored: StoredDocument) -> str | None:
    """Return the model that an engine would serve; an edit may have put another one there."""
    parameters = stored.data.get("parameters")
    named = parameters.get("model") if isinstance(parameters, Mapping) else None
    return named if isinstance(named, str) else stored.model


def _links(name: str, model: str | None, served: int | None) -> str:
    base = f"/v1/configs/{name}"
    links = {"self": base} | {part: f"{base}/{part}" for part in ("decisions", "receipt", "history")}
    if model is not None:
        links["variants"] = f"/v1/configs?model={quote(model, safe='/')}"
    if served is not None:
        links["entry"] = f"/gallery/{name}.yaml"
    return json.dumps({key: {"href": href} for key, href in links.items()})


def _about(stored: StoredDocument) -> dict[str, object]:
    block = stored.data.get("importer")
    data: Mapping[str, object] = block if isinstance(block, Mapping) else {}
    return {key: data.get(key) for key in ("revision", "family")} | {"kind": data.get("kind", "chat")}
