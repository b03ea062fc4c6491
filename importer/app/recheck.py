"""Plan a document again from the request in its receipt, and name what moved since its import."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from importer.app.decide import ImportRequest
from importer.app.import_ import Plan, build_plan, merge_plan, resolve_and_decide
from importer.app.session import ImportSession
from importer.app.target import bind
from importer.config_file import document_keys
from importer.config_file.build import kept
from importer.config_file.document import DecisionRecord, Document, Fact
from importer.config_file.document_keys import (
    ABSENT,
    ELSEWHERE,
    FACTS,
    OPTIONS,
    Change,
    KeyPath,
    differences,
    path_of,
    same,
    shown,
)
from importer.config_file.merge import Conflict
from importer.config_file.name_allocator import Names
from importer.config_file.receipt import Receipt, evidence_json
from importer.config_file.review import change_json
from importer.config_file.store import Store, StoredDocument
from importer.decisions.decision import PYTHON, Decision, Target
from importer.decisions.parsers import Unavailable
from importer.errors import DocumentError, HubError, ImporterError, RepositoryError, UsageError
from importer.frozen import frozen
from importer.hub import digests
from importer.hub.content import content_digest, weight_files
from importer.hub.local import AllowedFolders
from importer.hub.resolver import files_at
from importer.hub.snapshot import RepoFile, Snapshot
from importer.proof.result import ProofReason
from importer.reasons import Reason, ReasonKind
from importer.sentences import render
from importer.signals.evidence import Rule, is_warning
from importer.signals.reasons import FIELDS
from importer.version import __version__

MOST_FILES = 100  # that a cause names
SHORT = 12  # digits of a digest that a cause shows


class CauseKind(StrEnum):
    """What is another one now. ``REFUSED`` and ``RULES`` are of findings, without values of their own.

    Those from ``PARSER_RENAMED`` on are what another version of the engine changes.
    """

    MODEL = "model"
    COMMIT = "commit"
    WEIGHTS = "weights"
    BACKEND = "backend"
    ENGINE = "engine"
    PARSERS = "parsers"
    TABLES = "tables"
    DEVICE = "device"
    IMPORTER = "importer"
    REFUSED = "refused"
    RULES = "rules"
    PARSER_RENAMED = "parser-renamed"
    PARSER_GONE = "parser-gone"
    PARSER_REFUTED = "parser-refuted"
    PARSER_BETTER = "parser-better"
    ARGUMENT_RENAMED = "argument-renamed"
    ARGUMENT_GONE = "argument-gone"
    ARGUMENT_CHANGED = "argument-changed"
    DEFAULT = "default"
    VARIABLE_GONE = "variable-gone"
    TOGETHER = "together"
    PROMPT = "prompt"
    MEMORY = "memory"
    SUPPORT = "support"
    FRONTEND = "frontend"


@frozen
class ChangeCause:
    """What is another one now, before and after. ``None`` on both sides: ``keys`` alone say what changed.

    ``files``  the paths that a new commit added, changed or removed, where both listings are known.
    ``keys``   the decisions that rest on it.
    ``why``    a reason beside the values.
    """

    what: CauseKind
    before: str | None
    after: str | None
    files: Sequence[str] | None = None
    keys: Sequence[str] | None = None
    why: Reason | None = None

    def to_json(self) -> dict[str, object]:
        """Return the members for ``--json``; ``files``, ``keys`` and ``why`` where they are known."""
        members: dict[str, object] = {"what": str(self.what), "before": self.before, "after": self.after}
        beside = {"files": self.files, "keys": self.keys}
        members |= {name: list(value) for name, value in beside.items() if value is not None}
        return members if self.why is None else members | {"why": render(self.why)}


def upstream(receipt: Receipt, now: Snapshot, *, offline: bool = False) -> Iterator[ChangeCause]:
    """Yield the commit that moved with its changed files, and weights with other hashes.

    Of a commit that the Hub no longer lists the receipt has some files: those beside the weights.
    """
    moved = receipt.revision != now.revision
    before = _files_before(receipt, now, offline=offline) if moved else None
    if moved:
        changed = _of_receipt(receipt, now) if before is None else differing(before, now.files)
        yield ChangeCause(CauseKind.COMMIT, receipt.revision, now.revision, files=changed[:MOST_FILES])
    weights = _weights(receipt, before, now)
    if weights:
        yield ChangeCause(CauseKind.WEIGHTS, receipt.revision, now.revision, files=weights[:MOST_FILES])
    if None in (receipt.revision, now.revision):
        yield from _in_folder(receipt.weights, digests.imported(now))


def _in_folder(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[ChangeCause]:
    """Yield weights of a folder with other digests, or that only one side has."""
    changed = sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
    if changed:
        was, now_is = (_shown([side[path] for path in changed if path in side]) for side in (before, now))
        yield ChangeCause(CauseKind.WEIGHTS, was, now_is, files=changed[:MOST_FILES])


def _shown(values: Sequence[str]) -> str | None:
    """Return one digest, shortened, that stands for all of these."""
    both = values[0] if len(values) == 1 else hashlib.sha256("\n".join(values).encode()).hexdigest()
    return both[:SHORT] if values else None


def tables(keys: Mapping[str, Iterable[Rule]]) -> ChangeCause | None:
    """Return the cause of decisions whose evidence from a table changed; ``keys`` have its rules."""
    found = [key for key, rules in keys.items() if any(rule.status == "table" for rule in rules)]
    return ChangeCause(CauseKind.TABLES, None, None, keys=found) if found else None


def of_refusal(error: ImporterError) -> tuple[ChangeCause, ...]:
    """Return the parser that the engine's version lacks, where that refuses an import."""
    if error.kind != "unknown-parser":
        return ()
    field, name = str(error.details["field"]), str(error.details["name"])
    return (ChangeCause(CauseKind.PARSERS, name, None, keys=[field.replace(" ", "_")]),)


def differing(before: Iterable[RepoFile], after: Iterable[RepoFile]) -> list[str]:
    """Return the paths that only one listing has, or whose hash, else size, is another one."""
    old, new = ({file.path: file.hash or file.size for file in side} for side in (before, after))
    both = {*old, *new}
    return sorted(p for p in both if (p in old, old.get(p)) != (p in new, new.get(p)))


def _files_before(receipt: Receipt, now: Snapshot, *, offline: bool) -> Sequence[RepoFile] | None:
    if now.model_id is None or receipt.revision is None:
        return None
    try:
        return files_at(receipt.model_id or now.model_id, receipt.revision, offline=offline)
    except (HubError, RepositoryError):
        return None


def _of_receipt(receipt: Receipt, now: Snapshot) -> list[str]:
    old, new = receipt.files, now.settings
    return sorted(path for path in {*old, *new} if old.get(path) != new.get(path))


def _weights(receipt: Receipt, before: Sequence[RepoFile] | None, now: Snapshot) -> list[str]:
    """Return weights with other hashes; those of one commit differ where only its content does."""
    if before is not None:
        return differing(weight_files(tuple(before)), weight_files(now.files))
    content = content_digest(now)
    if None in (receipt.content, content) or receipt.content == content or receipt.revision != now.revision:
        return []
    return [] if _of_receipt(receipt, now) else [file.path for file in weight_files(now.files)]


Facts = Sequence[Fact]  # evidence as it stands in receipts
RULES = frozenset(str(rule) for rule in Rule)  # a receipt of another importer may have others
UNPROVED = (
    ProofReason.NOT_PROVED, Unavailable.NOTHING_RENDERED, Unavailable.NOT_RUN_HERE, Unavailable.NOT_INSTALLED,
    Unavailable.NOT_KNOWN,
)  # fmt: skip


class RecheckReason(ReasonKind):
    """What changed that a decision rests on."""

    BACKEND = "backend", "it is decided for {backend} now"
    NO_SUCH_PARSER = (
        "no-such-parser",
        lambda fields: f"{fields['engine']} has no {FIELDS[fields['field']]} named {fields['parser']}",
    )
    NEW_PARSER = (
        "new-parser",
        lambda fields: (
            f"{fields['engine']} has the {FIELDS[fields['field']]} {fields['parser']}, "
            f"which {fields['before']} has not"
        ),
    )
    NOT_PROVED = "not-proved", "not proved now"
    NOT_READ = "not-read", "{engine} does not read the template with {parser}: {problem}"
    READ_OTHERWISE = "read-otherwise", "{says}"
    NEW = "new", "new: {says}"
    CHANGED = "changed", "{source} now says {now}; it said {then}"
    GONE = "gone", "no longer: {says}"
    OTHER_IMPORTER = "other-importer", "importer {now} weighs the same evidence otherwise than {then} did"
    WEIGHED_OTHERWISE = "weighed-otherwise", "the same evidence is weighed otherwise now"


@frozen
class Side:
    """One decision at one time: itself, the facts on it, and the engine it was made for."""

    decision: DecisionRecord
    facts: Facts
    target: Target
    importer: str

    @property
    def value(self) -> Any:
        """Return the value; ``None`` without a decision."""
        return self.decision.get("value")

    def proof(self) -> Fact | None:
        """Return the proof of the engine's parsers, if it was run."""
        proof = next((f for f in self.facts if f["rule"] == Rule.PROOF), None)
        return proof if proof is not None and proof["value"].get("asked") else None


def change_reasons(key: str, old: Side, new: Side, why: Sequence[Reason]) -> tuple[Reason, ...]:
    """Return what changed that this decision rests on, whose own reasons now are ``why``; never empty."""
    changes = [*_registries(key, old, new), *_proofs(old, new, why), *_facts(old, new)]
    if not changes and old.target.backend != new.target.backend:
        changes = [Reason(RecheckReason.BACKEND, backend=new.target.backend)]
    if not changes and not new.facts:
        changes = list(why[:1])
    return tuple(changes) or (_weighed(old, new),)


def _registries(key: str, old: Side, new: Side) -> Iterator[Reason]:
    """Yield a name that one version of the engine has and the other lacks."""
    if key not in OPTIONS or old.target.backend != new.target.backend:
        return
    if old.value is not None and not new.target.has(key, old.value):
        yield Reason(RecheckReason.NO_SUCH_PARSER, engine=_engine(new), field=key, parser=old.value)
    if new.value is not None and not old.target.has(key, new.value):
        yield Reason(
            RecheckReason.NEW_PARSER, engine=_engine(new), field=key, parser=new.value, before=_engine(old)
        )


def _proofs(old: Side, new: Side, why: Sequence[Reason]) -> Iterator[Reason]:
    before, after = old.proof(), new.proof()
    if after is None:
        if before is not None:
            unproved = [reason for reason in why if reason.kind in UNPROVED]
            yield from unproved or [Reason(RecheckReason.NOT_PROVED)]
        return
    refuted = after["value"].get("refuted", {}).get(old.value)
    if refuted:
        yield Reason(RecheckReason.NOT_READ, engine=after["source"], parser=old.value, problem=refuted)
    elif before is None or before["value"].get("reads") != after["value"].get("reads"):
        yield Reason(RecheckReason.READ_OTHERWISE, says=after["message"])


def _facts(old: Side, new: Side) -> Iterator[Reason]:
    """Yield the evidence of a file or a table that is different, new or missing."""
    missing = _unmatched(old.facts, new.facts)
    for fact in _unmatched(new.facts, old.facts):
        was = next((g for g in missing if (g["rule"], g["source"]) == (fact["rule"], fact["source"])), None)
        if was is None:
            yield Reason(RecheckReason.NEW, says=fact["message"])
        else:
            missing.remove(was)
            now, then = _brief(fact, was)
            yield Reason(RecheckReason.CHANGED, source=fact["source"], now=now, then=then)
    for fact in missing:
        yield Reason(RecheckReason.GONE, says=fact["message"])


def rules_moved(old: Side, new: Side) -> tuple[Rule, ...]:
    """Return the rules of the evidence that is new, different or missing."""
    facts = (*_unmatched(new.facts, old.facts), *_unmatched(old.facts, new.facts))
    return tuple(dict.fromkeys(Rule(fact["rule"]) for fact in facts if fact["rule"] in RULES))


def _unmatched(facts: Facts, others: Facts) -> list[Fact]:
    """Return facts without an equal among the others, apart from their text; the proof is compared
    elsewhere.
    """
    known = {_identity(f) for f in others}
    return [f for f in facts if f["rule"] != Rule.PROOF and _identity(f) not in known]


def _identity(fact: Fact) -> str:
    return json.dumps([fact["rule"], fact["source"], fact["value"], fact["quote"]], sort_keys=True)


def _brief(one: Fact, other: Fact) -> tuple[str, str]:
    """Return the two in short texts that differ: their quotes, else their values."""
    if one["quote"] and other["quote"] and one["quote"] != other["quote"]:
        return str(one["quote"]), str(other["quote"])
    return shown(one["value"]), shown(other["value"])


def _weighed(old: Side, new: Side) -> Reason:
    if old.importer != new.importer:
        return Reason(RecheckReason.OTHER_IMPORTER, now=new.importer, then=old.importer)
    return Reason(RecheckReason.WEIGHED_OTHERWISE)


def _engine(side: Side) -> str:
    return f"{side.target.backend} {side.target.version}"


@frozen
class Yours:
    """A person's value in place of the importer's; an import keeps it or reports a conflict."""

    value: Any

    def to_json(self) -> dict[str, object]:
        """Return the members for ``--json``; ``yours`` is left out for a removed key."""
        return {"covered": True} | ({} if self.value is ABSENT else {"yours": self.value})


@frozen
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

    def to_json(self) -> dict[str, object]:
        """Return the members for ``--json``."""
        members = {
            "key": self.key,
            "before": self.before,
            "after": self.after,
            "why": [render(reason) for reason in self.why],
        }
        return members | ({"covered": False} if self.yours is None else self.yours.to_json())


@frozen
class MovedRevision:
    """A change of the document's data that is no decision: a commit, a version, a finding."""

    change: Change
    yours: Yours | None = None

    def to_json(self) -> dict[str, object]:
        """Return the members for ``--json``."""
        return change_json(self.change) | ({"covered": False} if self.yours is None else self.yours.to_json())


@frozen
class RecheckFinding:
    """The recheck of one document. ``request`` is its receipt's; ``refused`` is why an import would fail.

    ``conflicts`` are values that a person and an import now have changed, each to another.
    """

    name: str
    model: str | None
    request: Mapping[str, object]
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

    def to_json(self, worded: Callable[[ImporterError], Mapping[str, object]]) -> dict[str, object]:
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


UNDECIDED: DecisionRecord = {"value": None, "why": (), "reasons": ()}  # a decision of the other side alone


@frozen
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
        planned = planned_again(request, receipt, store, bench, places)
        conflicts = _conflicts(planned, store)
    except (RepositoryError, UsageError) as error:
        if error.kind == "no-such-directory":
            raise
        causes = of_refusal(error)
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


def planned_again(
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
    yield from upstream(receipt, planned.snapshot, offline=offline)
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
    table = tables({one.key: one.rules for one in altered})
    if table is not None:
        yield table


def _version(version: str | None, frontend: str | None) -> str | None:
    """Return the version, with a frontend that is not the one in Python."""
    return version if frontend in (None, PYTHON) else f"{version} ({frontend})"


def _device(fit: Mapping[str, object] | None) -> str | None:
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
        if key in ELSEWHERE or same(old.value, new.value):
            why = _new_warnings(old.decision, planned.decisions.get(key))
        else:
            why = change_reasons(key, old, new, _why(planned.decisions.get(key)))
        if why:
            yield Altered(
                key, old.value, new.value, why, yours_of(stored, place_of(key), edits), rules_moved(old, new)
            )


def _why(decision: Decision | None) -> tuple[Reason, ...]:
    return () if decision is None else decision.why


def _new_warnings(old: DecisionRecord, new: Decision | None) -> tuple[Reason, ...]:
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


def _at(data: Document, path: KeyPath) -> Any:
    value: Any = data
    for step in path:
        value = value.get(step, ABSENT) if isinstance(value, Mapping) else ABSENT
    return value
