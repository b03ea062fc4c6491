"""What a reviewer is shown of a document beside its decisions: values, losses, one rendered case."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from importer.app.local_evidence import snapshot_of
from importer.chat_template import find
from importer.chat_template.cases import CALLS, QUESTION, STYLES, Turn, tools_for
from importer.chat_template.render import Rendered, Renderer, RenderJob, RenderRefused
from importer.chat_template.vocabulary import read_vocabulary
from importer.config_file import document_keys
from importer.config_file.document_keys import KeyPath, same
from importer.config_file.effective import Editor, effective, value_at
from importer.config_file.records import ProofVerdict
from importer.config_file.store import StoredDocument
from importer.engines.registries import loader_of, sampling_defaults
from importer.errors import HubError, ImporterError
from importer.exports.base import loss_json
from importer.exports.localai import losses
from importer.hub.local import AllowedFolders
from importer.sandbox import Sandbox
from importer.sentences import render
from importer.service.domain.gallery import DocumentVersion, Gallery
from importer.storage import documents, releases


def losses_of(stored: StoredDocument) -> list[dict[str, str]] | None:
    """Return what LocalAI would drop, change, add or not pin; ``None`` where there is no entry."""
    found = losses(stored.data, stored.receipt)
    return None if found is None else [loss_json(loss) for loss in found]


def values_of(gallery: Gallery, stored: StoredDocument) -> list[dict[str, object]]:
    """Return each key as it is now, in the import, and in the release that is served, with its editor."""
    with gallery.database.reading() as connection:
        served = releases.served(connection, stored.name)
        history = _History(lambda: documents.makers(connection, stored.name))
        data = None if served is None else json.loads(served.data)
        return [
            value.to_json()
            for value in effective(stored, data, history.editor, sampling_defaults(stored.data))
        ]


class _History:
    """Who made which version of a document; read once, and only where a value was edited."""

    def __init__(self, read: Any) -> None:
        self._read = read
        self._makers: list[tuple[Mapping[str, object], Editor]] | None = None

    def editor(self, path: KeyPath) -> Editor | None:
        """Return who made the oldest of the newest versions with one value at a path."""
        if self._makers is None:
            self._makers = [(json.loads(data), Editor(by, at)) for data, by, at in self._read()]
        found = None
        for data, maker in self._makers:
            if not _same(value_at(data, path), value_at(self._makers[0][0], path)):
                return found
            found = maker
        return found


def _same(one: Any, other: Any) -> bool:
    return one is other or same(one, other)


PLAIN = "question"  # a case without a call
IDS = (PLAIN, *CALLS)


def listed(stored: StoredDocument) -> list[dict[str, object]]:
    """Return each case with what the chosen parser makes of its calls."""
    receipt, verdict = stored.need_receipt(), _verdict(stored)
    proof = receipt.proof or {}
    written = proof.get("written") or {}
    return [{"id": one, "read": _read(verdict, one), "written": one in written} for one in IDS]


def case(version: DocumentVersion, ident: str, sandbox: Sandbox, places: AllowedFolders) -> dict[str, object]:
    """Return a case with its messages, tools, prompt and calls.

    The template is that of the document, or of its model's files on this disk: nothing is fetched. Where it
    renders no text, ``refused`` has the kind and the message.
    """
    stored = version.stored
    receipt = stored.need_receipt()
    verdict, proof = _verdict(stored), receipt.proof or {}
    calls = CALLS.get(ident, ())
    turns = [Turn("user", QUESTION)] + ([Turn("assistant", calls=calls)] if calls else [])
    tools = tools_for(calls) if calls else None
    failed = {} if verdict is None else verdict["failed"]
    shown = {
        "id": ident,
        "tools": None if tools is None else [*tools],
        "calls": [{"name": one.name, "arguments": dict(one.arguments)} for one in calls],
        "written": (proof.get("written") or {}).get(ident),
        "parser": document_keys.parser(stored.data, "tool_parser"),
        "read": _read(verdict, ident),
        "why": failed.get(ident),
    }
    return shown | _rendered(version, turns, tools, sandbox, places)


def _rendered(
    version: DocumentVersion, turns: Sequence[Turn], tools: Any, sandbox: Sandbox, places: AllowedFolders
) -> dict[str, object]:
    """Return messages and prompt in the first form of messages that the template renders."""
    stored, plain = version.stored, STYLES[0].messages(turns)
    try:
        template, variables = _template(version, stored, places)
        if template is None:
            return _refused(plain, "no-template", None)
        offered = [style.messages(turns) for style in STYLES]
        jobs = [RenderJob(one, tools, add_generation_prompt=len(turns) == 1) for one in offered]
        results = Renderer(sandbox).render(template, jobs, variables).results
    except HubError as error:
        return _refused(plain, "not-here", error.kind)
    except ImporterError as error:
        return _refused(plain, "failed", error.message)
    for messages, result in zip(offered, results, strict=True):
        if isinstance(result, Rendered):
            return {"messages": messages, "prompt": result.text, "refused": None}
    first = results[0]
    return _refused(plain, "refused", render(first.reason) if isinstance(first, RenderRefused) else None)


def _template(
    version: DocumentVersion, stored: StoredDocument, places: AllowedFolders
) -> tuple[str | None, dict[str, object]]:
    """Return the text of the document's own template, else of its model's, and the variables for it."""
    own = version.chat_template(stored.data)
    kwargs = stored.data.get("chat_template_kwargs")
    extra = dict(kwargs) if isinstance(kwargs, Mapping) else {}
    snapshot = snapshot_of(stored, places, offline=True)
    known = read_vocabulary(snapshot).variables
    if own is not None:
        return own.text, known | extra
    found = find.find(snapshot, loader_of(stored.backend))
    return None if found is None else found.text, known | extra


def _refused(messages: Any, kind: str, message: str | None) -> dict[str, object]:
    return {"messages": messages, "prompt": None, "refused": {"kind": kind, "message": message}}


def _verdict(stored: StoredDocument) -> ProofVerdict | None:
    """Return the proof's verdict on the parser that the document names now."""
    named = document_keys.parser(stored.data, "tool_parser")
    verdicts = stored.need_receipt().verdicts("tool_parser")
    return next((one for one in verdicts if one["parser"] == named), None)


def _read(verdict: ProofVerdict | None, ident: str) -> str:
    if verdict is None or ident not in CALLS:
        return "unknown"
    if ident in verdict["failed"]:
        return "wrong"
    return "right" if ident in verdict["passed"] else "unknown"
