"""Another version of an engine for many documents: what changes in each, and the working copy after it.

Documents that share template, facts and settings are decided once, for both versions; a document of which
nothing moved is not decided at all. Nothing here asks the Hub.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from threading import Lock
from typing import Any

from importer.analysis import Analysis, EngineQuestion, Facts, Question
from importer.app import upgrade_versions
from importer.app.decide import Decided, ImportRequest, Studied, finalize, prove_studied, study_snapshot
from importer.app.import_ import Plan, build_plan, with_derived
from importer.app.recheck import (
    Altered,
    CauseKind,
    ChangeCause,
    MovedRevision,
    RecheckFinding,
    Side,
    change_reasons,
    place_of,
    touch,
    yours_of,
)
from importer.app.session import ImportSession
from importer.app.upgrade_versions import (
    BLOCKING,
    BY_MODEL,
    KINDS,
    OF_VERSION,
    EngineVersion,
    Renamed,
    VersionDifference,
    at_version,
    difference,
    known_before,
    renames,
)
from importer.config import now
from importer.config_file import check, merge, template_file
from importer.config_file.build import kept, to_text
from importer.config_file.document import DecisionRecord, Document, Engine, Fact
from importer.config_file.document_keys import ELSEWHERE, REMARKS, canonical, differences, digest, same, shown
from importer.config_file.merge import Merge, Take
from importer.config_file.name_allocator import Names
from importer.config_file.receipt import Receipt, evidence_json
from importer.config_file.store import Store, StoredDocument
from importer.config_file.yaml_edit.patch import rewrite
from importer.decisions.decision import PYTHON
from importer.engines import get, install, runs
from importer.errors import DocumentError, EngineError, HubError, ImporterError, RepositoryError, UsageError
from importer.frozen import frozen
from importer.hub import resolve
from importer.hub.local import AllowedFolders
from importer.hub.reference import parse
from importer.hub.snapshot import Snapshot
from importer.proof import Proof
from importer.proof.result import FrontendPrompts, PromptDifference
from importer.reasons import Reason
from importer.signals.engine_capabilities import Abilities
from importer.signals.evidence import Rule
from importer.version import __version__

PARSERS = (*KINDS,)
CHAT = "chat"  # the kind of models with a template
ASIDE = (*ELSEWHERE, "sisters")  # remarks on other repositories: no version of an engine changes them
UNDECIDED: DecisionRecord = {"value": None, "why": (), "reasons": ()}  # a decision of the other side alone
OF_MODEL = ("reference", "revision", "name", "engine_version")  # of a request; no setting


class OneStudy(ImportSession):
    """A session that analyses the files of one snapshot once, for both versions of the engine.

    ``trials`` are abilities of another version, for what no table of the asked version knows.
    """

    def __init__(self, bench: ImportSession) -> None:
        super().__init__(proves=bench.proves, sandbox=bench.sandbox)
        self._bench = bench
        self._last: tuple[Question, Analysis] | None = None
        self.trials: Abilities | None = None

    def analyse(self, question: Question) -> Analysis:
        """Return the analysis, the last one for an equal question."""
        if self._last is None or self._last[0] != question:
            self._last = (question, self._bench.analyse(question))
        return self._last[1]

    def bind(self, bound: EngineQuestion) -> Facts:
        """Return the evidence for one engine."""
        able = bound.able if self.trials is None else _tried(bound.able, self.trials)
        return self._bench.bind(replace(bound, able=able))

    def prove(self, *given: Any, **options: Any) -> Proof:
        """Return the proof of the shared session, whose workers stay warm."""
        return self._bench.prove(*given, **options)

    def prompts(self, *given: Any, **options: Any) -> tuple[FrontendPrompts, ...]:
        """Return the prompts of the shared session."""
        return self._bench.prompts(*given, **options)


@frozen
class Redecided:
    """A decision with another value under the new version, with its JSON on either side."""

    key: str
    before: DecisionRecord
    after: DecisionRecord
    why: tuple[Reason, ...]


@frozen
class Outlook:
    """What the new version changes for every document of one likeness.

    ``data``      both documents of the representative as an import writes them, and ``texts`` theirs.
    ``evidence``  of the new version, for the decisions that moved.
    ``proved``    whether the new version's own parsers were asked; else ``proof`` is that of the old version.
    ``refused``   the reason why the new version's import fails.
    """

    data: tuple[Document, Document] | None = None
    texts: tuple[str, str] = ("", "")
    decisions: tuple[Redecided, ...] = ()
    evidence: tuple[Fact, ...] = ()
    proof: Mapping[str, object] | None = None
    fit: Mapping[str, object] | None = None
    warnings: tuple[Mapping[str, object], ...] = ()
    model: Mapping[str, object] | None = None
    causes: tuple[ChangeCause, ...] = ()
    proved: bool = False
    refused: ImporterError | None = None


def likeness(receipt: Receipt, data: Document) -> str:
    """Return a digest that documents share where another version of their engine changes the same.

    It is over the template's digest, the facts that were found (not their places), the decisions and the
    settings; names, references and commits do not count. ``data`` may name a template beside the document.
    """
    proof = receipt.proof or {}
    request = {k: v for k, v in receipt.request.items() if k not in OF_MODEL}
    facts = sorted(
        canonical([fact["rule"], fact["key"], fact["value"]])
        for fact in receipt.evidence
        if fact["rule"] != Rule.PROOF and fact["key"] not in ASIDE
    )
    values = {
        key: [one.get("value"), one.get("status")]
        for key, one in receipt.decisions.items()
        if key not in ASIDE
    }
    fit = receipt.fit or {}
    block = data.get("importer")
    beside = block.get(template_file.KEY) if isinstance(block, Mapping) else None
    template = beside.get("sha256") if isinstance(beside, Mapping) else None
    parts = [
        receipt.engine, template, request, facts, values, receipt.model,
        [proof.get("template"), proof.get("renders")],
        [fit.get("device"), fit.get("chosen"), fit.get("estimate")],
    ]  # fmt: skip
    return hashlib.sha256(canonical(parts).encode("utf-8", "surrogatepass")).hexdigest()


def needs_study(receipt: Receipt, moved: VersionDifference, *, installed: bool) -> bool:
    """Return whether the decisions of a document may be others under the new version.

    They may be where its engine can prove the template anew, where a table holds something else of its model,
    and where the new version has a parser that the evidence names or the model lacks.
    """
    if moved.all_models:
        return True
    kind = receipt.decisions.get("kind", {}).get("value")
    if installed and (receipt.proof is not None or kind == CHAT):
        return True
    named = {*receipt.model.get("model_types", ()), *receipt.model.get("architectures", ())}
    if named & moved.models:
        return True
    return any(_names_parser(receipt, key, new) for key, new in moved.parsers.items() if new)


def _names_parser(receipt: Receipt, key: str, new: frozenset[str]) -> bool:
    decision = receipt.decisions.get(key, {})
    offered = {str(one.get("value")) for one in decision.get("overruled", ())}
    facts = {
        str(fact["value"]) for fact in receipt.evidence if fact["key"] == key and fact["rule"] != Rule.PROOF
    }
    return bool((offered | facts) & new)


def parsers_gone(receipt: Receipt, moved: VersionDifference) -> bool:
    """Return whether a decided parser is absent in the new version."""
    new = moved.after.registry(receipt.engine.get("frontend"))
    values = {
        key: str(value)
        for key in PARSERS
        if (value := receipt.decisions.get(key, {}).get("value")) is not None
    }
    return new is not None and any(
        key in values and moved.before.parsers.has(kind, values[key]) and not new.has(kind, values[key])
        for key, kind in KINDS.items()
    )


def snapshot_of(receipt: Receipt, places: AllowedFolders) -> Snapshot:
    """Return the imported commit from this disk.

    Raises HubError("not-cached"), and UsageError("no-such-directory") for a directory that is gone.
    """
    text = receipt.directory or receipt.model_id or receipt.reference
    return resolve(parse(text, None if receipt.directory else receipt.revision), places, offline=True)


class Evaluator:
    """Decides a document for both versions of its engine, without a request to the Hub."""

    def __init__(self, bench: ImportSession, store: Store, places: AllowedFolders) -> None:
        self._bench, self._store, self._places = bench, store, places

    def outlook(
        self, stored: StoredDocument, moved: VersionDifference, spelled: Mapping[str, object]
    ) -> Outlook:
        """Return what the new version changes; ``spelled`` are the preferences under its names.

        Raises ImporterError where the snapshot is not on this disk, or cannot be imported with either
        version.
        """
        receipt = stored.need_receipt()
        snapshot = snapshot_of(receipt, self._places)
        request = ImportRequest.from_json(receipt.request, offline=True).after(stored)
        request = replace(request, reference=snapshot.model_id or str(snapshot.directory), name=receipt.name)
        study = OneStudy(self._bench)
        old = _Sided(replace(request, engine_version=moved.before.version), snapshot, study)
        before = old.plan(self._store, receipt.proof)
        preferences = replace(request.preferences, values=spelled)
        wanted = replace(request, engine_version=moved.after.version, preferences=preferences)
        study.trials = moved.before.able
        new = _Sided(wanted, snapshot, study)
        try:
            after = new.plan(self._store, None if before.proof is None else before.proof.to_json())
        except (RepositoryError, UsageError) as error:
            return Outlook(refused=error)
        return _compared(before, after, proved=new.proved)


class _Sided:
    """One side of the comparison: a request for one version, and the proof that it rests on."""

    def __init__(self, request: ImportRequest, snapshot: Snapshot, bench: ImportSession) -> None:
        self._request, self._snapshot, self._bench = request, snapshot, bench
        self.proved = False

    def plan(self, store: Store, earlier: Mapping[str, object] | None) -> Plan:
        """Return the plan; without the version's environment the ``earlier`` proof stands for its parsers."""
        studied = study_snapshot(self._snapshot, self._request, self._bench)
        return build_plan(self._decided(studied, earlier), Names(store), own=True)

    def _decided(self, studied: Studied, earlier: Mapping[str, object] | None) -> Decided:
        proof = None
        try:
            proof = prove_studied(studied, self._bench)
        except EngineError:  # a broken environment proves nothing
            proof = None
        self.proved = proof is not None and not proof.failed
        if not self.proved and earlier is not None and studied.template is not None:
            proof = Proof.from_json(earlier).only(studied.target.has)
            other = None if proof.version == studied.target.version else proof.version
            studied = replace(studied, target=replace(studied.target, proves=True, proved_by=other))
        return finalize(studied, proof)


def _tried(able: Abilities, trials: Abilities) -> Abilities:
    """Return abilities with those that only trials show, of the version that was tried."""
    own = [f for f in Abilities.__dataclass_fields__ if f not in (*OF_VERSION, *BY_MODEL)]
    return replace(able, **{f: getattr(able, f) or getattr(trials, f) for f in own})


def _compared(before: Plan, after: Plan, *, proved: bool) -> Outlook:
    decisions = tuple(_redecided(before, after))
    keys = {one.key for one in decisions}
    fits = [plan.fit.to_json() for plan in (before, after)]
    facts = check.read_model_facts(after.snapshot, after.target.able, variables=after.variables)
    return Outlook(
        data=(before.built.data, after.built.data),
        texts=(to_text(before.built), to_text(after.built)),
        decisions=decisions,
        evidence=tuple(fact for fact in evidence_json(after.evidence) if fact["key"] in keys),
        proof=None if after.proof is None else after.proof.to_json(),
        fit=fits[1],
        warnings=tuple(one.to_json() for one in after.warnings if one.key in keys),
        model=check.facts_json(facts),
        causes=(*_causes(after, decisions), *_memory(*fits), *_prompts(before, after)),
        proved=proved,
    )


def _redecided(before: Plan, after: Plan) -> Iterator[Redecided]:
    """Yield the decisions with another value."""
    old_facts, new_facts = (evidence_json(plan.evidence) for plan in (before, after))
    for key in dict.fromkeys((*before.decisions, *after.decisions)):
        old, new = _side(before, key, old_facts), _side(after, key, new_facts)
        if key not in ASIDE and not same(old.value, new.value):
            own = after.decisions[key].why if key in after.decisions else ()
            yield Redecided(key, old.decision, new.decision, change_reasons(key, old, new, own))


def _side(plan: Plan, key: str, facts: Sequence[Fact]) -> Side:
    decision = UNDECIDED if key not in plan.decisions else kept(plan.decisions[key])
    return Side(decision, [fact for fact in facts if fact["key"] == key], plan.target, __version__)


def _causes(after: Plan, decisions: Sequence[Redecided]) -> Iterator[ChangeCause]:
    """Yield the cause of each decision that moved, apart from a parser that the version lacks."""
    support = []
    for one in decisions:
        was, now = one.before.get("value"), one.after.get("value")
        if one.key not in PARSERS:
            support += [one.key] if one.key not in REMARKS else []
        elif was is None or after.target.has(one.key, was):
            refuted = was is not None and after.proof is not None and was not in after.proof.reads(one.key)
            kind = CauseKind.PARSER_REFUTED if refuted or now is None else CauseKind.PARSER_BETTER
            yield ChangeCause(kind, _text(was), _text(now), keys=[one.key], why=next(iter(one.why), None))
    if support:
        yield ChangeCause(CauseKind.SUPPORT, None, None, keys=support)


def _memory(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[ChangeCause]:
    """Yield another estimate for the same device."""
    parts = ("estimate", "chosen", "verdict")
    if any(not same(before.get(part), after.get(part)) for part in parts):
        yield ChangeCause(CauseKind.MEMORY, str(before["message"]), str(after["message"]), keys=["fit"])


def _prompts(before: Plan, after: Plan) -> Iterator[ChangeCause]:
    """Yield a frontend whose prompts differ from those of the same frontend of the version before."""
    if before.proof is None or after.proof is None:
        return
    old = {one.frontend: one for one in before.proof.prompts if one.failed is None}
    for new in after.proof.prompts:
        was = old.get(new.frontend)
        if was is None or new.failed is not None or was.version == new.version:
            continue
        old_cases, new_cases = _rendered(was), _rendered(new)
        # Where our own rendering stopped on one side, nothing is compared.
        stopped = {
            case
            for cases in (old_cases, new_cases)
            for case, found in cases.items()
            if found.kind is PromptDifference.ONLY_ENGINE
        }
        differing = {
            case for case in {*old_cases, *new_cases} - stopped if old_cases.get(case) != new_cases.get(case)
        }
        if differing:
            yield ChangeCause(CauseKind.PROMPT, _count(was), _count(new), keys=[new.frontend])


def _rendered(prompts: FrontendPrompts) -> Mapping[str, Reason]:
    """Return the conversations that a frontend renders otherwise than transformers does, by their case."""
    return {str(finding.fields["case"]): finding for finding in prompts.chosen.findings}


def _count(prompts: FrontendPrompts) -> str:
    return f"{prompts.chosen.equal} of {prompts.chosen.of} prompts equal, contents {prompts.best}"


def _text(value: Any) -> str | None:
    return None if value is None else value if isinstance(value, str) else shown(value)


ABSENT_HERE = ("not-cached", "no-such-directory", "no-directories")  # the snapshot is not on this disk


class Judged(StrEnum):
    """What a finding rests on."""

    TABLES = "tables"  # nothing of the model moved: names, values and defaults alone
    PROVED = "proved"  # the parsers of the new version read the template
    REGISTRY = "registry"  # the new version is not installed: its registry, and the proof of the last one
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
