"""One evaluation for all documents that share template, facts and settings: decided for both versions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from importer.analysis import Analysis, EngineQuestion, Facts, Question
from importer.app.decide import Decided, ImportRequest, Studied, finalize, prove_studied, study_snapshot
from importer.app.import_ import Plan, build_plan
from importer.app.recheck import CauseKind, ChangeCause, Side, change_reasons
from importer.app.session import ImportSession
from importer.app.upgrade_versions import BY_MODEL, KINDS, OF_VERSION, VersionDifference
from importer.config_file import model_conflicts, template_file
from importer.config_file.build import kept, to_text
from importer.config_file.document import Document
from importer.config_file.document_keys import ELSEWHERE, REMARKS, canonical, same, shown
from importer.config_file.name_allocator import Names
from importer.config_file.receipt import Receipt, evidence_json
from importer.config_file.records import DecisionRecord, Fact
from importer.config_file.store import Store, StoredDocument
from importer.errors import EngineError, ImporterError, RepositoryError, UsageError
from importer.frozen import frozen
from importer.hub import resolve
from importer.hub.local import AllowedFolders
from importer.hub.reference import parse
from importer.hub.snapshot import Snapshot
from importer.proof import Proof
from importer.proof.prompt_result import FrontendPrompts, PromptDifference
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
    facts = model_conflicts.read(after.snapshot, after.target.able)
    return Outlook(
        data=(before.built.data, after.built.data),
        texts=(to_text(before.built), to_text(after.built)),
        decisions=decisions,
        evidence=tuple(fact for fact in evidence_json(after.evidence) if fact["key"] in keys),
        proof=None if after.proof is None else after.proof.to_json(),
        fit=fits[1],
        warnings=tuple(one.to_json() for one in after.warnings if one.key in keys),
        model=model_conflicts.to_json(facts),
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
    for now in after.proof.prompts:
        was = old.get(now.frontend)
        if was is None or now.failed is not None or was.version == now.version:
            continue
        old_cases, new_cases = _rendered(was), _rendered(now)
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
            yield ChangeCause(CauseKind.PROMPT, _count(was), _count(now), keys=[now.frontend])


def _rendered(prompts: FrontendPrompts) -> Mapping[str, Reason]:
    """Return the conversations that a frontend renders otherwise than transformers does, by their case."""
    return {str(finding.fields["case"]): finding for finding in prompts.chosen.findings}


def _count(prompts: FrontendPrompts) -> str:
    return f"{prompts.chosen.equal} of {prompts.chosen.of} prompts equal, contents {prompts.best}"


def _text(value: Any) -> str | None:
    return None if value is None else value if isinstance(value, str) else shown(value)
