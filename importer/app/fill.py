"""``fill``: decide for a hand-written document like for an import, and add the values that it leaves out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from importer import backends
from importer.app.decide import decide_snapshot
from importer.app.import_ import Plan, build_plan
from importer.app.import_request import ImportRequest
from importer.app.preferences import written
from importer.app.session import ImportSession
from importer.decisions.decision import Preferences
from importer.document import schema
from importer.document.build import to_text
from importer.document.document_keys import KeyPath, digest, dotted, frontend_of
from importer.document.fill import Filled, fill
from importer.document.name_allocator import Names, slug
from importer.document.receipt import Receipt
from importer.document.schema import problems, reason
from importer.document.store import Store, StoredDocument, load, write_all
from importer.document.yaml_edit.source_map import YamlProblem
from importer.errors import DocumentError
from importer.frozen import frozen
from importer.hub.local import AllowedFolders
from importer.hub.reference import Reference
from importer.progress import Progress, silent

# What a file may leave out, though every document has it.
FILLED_IN = {"name": "model", "backend": backends.DEFAULT}
# Where a mistake leaves nothing to decide for.
NEEDED: tuple[KeyPath, ...] = ((), ("parameters",), ("parameters", "model"), ("backend",))


@frozen
class Filling:
    """A file, the plan of its model's import, and the file with the values that it leaves out.

    ``problems`` are mistakes in the file's own values, which stay all the same. ``receipt`` is the file's.
    """

    stored: StoredDocument
    planned: Plan
    filled: Filled
    problems: list[YamlProblem]
    receipt: Receipt | None

    @property
    def added(self) -> list[dict[str, Any]]:
        """Return each added value with its path and the comment that says why."""
        why = self.filled.why
        return [
            {"path": dotted(path), "value": value, "why": why.get(path, why.get((*path, 0)))}
            for path, value in self.filled.added.items()
        ]

    def report(self) -> dict[str, object]:
        """Return the line of --json."""
        return {
            "schema": 1,
            "path": str(self.stored.path),
            "name": self.planned.name,
            "model_id": self.planned.snapshot.model_id,
            "revision": self.planned.snapshot.revision,
            "backend": self.planned.target.backend,
            "added": self.added,
            "problems": [str(problem) for problem in self.problems],
            "document": self.filled.data,
        }


def plan(
    path: Path,
    request: ImportRequest,
    bench: ImportSession,
    places: AllowedFolders,
    progress: Progress = silent,
) -> Filling:
    """Decide for the model and the backend that a file names, at the commit that it pins; writes nothing.

    The file's values count as the user's settings. ``request`` has the options. Raises DocumentError:
    "invalid" for a file that is not valid YAML or names no model, "cannot-edit"; and what an import raises.
    """
    from importer.hub import resolve
    from importer.hub.reference import parse

    stored = load(path)
    request = replace(request, frontend=request.frontend or frontend_of(stored.data))
    faults = list(schema.faults("document", {**FILLED_IN, **stored.data}))
    mistakes = problems(stored.text, FILLED_IN)
    if any(fault.path in NEEDED for fault in faults):
        raise DocumentError("invalid", path=path, problem=reason(mistakes))
    progress("resolving")
    reference = stored.reference
    revision = _pinned(stored, parse(reference))
    snapshot = resolve(parse(reference, revision), places, offline=request.offline)
    receipt = stored.receipt
    if receipt is not None and stored.model != (snapshot.model_id or str(snapshot.directory)):
        receipt = None  # of the model that the file named before
    settings = written(stored.data, None if receipt is None else receipt.wrote)
    wrong = {dotted(fault.path) for fault in faults}
    preferences = Preferences({key: value for key, value in settings.items() if key not in wrong})
    request = replace(
        replace(request, preferences=preferences).after(None if receipt is None else stored),
        reference=reference,
        revision=revision,
        name=stored.data["name"] if "name" in stored.data and "name" not in wrong else slug(path.stem),
    )
    decided = decide_snapshot(snapshot, request, bench, progress)
    planned = build_plan(decided, Names(Store(path.parent)), own=True)
    return Filling(stored, planned, _filled(stored, planned), mistakes, receipt)


def _pinned(stored: StoredDocument, model: Reference) -> str | None:
    """Return the commit that the file names for its model, in the importer's block or among the artifacts."""
    if model.repo is None or model.revision is not None:
        return None
    block, artifacts = stored.data.get("importer"), stored.data.get("artifacts")
    pins = [(block.get("model_id"), block.get("revision"))] if isinstance(block, dict) else []
    sources = (
        [a.get("source") for a in artifacts if isinstance(a, dict)] if isinstance(artifacts, list) else []
    )
    pins += [(s.get("repo"), s.get("revision")) for s in sources if isinstance(s, dict)]
    return next((r for repo, r in pins if repo == model.repo and isinstance(r, str)), None)


def _filled(stored: StoredDocument, planned: Plan) -> Filled:
    return fill(stored.text, stored.data, to_text(planned.built), planned.built.data, stored.path)


def write(filling: Filling) -> Receipt:
    """Write the file and the receipt beside it; nothing where nothing is missing.

    Raises DocumentError: "changed" where the file holds other data by now, "cannot-write".
    """
    seen, path = filling.stored, filling.stored.path
    store = Store(path.parent)
    with store.locked():
        stored = load(path)
        if stored.digest != seen.digest:
            raise DocumentError("changed", path=path, name=path, now=stored.digest, seen=seen.digest)
        filled = filling.filled if stored.text == seen.text else _filled(stored, filling.planned)
        receipt = _receipt(filling, filled)
        contents = {path: filled.text} if filled.text != stored.text else {}
        if stored.receipt is None or stored.receipt.to_text() != receipt.to_text():
            contents |= store.receipt_texts(path, receipt)
        write_all(contents)
    return receipt


def _receipt(filling: Filling, filled: Filled) -> Receipt:
    """Return a new receipt, or the file's own with the additions."""
    planned, receipt, stored = filling.planned, filling.receipt, filling.stored
    fresh = replace(planned.receipt(), name=stored.name, digest=digest(filled.data))
    if receipt is None:
        return fresh
    if not filled.added:
        return receipt
    base = receipt.base
    if receipt.wrote is not None:
        base = fill(base, receipt.wrote, to_text(planned.built), planned.built.data, stored.path).text
    return replace(
        receipt, digest=fresh.digest, base=base, decisions={**fresh.decisions, **receipt.decisions}
    )
