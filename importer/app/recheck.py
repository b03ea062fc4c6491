"""What importing a document again would change: a dry import, merged with the file as any import is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from importer.app.import_ import Plan, Settled, build_plan, compare, of_values, resolve_and_decide
from importer.app.import_request import ImportRequest
from importer.app.parser_choice import check_version
from importer.app.session import ImportSession
from importer.decisions.decision import Decision
from importer.document.attention import Attention
from importer.document.document_keys import FACTS, Change, canonical, dotted
from importer.document.merge import Conflict
from importer.document.name_allocator import Names
from importer.document.receipt import Receipt
from importer.document.review import change_json
from importer.document.store import Store
from importer.errors import DocumentError, ImporterError, RepositoryError, UsageError
from importer.frozen import frozen
from importer.hub import digests
from importer.hub.local import AllowedFolders
from importer.hub.snapshot import Snapshot
from importer.sentences import render

ENGINE = ("importer", "engine")


@frozen
class Rechecked:
    """The dry import of one document; ``request`` is that of its receipt, with the required version.

    ``settled``   the import merged with the file; ``None`` where it is ``refused``.
    ``changes``   of the file, apart from a version of its engine that was required.
    ``warnings``  what needs attention, and did not after the last import.
    ``weights``   paths of weights with other digests than at the last import.
    ``unproved``  whether the last import had a proof of the engine's parsers, and this one has none.
    ``left_out``  whether its engine has no such version.
    """

    name: str
    model: str | None
    request: Mapping[str, object]
    settled: Settled | None = None
    changes: tuple[Change, ...] = ()
    warnings: tuple[Attention, ...] = ()
    weights: tuple[str, ...] = ()
    refused: ImporterError | None = None
    unproved: bool = False
    left_out: bool = False

    @property
    def changed(self) -> bool:
        """Return whether an import would write anything else, warn of anything new, or be refused."""
        found = bool(self.changes or self.conflicts or self.warnings or self.weights or self.refused)
        return found and not self.left_out

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Return the values that a person and an import have changed, each to another."""
        return () if self.settled is None else self.settled.unsettled

    @property
    def edits(self) -> tuple[Change, ...]:
        """Return the edits that an import keeps."""
        return () if self.settled is None else self.settled.edits

    def decision(self, change: Change) -> Decision | None:
        """Return the decision behind a change; ``None`` for none, such as that of a commit."""
        path = change.path
        if path[0] == "options" or (path[0] == "importer" and path[-1] in FACTS):
            path = path[-1:]
        decisions = {} if self.settled is None else self.settled.planned.decisions
        above = (dotted(path[:end]) for end in range(len(path), 0, -1))
        return next((decisions[key] for key in above if key in decisions), None)

    def to_json(self, worded: Callable[[ImporterError], Mapping[str, object]]) -> dict[str, object]:
        """Return the line for ``--json``; ``worded`` returns a failure's kind, message and next step."""
        return {
            "schema": 1,
            "name": self.name,
            "model": self.model,
            "engine_version": self.request.get("engine_version"),
            "changed": self.changed,
            "changes": [change_json(one) | {"why": self._why(one)} for one in self.changes],
            "edits": [change_json(one) for one in self.edits],
            "conflicts": [one.to_json() for one in self.conflicts],
            "warnings": [one.to_json() for one in self.warnings],
            "weights": [*self.weights],
            "unproved": self.unproved,
            "refused": None if self.refused is None else worded(self.refused),
        }

    def _why(self, change: Change) -> list[str]:
        decision = self.decision(change)
        return [] if decision is None else [render(reason) for reason in decision.why]


def recheck(
    store: Store,
    name: str,
    bench: ImportSession,
    places: AllowedFolders,
    *,
    engine_version: str | None = None,
    offline: bool = False,
) -> Rechecked:
    """Return what importing a document again would change; writes nothing, and may be run side by side.

    Raises DocumentError for a document that cannot be read; HubError, UsageError("no-such-directory") for a
    model that cannot be reached.
    """
    stored = store.load(name)
    receipt = stored.need_receipt()
    if receipt.wrote is None:
        raise DocumentError("no-receipt", path=stored.path, problem="its base cannot be read")
    asked = {} if engine_version is None else {"engine_version": engine_version}
    found = Rechecked(stored.name, stored.model, {**receipt.request, **asked})
    try:
        check_version(engine_version, (stored.backend,))
    except UsageError as error:
        return replace(found, refused=error, left_out=True)
    try:
        stored.check()
        request = ImportRequest.from_json(found.request, offline=offline).after(stored)
        planned = planned_again(request, receipt, store, bench, places)
        settled = compare(planned, store)
    except (RepositoryError, UsageError, DocumentError) as error:
        if error.kind == "no-such-directory":
            raise
        return replace(found, refused=error)
    return replace(
        found,
        settled=settled,
        changes=tuple(one for one in settled.changes if not (asked and one.path[: len(ENGINE)] == ENGINE)),
        warnings=tuple(_news(settled, receipt)),
        weights=_other_weights(receipt, planned.snapshot),
        unproved=receipt.proof is not None and planned.proof is None,
    )


def _news(settled: Settled, receipt: Receipt) -> Iterator[Attention]:
    """Yield what an import would warn of and did not, or the present file does not call for."""
    planned, old = settled.planned, settled.old
    told = {_identity(one, receipt.engine.get("version")) for one in receipt.warnings}
    known = {(one.kind, one.key) for one in (() if old is None else of_values(planned, old.data))}
    for one in settled.warnings:
        if (one.kind, one.key) not in known and _identity(one.to_json(), planned.target.version) not in told:
            yield one


def _identity(warning: Mapping[str, object], version: str | None) -> str:
    """Return what warnings of one subject share, whichever version of the engine their reasons name."""
    text = canonical([warning.get(part) for part in ("kind", "key", "reason")])
    return text.replace(version, "") if version else text


def planned_again(
    request: ImportRequest, receipt: Receipt, store: Store, bench: ImportSession, places: AllowedFolders
) -> Plan:
    """Plan under the document's own name; a directory is resolved as the receipt has it."""
    request_here = request if receipt.directory is None else replace(request, reference=receipt.directory)
    decided = resolve_and_decide(request_here, bench, places)
    named = replace(decided, request=replace(request, name=receipt.name))
    return build_plan(named, Names(store), own=True)


def _other_weights(receipt: Receipt, snapshot: Snapshot) -> tuple[str, ...]:
    now = digests.imported(snapshot)
    both = {*receipt.weights, *now}
    return tuple(sorted(path for path in both if receipt.weights.get(path) != now.get(path)))
