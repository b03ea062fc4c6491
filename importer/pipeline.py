"""The whole way: reference → snapshot → study → evidence → decisions → document."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from importer import __version__
from importer.decide.choose import PARSERS, decide
from importer.decide.decision import Decision, to_json
from importer.decide.parsers import SILENT_KINDS
from importer.decide.settings import decide_setting
from importer.decide.target import Preferences, Target
from importer.document import chat_template
from importer.document.build import Built, Subject, build
from importer.document.digest import digest
from importer.document.names import check
from importer.document.naming import Names
from importer.document.receipt import Receipt, evidence_json
from importer.document.store import Stored
from importer.document.text import to_text
from importer.errors import EngineError, RepositoryError, UsageError
from importer.evidence.fact import Evidence
from importer.hub.snapshot import Snapshot
from importer.preferences import DEVICE, check_document, check_parsers, recalled
from importer.proof import Proof
from importer.template import given
from importer.template.given import Given
from importer.template.ours import CONVENTIONS
from importer.template.study import Study
from importer.workbench import Workbench

if TYPE_CHECKING:
    from importer.engines.parsers import Tokens
    from importer.fit.choose import Choice

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Request:
    """What to import, and what the user said about it; ``memory`` in bytes."""

    reference: str
    revision: str | None = None
    name: str | None = None
    preferences: Preferences = field(default_factory=Preferences)
    engine_version: str | None = None
    offline: bool = False
    ignore_name: bool = False
    device: str | None = None
    memory: int | None = None
    exact_fit: bool = False
    template: Given | None = None

    @property
    def heard(self) -> Preferences:
        """The preferences, and which template they are for."""
        return replace(self.preferences, template=self.template.name if self.template else None)

    def to_json(self) -> dict[str, Any]:
        """As it stands in a receipt; whether the Hub may be asked is of one run only."""
        said = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "offline"}
        template = None if self.template is None else self.template.word
        return said | {"preferences": dict(self.preferences.values), "template": template}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, offline: bool = False) -> Request:
        """The request that ``to_json`` gave, but for the template: ``after`` hears it from the document."""
        known = {f.name: data[f.name] for f in fields(cls) if f.name in data and f.name != "template"}
        return cls(**known | {"preferences": Preferences(data.get("preferences", {})), "offline": offline})

    def after(self, stored: Stored | None) -> Request:
        """The request on top of what the document's earlier ones said.

        Raises DocumentError("chat-template") where a template is to stay that is no longer whole.
        """
        receipt = None if stored is None else stored.receipt
        said = receipt.request if receipt is not None and receipt.request is not None else {}
        template, word = self.template, said.get("template")
        if template is None and stored is not None and word is not None:
            beside = None if word in CONVENTIONS else stored.chat_template()
            template = given.again(word, None if beside is None else beside.text)
        if template is not None and template.name == given.NONE:
            template = None
        told = replace(self, preferences=recalled(self.preferences, stored), template=template)
        if self.device is not None or self.memory is not None or DEVICE in self.preferences.unset:
            return told
        return replace(told, device=said.get("device"), memory=said.get("memory"))


@dataclass(frozen=True, slots=True)
class Decided:
    """Everything decided, no name given yet; ``chat_template`` is a text in place of the model's own."""

    request: Request
    snapshot: Snapshot
    target: Target
    evidence: tuple[Evidence, ...]
    decisions: Mapping[str, Decision]
    proof: Proof | None
    fit: Choice
    chat_template: str | None

    @property
    def model(self) -> str:
        """What the engine is told: the Hub id, or the directory."""
        return self.snapshot.model_id or str(self.snapshot.directory)

    @property
    def reference(self) -> str:
        """One form for all that mean the same: the id as the Hub writes it, a revision only if pinned."""
        return self.model if self.pinned is None else f"{self.model}@{self.pinned}"

    @property
    def pinned(self) -> str | None:
        """The revision that the user asked for, where it is not the default one."""
        from importer.hub.reference import parse, pinned

        return pinned(parse(self.request.reference, self.request.revision))


@dataclass(frozen=True, slots=True)
class Plan(Decided):
    """The document as it would be written."""

    name: str
    built: Built

    @property
    def digest(self) -> str:
        """Of the document's data."""
        return digest(self.built.data)

    def report(self, path: Path) -> dict[str, Any]:
        """The frozen line of --json."""
        return {
            "schema": 1,
            "reference": self.request.reference,
            "model_id": self.snapshot.model_id,
            "revision": self.snapshot.revision,
            "name": self.name,
            "path": str(path),
            "document": self.built.data,
            "decisions": {k: to_json(d) for k, d in self.decisions.items()},
        }

    def receipt(self) -> Receipt:
        """A new receipt: review pending, never validated."""
        directory = self.snapshot.directory if self.snapshot.model_id is None else None
        return Receipt(
            name=self.name,
            reference=self.reference,
            model_id=self.snapshot.model_id,
            revision=self.snapshot.revision,
            directory=None if directory is None else str(directory),
            digest=self.digest,
            imported_at=now(),
            importer=__version__,
            engine=self.built.data["importer"]["engine"],
            decisions={k: to_json(d) for k, d in self.decisions.items()},
            evidence=evidence_json(self.evidence),
            unknown=dict(self.snapshot.unknown),
            review={"state": "pending", "by": None, "at": None, "digest": None},
            proof=None if self.proof is None else self.proof.to_json(),
            base=to_text(self.built),
            request=replace(self.request, reference=self.model, revision=self.pinned).to_json(),
            fit=self.fit.to_json(),
        )


def plan(request: Request, names: Names, bench: Workbench, progress: Progress = lambda _: None) -> Plan:
    """Resolve, gather evidence, decide and lay out the document; writes nothing. Raises ImporterError."""
    return lay_out(resolve_and_decide(request, bench, progress, names), names)


def resolve_and_decide(
    request: Request, bench: Workbench, progress: Progress = lambda _: None, names: Names | None = None
) -> Decided:
    """Everything that takes time; safe to run for several requests at once. Raises ImporterError.

    With ``names`` the request goes on where the model's document has been told something before.
    """
    from importer.hub import resolve
    from importer.hub.reference import parse

    progress("resolving")
    snapshot = resolve(parse(request.reference, request.revision), offline=request.offline)
    if names is not None:
        request = request.after(names.known(snapshot, request.name))
    return decide_snapshot(snapshot, request, bench, progress)


def decide_snapshot(
    snapshot: Snapshot, request: Request, bench: Workbench, progress: Progress = lambda _: None
) -> Decided:
    """What is decided on a snapshot, wherever it came from. Raises ImporterError."""
    bench.wake()
    from importer.engines import abilities
    from importer.evidence.gather import for_engine, gather
    from importer.evidence.kind import find_kind
    from importer.fit.place import Wanted
    from importer.fitting import fit
    from importer.proof.renderers import own_renderer, rendered_by
    from importer.proof.tokens import tokens_of
    from importer.target import bind, machine_for, platform_for, with_template
    from importer.template import source, vocabulary

    kind = find_kind(snapshot, request.ignore_name)
    problem = None if "kind" in request.preferences.values else kind.error(snapshot.label)
    if problem is not None:
        raise problem
    _check_something(snapshot)
    progress("rendering the chat template")
    own, tokens = source.find(snapshot), vocabulary.read(snapshot)
    template = own if request.template is None else bench.dress(request.template, own, tokens)
    study = None if template is None else bench.study(template, tokens)
    machine = machine_for(request.device)
    facts = gather(
        snapshot, kind, study, platform_for(request.device), ignore_name=request.ignore_name,
        machine=machine, able=abilities.load,
        template=None if request.template is None else request.template.source,
    )  # fmt: skip
    backend = decide_setting("backend", [e for e in facts if e.key == "backend"], request.preferences)
    bound = bind(str(backend.value), request.engine_version, ask=bench.proves)
    target = bound.target if request.template is None else with_template(bound.target, request.template)
    check_parsers(request.preferences, target)
    evidence = for_engine(facts, snapshot, target.backend, target.parsers, target.able, machine)
    mode = own_renderer(snapshot, evidence, target)
    by_itself = None if mode is None else rendered_by(mode, target)
    if by_itself is not None or template is None:
        target = replace(target, templates=())
    evidence += _given(request, study, kind.kind, by_itself, target)
    proof = None
    if template is not None and study is not None and bound.python is not None:
        progress(f"asking {target.backend}'s parsers")
        described = tokens_of(snapshot, template, tokens)
        proof = _proof(bench, study, described, target, bound.python, by_itself)
        evidence += proof.evidence()
    preferences = request.heard
    thinking = study.thinking if study is not None and study.samples else None
    pins = None if proof is None else proof.pins
    said = decide(evidence, preferences, target, thinking, pins)
    choice = fit(
        snapshot, request.device, request.memory, target.backend,
        Wanted({key: decision.value for key, decision in said.items()}, preferences.values.keys()),
        exact=request.exact_fit, offline=request.offline, progress=progress,
    )  # fmt: skip
    evidence += choice.evidence
    decisions = decide(evidence, preferences, target, thinking, pins)
    text = None if request.template is None or template is None else template.text
    return Decided(request, snapshot, target, tuple(evidence), decisions, proof, choice, text)


def _given(
    request: Request, study: Study | None, kind: str, by_itself: str | None, target: Target
) -> list[Evidence]:
    """What the template says that the user gave.

    Raises UsageError("bad-option") for one that cannot be rendered or would be given in vain.
    """
    from importer.evidence.rendered import given_by

    if request.template is None:
        return []
    problem = by_itself or SILENT_KINDS.get(str(request.preferences.values.get("kind", kind)))
    if study is not None and not study.samples:
        problem = f"it cannot be rendered: {next(iter(study.problems.values()), 'no case gave a text')}"
    if problem is not None:
        raise UsageError("bad-option", option=f"--template {request.template.word}", problem=problem)
    return given_by(request.template, target.backend)


def _proof(
    bench: Workbench,
    study: Study,
    described: tuple[Tokens, bool],
    target: Target,
    python: Path,
    by_itself: str | None,
) -> Proof:
    """Deciding needs no engine: a broken one costs the proof and not the import."""
    from importer.proof.renderers import unproved

    if by_itself is not None:
        return unproved(by_itself, target, study.digest)
    try:
        return bench.prove(study, *described, target, python)
    except EngineError as error:
        return unproved(f"{error.message} {error.hint}", target, study.digest)


def lay_out(decided: Decided, names: Names) -> Plan:
    """The document under its name. Raises UsageError for a name or a value that no document may have."""
    from importer.engines import get

    request, snapshot, target, decisions = (
        decided.request, decided.snapshot, decided.target, decided.decisions,
    )  # fmt: skip
    name = check(request.name) if request.name is not None else names.give(snapshot)
    subject = Subject(
        name=name,
        reference=decided.reference,
        model=decided.model,
        model_id=snapshot.model_id,
        revision=snapshot.revision,
    )
    engine = {"name": target.backend, "version": target.version}
    findings = _findings(decisions, decided.proof) | _beside(name, decided)
    if snapshot.license is not None:
        findings["license"] = snapshot.license
    built = build(subject, decisions, engine, findings)
    adapter = get(target.backend) if target.runs else None
    client = {} if adapter is None else adapter.client_sampling(built.data)
    if client:
        built.data["importer"]["client_sampling"] = client
    if adapter is not None:
        decisions = _told(decisions, client, adapter.offers, engine)
    check_document(built.data, request.preferences)
    made = {f.name: getattr(decided, f.name) for f in fields(decided)} | {"decisions": decisions}
    return Plan(**made, name=name, built=built)


def now() -> str:
    """The time as receipts write it: UTC, seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _check_something(snapshot: Snapshot) -> None:
    """A repository without any file that says something is no ground for a decision."""
    if (
        not snapshot.texts
        and not snapshot.info.get("config")
        and not any(f.path.endswith((".safetensors", ".bin", ".npz")) for f in snapshot.files)
    ):
        raise RepositoryError(
            "nothing-to-decide",
            repo=snapshot.label,
            problem="it has no config, no tokenizer settings, no chat template and no weights",
        )


def _told(
    decisions: Mapping[str, Decision],
    client: Mapping[str, Any],
    offers: Collection[str],
    engine: Mapping[str, Any],
) -> dict[str, Decision]:
    """The decisions, with a word on each value that this version of the engine cannot be started with."""
    name = " ".join(str(engine[k]) for k in ("name", "version") if engine[k])
    sent = {key for one in client for key in (one, f"parameters.{one}")}
    says = dict.fromkeys(sent, f"{name} cannot be started with it: clients have to send it")
    if "stop" not in offers:
        says["stopwords"] = f"{name} heeds no stop words, neither at its start nor in requests"
    return {
        key: replace(d, why=(*d.why, says[key])) if key in says and d.value is not None else d
        for key, d in decisions.items()
    }


def _beside(name: str, decided: Decided) -> dict[str, Any]:
    """What our own block says of a template beside the document."""
    given, text = decided.request.template, decided.chat_template
    if given is None or text is None:
        return {}
    return {chat_template.KEY: chat_template.entry(given.name, name, text)}


def _findings(decisions: Mapping[str, Decision], proof: Proof | None) -> dict[str, Any]:
    """What our own block records of the chosen parsers: how they differ when their input comes in pieces."""
    if proof is None:
        return {}
    told = {key: proof.streaming(key, decisions[key].value) for key in PARSERS}
    streaming = {key: finding for key, finding in told.items() if finding}
    return {"streaming": streaming} if streaming else {}
