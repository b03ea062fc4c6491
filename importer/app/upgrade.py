"""Another version of an engine for many documents: what changes in each, and the working copy after it.

Documents that share template, facts and settings are decided once (``upgrade_outlook``); a document of which
nothing moved is not decided at all. Nothing here asks the Hub.

The report on another version of an engine: causes with their documents, and how each was judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from threading import Lock
from typing import Any

from importer.app import upgrade_versions
from importer.app.import_ import with_derived
from importer.app.recheck import (
    Altered,
    CauseKind,
    ChangeCause,
    MovedRevision,
    RecheckFinding,
    place_of,
    touch,
    yours_of,
)
from importer.app.session import ImportSession
from importer.app.upgrade_outlook import Evaluator, Outlook, likeness, needs_study, parsers_gone
from importer.app.upgrade_versions import (
    BLOCKING,
    EngineVersion,
    Renamed,
    VersionDifference,
    at_version,
    difference,
    known_before,
    renames,
)
from importer.config import now
from importer.config_file import merge
from importer.config_file.document import Document, Engine
from importer.config_file.document_keys import differences, digest, same
from importer.config_file.merge import Merge, Take
from importer.config_file.receipt import Receipt
from importer.config_file.store import Store, StoredDocument
from importer.config_file.yaml_edit.patch import rewrite
from importer.decisions.decision import PYTHON
from importer.engines import get, install, runs
from importer.errors import DocumentError, HubError, ImporterError, UsageError
from importer.frozen import frozen
from importer.hub.local import AllowedFolders

ABSENT_HERE = ("not-cached", "no-such-directory", "no-directories")  # the snapshot is not on this disk


class Judged(StrEnum):
    """What a finding rests on."""

    TABLES = "tables"  # nothing of the model moved: names, values and defaults alone
    PROVED = "proved"  # the parsers of the new version read the template
    REGISTRY = "registry"  # the new version is not installed: its registry, and the proof of the last one
    UNJUDGED = "unjudged"  # the snapshot is needed again, and is not on this disk
    ELSEWHERE = "other-engine"
    THERE = "same-version"


@frozen
class UpgradeFinding:
    """The finding for one document; ``left`` are causes that a person has to settle first."""

    finding: RecheckFinding
    judged: Judged
    left: tuple[ChangeCause, ...] = ()

    @property
    def changed(self) -> bool:
        """Return whether more changes than the version that the document names."""
        return self.finding.refused is not None or any(
            cause.what is not CauseKind.ENGINE for cause in self.finding.causes
        )

    @property
    def kinds(self) -> tuple[CauseKind, ...]:
        """Return the kinds of its causes; the version alone only where nothing else changes."""
        kinds = [kind for kind in self.finding.kinds if kind is not CauseKind.ENGINE]
        return tuple(kinds) or self.finding.kinds

    @property
    def writable(self) -> bool:
        """Return whether the working copy may be written without a person's decision."""
        refused = self.finding.refused is not None or bool(self.left) or bool(self.finding.conflicts)
        return self.judged in (Judged.TABLES, Judged.PROVED, Judged.REGISTRY) and not refused


@frozen
class Written:
    """A working copy for the new version: its text, its data and its receipt."""

    text: str
    data: Document
    receipt: Receipt


@frozen
class Upgraded:
    """A finding, and all that its working copies are made of; ``None`` where there is none."""

    found: UpgradeFinding
    stored: StoredDocument
    moved: VersionDifference | None = None
    outlook: Outlook | None = None

    def write(self, take: Take | None = None) -> Written:
        """Return the working copy, merged with a person's edits.

        Raises DocumentError: "conflict" where both changed a value and nothing decides, "cannot-edit".
        """
        if self.moved is None:
            raise DocumentError("cannot-edit", path=self.stored.path, problem=str(self.found.judged))
        return _write(self.stored, self.moved, self.outlook or Outlook(), take)


class Upgrade:
    """Rechecks of documents for another version of their engine; safe to use from several threads."""

    def __init__(
        self, after: EngineVersion, bench: ImportSession, store: Store, places: AllowedFolders
    ) -> None:
        self.after, self._store = after, store
        self._evaluator = Evaluator(bench, store, places)
        self._outlooks: dict[str, Outlook] = {}
        self._failures: dict[str, ImporterError] = {}
        self._locks: dict[str, Lock] = {}
        self._lock = Lock()
        self.installed = bench.proves and is_installed(after)

    @property
    def evaluated(self) -> int:
        """Return how many likenesses were decided."""
        return len(self._outlooks)

    def judge(self, name: str, store: Store | None = None) -> Upgraded:
        """Return what the version changes for a document.

        Raises HubError("not-cached") and UsageError("no-such-directory") where the snapshot is needed and is
        not on this disk, DocumentError where the document cannot be read.
        """
        stored = (store or self._store).load(name)
        receipt = stored.need_receipt()
        if receipt.wrote is None:
            raise DocumentError("no-receipt", path=stored.path, problem="its base cannot be read")
        if stored.backend != self.after.engine:
            return Upgraded(_aside(stored, receipt, Judged.ELSEWHERE), stored)
        version = receipt.engine.get("version")
        if version == self.after.version:
            return Upgraded(_aside(stored, receipt, Judged.THERE), stored)
        before = known_before(self.after.engine, version)
        moved = difference(self.after.engine, before or self.after.version, self.after.version)
        static = (*upgrade_versions.causes(stored.data, stored.facts, moved),)
        outlook, judged = None, Judged.TABLES
        studied = needs_study(receipt, moved, installed=self.installed)
        if studied or parsers_gone(receipt, moved):
            outlook = self._outlook(stored, receipt, moved)
            judged = Judged.PROVED if outlook.proved else Judged.REGISTRY
            if outlook.refused is not None or not (outlook.proved or receipt.proof):
                judged = Judged.TABLES
        elif receipt.proof is not None:
            judged = Judged.REGISTRY
        return Upgraded(_found(stored, receipt, moved, static, outlook, judged), stored, moved, outlook)

    def _outlook(self, stored: StoredDocument, receipt: Receipt, moved: VersionDifference) -> Outlook:
        """Return the outlook of a likeness; one thread decides it, and others wait for that."""
        key = likeness(receipt, stored.data)
        with self._lock:
            lock = self._locks.setdefault(key, Lock())
        with lock:
            if key in self._failures:
                raise self._failures[key]
            if key not in self._outlooks:
                spelled = _spelled(receipt, renames(receipt.wrote or {}, moved))
                try:
                    self._outlooks[key] = self._evaluator.outlook(stored, moved, spelled)
                except ImporterError as error:
                    if not absent_here(error):  # an equal document fails alike
                        self._failures[key] = error
                    raise
        return self._outlooks[key]


def is_installed(version: EngineVersion) -> bool:
    """Return whether an environment with this very version is on this machine."""
    if not runs(version.engine):
        return False
    builds = ("vllm-cuda", "vllm-cpu") if version.engine == "vllm" else (version.engine,)
    found = (install.find(get(build)) for build in builds)
    return any(one is not None and one.version == version.version for one in found)


def absent_here(error: ImporterError) -> bool:
    """Return whether a document could not be judged because its snapshot is not on this disk."""
    return isinstance(error, HubError | UsageError) and error.kind in ABSENT_HERE


def _aside(stored: StoredDocument, receipt: Receipt, judged: Judged) -> UpgradeFinding:
    return UpgradeFinding(RecheckFinding(stored.name, stored.model, receipt.request), judged)


def _spelled(receipt: Receipt, names: Sequence[Renamed]) -> dict[str, Any]:
    """Return the preferences of a receipt under the names of the new version."""
    earlier = dict(receipt.request.get("preferences", {}))
    for one in names:
        key = str(one.path[1]) if one.path[0] == "options" else f"{one.path[0]}.{one.before}"
        if key not in earlier:
            continue
        value = earlier.pop(key)
        if one.path[0] == "options":
            earlier[key] = one.after if value == one.before else value
        else:
            earlier[f"{one.path[0]}.{one.after}"] = value
    return earlier


def _found(
    stored: StoredDocument,
    receipt: Receipt,
    moved: VersionDifference,
    static: Sequence[ChangeCause],
    outlook: Outlook | None,
    judged: Judged,
) -> UpgradeFinding:
    """Return the finding of one document: its own names, and what its likeness shares."""
    shared = outlook or Outlook()
    version = ChangeCause(CauseKind.ENGINE, receipt.engine.get("version"), moved.after.version)
    request = receipt.request
    if shared.refused is not None:
        refused = RecheckFinding(
            stored.name, stored.model, request, (version, *static), refused=shared.refused
        )
        return UpgradeFinding(refused, judged)
    sides = _sides(stored, moved, shared, None)
    edits = differences(sides.base, sides.edited)
    altered = tuple(
        Altered(
            one.key, one.before.get("value"), one.after.get("value"), one.why,
            yours_of(stored, place_of(one.key), edits),
        )
        for one in shared.decisions
    )  # fmt: skip
    places = [place_of(one.key) for one in altered]
    revised = tuple(
        MovedRevision(change, yours_of(stored, change.path, edits))
        for change in differences(sides.base, sides.theirs)
        if not any(touch(change.path, place) for place in places)
    )
    conflicts = tuple(sides.merged.unsettled)
    causes = (version, *static, *shared.causes)
    finding = RecheckFinding(stored.name, stored.model, request, causes, altered, revised, conflicts)
    return UpgradeFinding(finding, judged, tuple(_left(static, sides.merged.data, stored, moved)))


def _left(
    static: Sequence[ChangeCause], merged: Document, stored: StoredDocument, moved: VersionDifference
) -> list[ChangeCause]:
    """Return the causes that stay in the merged document, and that the new version would refuse."""
    if not any(cause.what in BLOCKING for cause in static):
        return []
    remaining = upgrade_versions.causes(merged, stored.facts, moved)
    kept = {(cause.what, tuple(cause.keys or ())) for cause in remaining}
    return [c for c in static if c.what in BLOCKING and (c.what, tuple(c.keys or ())) in kept]


@frozen
class _Sides:
    """The three sides of a merge, under the names of the new version."""

    base: Document
    edited: Document
    theirs: Document
    merged: Merge


def _sides(stored: StoredDocument, moved: VersionDifference, shared: Outlook, take: Take | None) -> _Sides:
    wrote = stored.need_receipt().wrote or {}
    edited = upgrade_versions.renamed(stored.data, renames(stored.data, moved))
    base = upgrade_versions.renamed(wrote, renames(wrote, moved))
    theirs = _upgraded(base, moved, shared)
    return _Sides(base, edited, theirs, Merge(base, edited, theirs, take))


def _upgraded(base: Document, moved: VersionDifference, shared: Outlook) -> Document:
    """Return what an import writes for the version: what differs between both documents of the outlook.

    It is a merge, too: the data of this document stay where the version moves nothing.
    """
    if shared.data is None:
        return at_version(base, moved.after.version, PYTHON if moved.after.frontends else None)
    before, after = shared.data
    return Merge(before, base, after, "theirs").data


def _write(stored: StoredDocument, moved: VersionDifference, shared: Outlook, take: Take | None) -> Written:
    receipt = stored.need_receipt()
    sides = _sides(stored, moved, shared, take)
    if unsettled := sides.merged.unsettled:
        first, count = unsettled[0].reason, len(unsettled)
        raise DocumentError("conflict", path=stored.path, count=count, first=first, conflicts=unsettled)
    data = with_derived(sides.merged.data)
    before, after = shared.texts
    own = receipt.base
    # Comments of decisions that moved are those of the representative; all others stay.
    if after:
        base = merge.write(own, sides.theirs, before, after, stored.path).text
    else:
        base = rewrite(own, sides.theirs, path=stored.path)
    if stored.text == own and same(sides.theirs, data):
        text = base
    elif after:
        text = merge.write(stored.text, data, own, base, stored.path, receipt.remarked).text
    else:
        text = rewrite(stored.text, data, path=stored.path)
    return Written(
        text, data, _receipt(stored, moved, shared, base, data, sides.theirs["importer"]["engine"])
    )


def _receipt(
    stored: StoredDocument,
    moved: VersionDifference,
    shared: Outlook,
    base: str,
    data: Document,
    engine: Engine,
) -> Receipt:
    """Return the receipt of the working copy: the parts that moved are those of the new version."""
    last = stored.need_receipt()
    keys = {one.key for one in shared.decisions}
    spelled = _spelled(last, renames(last.wrote or {}, moved))
    evidence = [fact for fact in last.evidence if fact["key"] not in keys]
    warnings = [one for one in last.warnings if one.get("key") not in keys]
    receipt = replace(
        last,
        digest=digest(data),
        imported_at=now(),
        engine=engine,
        decisions={**last.decisions, **{one.key: one.after for one in shared.decisions}},
        evidence=[*evidence, *shared.evidence],
        proof=last.proof if shared.proof is None else shared.proof,
        base=base,
        request={**last.request, "engine_version": moved.after.version, "preferences": spelled},
        fit=last.fit if shared.fit is None else shared.fit,
        warnings=[*warnings, *shared.warnings],
        model=last.model if shared.model is None else shared.model,
        review={"state": "pending", "by": None, "at": None, "digest": None},
        validation=None,
        partial=None,
        score=None,
    ).with_past(last)
    edited = stored.digest != digest(last.wrote or {})
    return receipt.with_standing(last) if edited else receipt


EXAMPLES = 3  # documents that a group names
ALONE = (CauseKind.ENGINE,)  # causes of every document


@dataclass(slots=True)
class CauseGroup:
    """Documents with one cause: its kind, keys and values; ``names`` are the first."""

    what: str
    keys: tuple[str, ...]
    before: str | None
    after: str | None
    why: str | None = None
    total: int = 0
    left: int = 0
    names: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        """Return the members for ``--json`` and REST."""
        members: dict[str, object] = {
            "what": self.what, "keys": [*self.keys], "before": self.before, "after": self.after,
            "documents": self.total, "left": self.left, "examples": [*self.names],
        }  # fmt: skip
        return members if self.why is None else members | {"why": self.why}


def identity(cause: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what causes of one group share."""
    return cause["what"], tuple(cause.get("keys") or ()), cause["before"], cause["after"]


@dataclass(slots=True)
class UpgradeReport:
    """Counts over documents; it grows by one finding or failure at a time."""

    changed: int = 0
    version_only: int = 0
    failed: int = 0
    unjudged: int = 0
    written: int = 0
    conflicts: int = 0
    left: int = 0
    refused: int = 0
    judged: Counter[str] = field(default_factory=Counter)
    _groups: dict[tuple[Any, ...], CauseGroup] = field(default_factory=dict)

    def add(self, found: UpgradeFinding) -> None:
        """Count a finding."""
        self.judged[str(found.judged)] += 1
        if found.judged in (Judged.ELSEWHERE, Judged.THERE):
            return
        self.changed += found.changed
        self.version_only += not found.changed
        self.conflicts += bool(found.finding.conflicts)
        self.left += bool(found.left)
        self.refused += found.finding.refused is not None
        left = {identity(cause.to_json()) for cause in found.left}
        for cause in found.finding.causes:
            if cause.what not in ALONE:
                self._count(found.finding.name, cause.to_json(), left)
        if found.finding.refused is not None:
            refused = {"what": CauseKind.REFUSED.value, "before": None, "after": None}
            self._count(found.finding.name, refused | {"keys": [found.finding.refused.kind]}, left)

    def _count(self, name: str, cause: Mapping[str, Any], left: Iterable[tuple[Any, ...]]) -> None:
        key = identity(cause)
        group = self._groups.setdefault(key, CauseGroup(key[0], key[1], key[2], key[3], cause.get("why")))
        group.total += 1
        group.left += key in left
        if len(group.names) < EXAMPLES:
            group.names.append(name)

    @property
    def documents(self) -> int:
        """Return how many documents were looked at."""
        return self.judged.total() + self.failed + self.unjudged

    def groups(self) -> list[CauseGroup]:
        """Return the groups, those with the most documents first."""
        return sorted(self._groups.values(), key=lambda one: (-one.total, one.what, one.keys))

    def to_json(self) -> dict[str, object]:
        """Return the members for ``--json``."""
        counts = ("changed", "version_only", "conflicts", "left", "refused", "failed", "unjudged", "written")
        return {
            "documents": self.documents,
            **{name: getattr(self, name) for name in counts},
            "judged": dict(self.judged),
            "causes": [group.to_json() for group in self.groups()],
        }
