"""Plan a document again from the request in its receipt, and compare the plan with the written document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from importer.app import recheck_upstream
from importer.app.decide import ImportRequest
from importer.app.import_ import Plan, build_plan, merge_plan, resolve_and_decide
from importer.app.recheck_causes import RecheckReason, Side, reasons, rules_moved
from importer.app.recheck_upstream import CauseKind, ChangeCause
from importer.app.session import ImportSession
from importer.app.target import bind
from importer.config_file import document_keys
from importer.config_file.build import kept
from importer.config_file.diff import ABSENT, Change, KeyPath, differences, same
from importer.config_file.document_keys import ELSEWHERE, FACTS, OPTIONS, path_of
from importer.config_file.merge import Conflict
from importer.config_file.name_allocator import Names
from importer.config_file.receipt import Receipt, evidence_json
from importer.config_file.review import change_json
from importer.config_file.store import Store, StoredDocument
from importer.decisions.decision import PYTHON, Decision, Target
from importer.errors import DocumentError, ImporterError, RepositoryError, UsageError
from importer.hub.local import AllowedFolders
from importer.reasons import Reason
from importer.sentences import render
from importer.signals.evidence import Rule, is_warning
from importer.version import __version__


@dataclass(frozen=True, slots=True)
class Yours:
    """A person's value in place of the importer's; an import keeps it or reports a conflict."""

    value: Any

    def to_json(self) -> dict[str, Any]:
        """Return the members for ``--json``; ``yours`` is left out for a removed key."""
        return {"covered": True} | ({} if self.value is ABSENT else {"yours": self.value})


@dataclass(frozen=True, slots=True)
class Altered:
    """A decision with another value, or with the same one and a warning that was not there.

    ``rules`` are those of the evidence that is new, different or missing.
    """

    key: str
    before: Any
    after: Any
    why: tuple[Reason, ...]
    yours: Yours | None = None
    rules: tuple[Rule, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the members for ``--json``."""
        members = {
            "key": self.key,
            "before": self.before,
            "after": self.after,
            "why": [render(reason) for reason in self.why],
        }
        return members | ({"covered": False} if self.yours is None else self.yours.to_json())


@dataclass(frozen=True, slots=True)
class MovedRevision:
    """A change of the document's data that is no decision: a commit, a version, a finding."""

    change: Change
    yours: Yours | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the members for ``--json``."""
        return change_json(self.change) | ({"covered": False} if self.yours is None else self.yours.to_json())


@dataclass(frozen=True, slots=True)
class RecheckFinding:
    """The recheck of one document. ``request`` is its receipt's; ``refused`` is why an import would fail.

    ``conflicts`` are values that a person and an import now have changed, each to another.
    """

    name: str
    model: str | None
    request: Mapping[str, Any]
    causes: tuple[ChangeCause, ...] = ()
    decisions: tuple[Altered, ...] = ()
    moved: tuple[MovedRevision, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    refused: ImporterError | None = None

    @property
    def changed(self) -> bool:
        """Return whether an import now would write anything else, warn of anything new, or be refused.

        Weights with other hashes are a change at the same commit, too.
        """
        weights = any(cause.what is CauseKind.WEIGHTS for cause in self.causes)
        return bool(self.decisions or self.moved or self.refused or weights)

    @property
    def kinds(self) -> tuple[CauseKind, ...]:
        """Return the kinds of its causes; a change without any comes of importer's own rules."""
        kinds = [cause.what for cause in self.causes]
        kinds += [CauseKind.REFUSED] if self.refused else []
        return tuple(dict.fromkeys(kinds)) or ((CauseKind.RULES,) if self.changed else ())

    def to_json(self, worded: Callable[[ImporterError], Mapping[str, Any]]) -> dict[str, Any]:
        """Return the line for ``--json``; ``worded`` returns a failure's kind, message and next step."""
        no = self.refused
        return {
            "schema": 1,
            "name": self.name,
            "model": self.model,
            "changed": self.changed,
            "causes": [c.to_json() for c in self.causes],
            "decisions": [d.to_json() for d in self.decisions],
            "document": [m.to_json() for m in self.moved],
            "conflicts": [c.to_json() for c in self.conflicts],
            "refused": None if no is None else worded(no),
        }


UNDECIDED: Mapping[str, Any] = {"value": None, "why": (), "reasons": ()}  # a decision of the other side alone


@dataclass(frozen=True, slots=True)
class Rechecked:
    """A finding and the plan behind it; ``plan`` is ``None`` where an import would be refused."""

    finding: RecheckFinding
    plan: Plan | None = None


def recheck(
    store: Store, name: str, bench: ImportSession, places: AllowedFolders, *, offline: bool = False
) -> RecheckFinding:
    """Return what an import now would alter in a document; writes nothing, and may be run side by side.

    Raises DocumentError for what cannot be read, HubError and UsageError for what cannot be reached.
    """
    return recheck_plan(store, name, bench, places, offline=offline).finding


def recheck_plan(
    store: Store,
    name: str,
    bench: ImportSession,
    places: AllowedFolders,
    *,
    offline: bool = False,
) -> Rechecked:
    """Return the same finding with the plan that it compares; raises what ``recheck`` raises."""
    stored = store.load(name)
    receipt = stored.need_receipt()
    wrote = receipt.wrote
    if wrote is None:
        raise DocumentError("no-receipt", path=stored.path, problem="its base cannot be read")
    try:
        request = ImportRequest.from_json(receipt.request, offline=offline).after(stored)
        planned = _plan(request, receipt, store, bench, places)
        conflicts = _conflicts(planned, store)
    except (RepositoryError, UsageError) as error:
        if error.kind == "no-such-directory":
            raise
        causes = recheck_upstream.of_refusal(error)
        return Rechecked(
            RecheckFinding(stored.name, stored.model, receipt.request, causes=causes, refused=error)
        )
    edits = differences(wrote, stored.data)
    altered = tuple(_altered(stored, receipt, planned, edits))
    paths = [place_of(a.key) for a in altered]
    moved = tuple(
        MovedRevision(change, yours_of(stored, change.path, edits))
        for change in differences(wrote, planned.built.data)
        if not any(touch(change.path, path) for path in paths)
    )
    causes = (*_causes(receipt, planned, offline=offline), *_of_decisions(altered))
    found = RecheckFinding(stored.name, stored.model, receipt.request, causes, altered, moved, conflicts)
    return Rechecked(found, planned)


def _plan(
    request: ImportRequest, receipt: Receipt, store: Store, bench: ImportSession, places: AllowedFolders
) -> Plan:
    """Plan under the document's own name; a directory is resolved as the receipt has it."""
    request_here = request if receipt.directory is None else replace(request, reference=receipt.directory)
    decided = resolve_and_decide(request_here, bench, places)
    named = replace(decided, request=replace(request, name=receipt.name))
    return build_plan(named, Names(store), own=True)


def _conflicts(planned: Plan, store: Store) -> tuple[Conflict, ...]:
    try:
        merge_plan(planned, store)
    except DocumentError as error:
        conflicts = error.details.get("conflicts")
        return tuple(conflicts) if isinstance(conflicts, list) else ()
    return ()


def _causes(receipt: Receipt, planned: Plan, *, offline: bool) -> Iterator[ChangeCause]:
    engine, target = receipt.engine, planned.target
    if receipt.model_id != planned.snapshot.model_id:
        yield ChangeCause(CauseKind.MODEL, receipt.model_id, planned.snapshot.model_id)
    yield from recheck_upstream.upstream(receipt, planned.snapshot, offline=offline)
    pairs = {
        CauseKind.BACKEND: (engine["name"], target.backend),
        CauseKind.ENGINE: (
            _version(engine.get("version"), engine.get("frontend")),
            _version(target.version, target.frontend),
        ),
        CauseKind.DEVICE: (_device(receipt.fit), _device(planned.fit.to_json())),
        CauseKind.IMPORTER: (receipt.importer, __version__),
    }
    for what, (before, after) in pairs.items():
        if before != after:
            yield ChangeCause(what, before, after)


def _of_decisions(altered: tuple[Altered, ...]) -> Iterator[ChangeCause]:
    """Yield parsers that the engine's version lacks, and tables with other rows."""
    for one in altered:
        if any(why.kind is RecheckReason.NO_SUCH_PARSER for why in one.why):
            after = None if one.after is None else str(one.after)
            yield ChangeCause(CauseKind.PARSERS, str(one.before), after, keys=[one.key])
    table = recheck_upstream.tables({one.key: one.rules for one in altered})
    if table is not None:
        yield table


def _version(version: str | None, frontend: str | None) -> str | None:
    """Return the version, with a frontend that is not the one in Python."""
    return version if frontend in (None, PYTHON) else f"{version} ({frontend})"


def _device(fit: Mapping[str, Any] | None) -> str | None:
    """Return the device that a document was fitted to, as text."""
    device = (fit or {}).get("device")
    if not isinstance(device, Mapping) or not isinstance(device.get("memory"), int):
        return None
    return f"{device.get('count')} × {device.get('name')} with {device['memory'] / 2**30:.1f} GiB"


def _altered(
    stored: StoredDocument, receipt: Receipt, planned: Plan, edits: tuple[Change, ...]
) -> Iterator[Altered]:
    decided = {key: kept(decision) for key, decision in planned.decisions.items()}
    evidence = evidence_json(planned.evidence)
    target = _recorded(receipt)
    for key in dict.fromkeys((*receipt.decisions, *decided)):
        old = Side(
            receipt.decisions.get(key, UNDECIDED),
            [e for e in receipt.evidence if e["key"] == key], target, receipt.importer,
        )  # fmt: skip
        new = Side(
            decided.get(key, UNDECIDED), [e for e in evidence if e["key"] == key], planned.target, __version__
        )
        # Lists move daily: only their warnings are news.
        if key in ELSEWHERE or same(old.value, new.value):
            why = _new_warnings(old.decision, planned.decisions.get(key))
        else:
            why = reasons(key, old, new, _why(planned.decisions.get(key)))
        if why:
            yield Altered(
                key, old.value, new.value, why, yours_of(stored, place_of(key), edits), rules_moved(old, new)
            )


def _why(decision: Decision | None) -> tuple[Reason, ...]:
    return () if decision is None else decision.why


def _new_warnings(old: Mapping[str, Any], new: Decision | None) -> tuple[Reason, ...]:
    """Return warnings that the receipt lacks."""
    known = old.get("reasons", ())
    return tuple(reason for reason in _why(new) if is_warning(reason) and reason.to_json() not in known)


def _recorded(receipt: Receipt) -> Target:
    """Return the engine that the document was written for, with its parsers where they are still known."""
    name, version = receipt.engine["name"], receipt.engine.get("version")
    try:
        return bind(name, version, ask=False, frontend=receipt.engine.get("frontend")).target
    except UsageError:
        return Target(name, version)


def place_of(key: str) -> KeyPath:
    """Return where the document holds a decision."""
    if key in OPTIONS:
        return (document_keys.KEY, key)
    return ("importer", key) if key in FACTS else path_of(key) or (key,)


def yours_of(stored: StoredDocument, path: KeyPath, edits: tuple[Change, ...]) -> Yours | None:
    """Return what the person wrote at a path, where they touched it."""
    # The whole list has changed where only its order or white space was edited.
    reordered = (document_keys.KEY,)
    touched = [edit for edit in edits if touch(edit.path, path) and edit.path != reordered]
    if not touched:
        return None
    exact = next((edit for edit in touched if edit.path == path), None)
    return Yours(_at(stored.data, path) if exact is None else exact.after)


def touch(one: KeyPath, other: KeyPath) -> bool:
    """Return whether one path is the other or leads to it."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _at(data: Mapping[str, Any], path: KeyPath) -> Any:
    value: Any = data
    for step in path:
        value = value.get(step, ABSENT) if isinstance(value, Mapping) else ABSENT
    return value
