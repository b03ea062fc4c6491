"""Analyse a snapshot and decide: evidence of the files and of the proof, then every decision.

The fit of an import: the device, the headers of the weights, and quantised repositories of the model.

Every token has a row in the embedding: what an import refuses, and what it warns of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from importer import backends, config
from importer.app import adapters
from importer.app.preferences import check_parsers, parse, recalled
from importer.app.request import KEPT, OPTIONS, RULED, ImportOptions
from importer.app.session import ImportSession
from importer.app.target import device_for
from importer.chat_template import override
from importer.chat_template.find import is_of_text
from importer.chat_template.override import AS_WRITTEN, TemplateOverride
from importer.chat_template.request_coverage.findings import KEY as REQUEST_COVERAGE
from importer.chat_template.request_coverage.findings import VARIABLES, CoverageKind
from importer.chat_template.study import TemplateAnalysis
from importer.decisions.decide import decide
from importer.decisions.decision import Decision, Frontend, Preferences, Target, decide_setting
from importer.decisions.parsers import SILENT_KINDS
from importer.document import engine_arguments
from importer.document.document_keys import frontend_of
from importer.document.name_allocator import Slot
from importer.document.store import StoredDocument
from importer.errors import EngineError, HubError, RepositoryError, Setting, UsageError
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot
from importer.memory import shape, weights
from importer.memory.choose import Choice, choose
from importer.memory.config_keys import MOST_DECLARED, most_layers
from importer.memory.estimate_types import UnknownReason
from importer.memory.measured import Measured
from importer.memory.parallelism import FitRequest
from importer.memory.plans import Aim, Goal, aim
from importer.progress import Progress, silent
from importer.proof import Proof
from importer.proof.result import downgraded, evidence_of, own_renderer, rendered_by
from importer.reasons import Reason, ReasonKind
from importer.signals import overrides, token_numbers
from importer.signals.architecture import FILE, config_of
from importer.signals.evidence import Evidence, Rule
from importer.signals.overrides import Overrides

if TYPE_CHECKING:
    from importer.chat_template.find import Template
    from importer.chat_template.vocabulary import Vocabulary
    from importer.engines.parsers import Tokens


def fit(
    snapshot: Snapshot,
    device: str | None,
    memory: int | None,
    backend: str,
    requested: FitRequest,
    *,
    aim: Aim,
    exact: bool,
    offline: bool,
    progress: Callable[[str], None],
    measured: Measured | None = None,
) -> Choice:
    """Choose context, dtype and layout for the device; ``exact`` reads the headers of all weights first.

    ``measured`` is a start of this version of the engine.

    Without a device and an amount of memory the document is for no device in particular.

    Raises UsageError, HubError and RepositoryError.
    """
    target_device = None if device is None and memory is None else device_for(device, memory, backend)
    tensors: Mapping[str, Any] | None = None
    if exact:
        from importer.hub import tensor_headers

        progress("reading the weights' headers")
        tensors = tensor_headers.tensors(snapshot, weights.files(snapshot), offline=offline)
    read = shape.read(snapshot)
    return choose(
        snapshot, read, weights.read(snapshot, read, tensors), target_device, backend, requested, aim,
        measured,
    )  # fmt: skip


def measured_by(request: ImportRequest, snapshot: Snapshot, target: Target) -> Measured | None:
    """Return the measurement of a request, where it is of this commit and of this version of the engine."""
    try:
        found = Measured.from_json(request.measured)
    except ValueError:
        return None
    same = (found.engine, found.version, found.revision) == (
        target.backend,
        target.version,
        snapshot.revision,
    )
    return found if same else None


_LATER = {Rule.TEMPLATE_FORMAT: Rule.TEMPLATE_INSTRUCTIONS}


class DecidingReason(ReasonKind):
    """Why nothing can be decided with the template that was given."""

    NOT_RENDERED = "not-rendered", "it cannot be rendered: {problem}"
    NO_TEXT = "no-text", "no case gave a text"


@frozen
class ImportRequest:
    """A reference with the options as they were read; ``memory`` in bytes.

    ``measured``  the last start with random weights, as ``Measured.to_json`` returns it.
    ``observed``  the forms of calls that a validation tried, as ``CallForm.to_json`` returns them.
    """

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
    template: TemplateOverride | None = None
    frontend: Frontend | None = None
    goal: Goal | None = None
    concurrency: int | None = None
    context: int | None = None
    per_device: bool = False
    adapter: Sequence[str] = ()
    measured: Mapping[str, Any] | None = None
    observed: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def of(cls, reference: str, options: ImportOptions) -> ImportRequest:
        """Return the request of a reference with options; an option without a reader is taken unread.

        Raises UsageError for an invalid value, TypeError for an option that is not declared.
        """
        from importer.app.target import parse_device

        given: dict[str, Any] = dict(options)
        aim(given.get("goal"), given.get("concurrency"), given.get("context"))
        device, memory = parse_device(
            given.pop("device", None), given.pop("memory", None), per_device=given.get("per_device", False)
        )
        preferences = parse(
            given.pop("settings", None), given.pop("backend", None), given.pop("unset", ()), KEPT
        )
        template = override.read(given.pop("template", None))
        return cls(
            reference, preferences=preferences, device=device, memory=memory, template=template, **given
        )

    @property
    def slot(self) -> Slot:
        """Return the place among the model's documents."""
        return Slot(self.backend, self.device, self.per_device)

    @property
    def aim(self) -> Aim:
        """Return what the deployment is for."""
        return Aim(self.goal, self.concurrency, self.context)

    @property
    def for_device(self) -> str | None:
        """Return the device of the document: the named one, else that of the settings, if there is any."""
        return self.device or config.default("device")

    @property
    def full_preferences(self) -> Preferences:
        """Return the preferences with the name of their template."""
        foreign = self.template is not None and not self.template.vendors
        return replace(self.preferences, template=self.template.name if self.template and foreign else None)

    @property
    def backend(self) -> str | None:
        """Return the backend that the user names; ``None`` where that is left open."""
        named = self.preferences.values.get("backend")
        return None if named is None else str(named)

    def to_json(self) -> dict[str, object]:
        """Return the request for a receipt, without the options of one run."""
        own = {f.name for f in fields(self)} - {o.name for o in OPTIONS.values() if not o.recorded}
        members = {f.name: getattr(self, f.name) for f in fields(self) if f.name in own}
        template = None if self.template is None else self.template.word
        return members | {"preferences": dict(self.preferences.values), "template": template}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, offline: bool = False) -> ImportRequest:
        """Return the request that ``to_json`` gave, without its template: ``after`` adds the document's."""
        known = {f.name: data[f.name] for f in fields(cls) if f.name in data and f.name != "template"}
        return cls(**known | {"preferences": Preferences(data.get("preferences", {})), "offline": offline})

    def after(self, stored: StoredDocument | None) -> ImportRequest:
        """Return the request on top of the document's earlier ones.

        Raises DocumentError("chat-template") where a template is to stay that is no longer whole.
        """
        receipt = None if stored is None else stored.receipt
        earlier = {} if receipt is None else receipt.request
        template, word = self.template, earlier.get("template")
        if template is None and stored is not None and word is not None:
            beside = None if override.is_name(word) else stored.chat_template()
            template = override.again(word, None if beside is None else beside.text)
        if template is not None and template.name == override.NONE:
            template = None
        kept = {name: earlier[name] for name in self._open() if name in earlier}
        kept |= {"measured": self.measured or earlier.get("measured")}
        runs = () if receipt is None else (receipt.validation or {}, receipt.partial or {}, earlier)
        kept["observed"] = next((run["observed"] for run in runs if run.get("observed")), ())
        if template is not None:
            template = template.spelled(kept["observed"])
        return replace(
            self, preferences=recalled(self.preferences, stored), template=template,
            frontend=self._frontend(stored, earlier), **self._devices(earlier), **kept,
        )  # fmt: skip

    def added(self, typed: ImportRequest) -> dict[str, object]:
        """Return what this request has from an earlier import, beyond the ``typed`` one; no template."""
        values = self.preferences.values
        found = {key: value for key, value in values.items() if key not in typed.preferences.values}
        devices = ("device", "memory") if (typed.device, typed.memory) == (None, None) else ()
        own = {name: getattr(self, name) for name in (*devices, *typed._open())}
        return found | {name: value for name, value in own.items() if value}

    def _open(self) -> list[str]:
        """Return the options without a value that an earlier import may give."""
        names = (name for name in KEPT if name not in (*RULED, *self.preferences.unset))
        return [name for name in names if not getattr(self, name)]

    def _devices(self, earlier: Mapping[str, object]) -> dict[str, Any]:
        """Return device and memory: the requested ones, else the last ones. One device alone stays so."""
        if "device" in self.preferences.unset:
            return {}
        alone, last = self.per_device or bool(earlier.get("per_device")), earlier.get("device")
        if self.device is not None or self.memory is not None:
            return {"device": self.device or (last if alone else None), "per_device": alone}
        return {"device": last, "memory": earlier.get("memory"), "per_device": alone}

    def _frontend(self, stored: StoredDocument | None, earlier: Mapping[str, Any]) -> Frontend | None:
        """Return the requested frontend, else the one in the file, else that of the last import."""
        backend = self.preferences.values.get("backend", backends.DEFAULT)
        if self.frontend is not None or stored is None or "frontend" in self.preferences.unset:
            return self.frontend
        several = backends.of(backend).frontends
        return (frontend_of(stored.data) or earlier.get("frontend")) if several else None


@frozen
class Decided:
    """Everything decided, no name given yet; ``chat_template`` is a text in place of the model's own.

    ``description`` is a paragraph of the model's card. ``variables`` are those that the chat template names;
    ``None`` where there is none, or the engine renders otherwise.
    """

    request: ImportRequest
    snapshot: Snapshot
    target: Target
    evidence: tuple[Evidence, ...]
    decisions: Mapping[str, Decision]
    proof: Proof | None
    fit: Choice
    chat_template: str | None
    description: str | None
    variables: tuple[str, ...] | None

    @property
    def model(self) -> str:
        """Return the name of the model for the engine: the Hub id, or the directory."""
        return self.snapshot.model_id or str(self.snapshot.directory)

    @property
    def reference(self) -> str:
        """Return the canonical reference: the id as the Hub writes it, with a revision only if pinned."""
        return self.model if self.pinned is None else f"{self.model}@{self.pinned}"

    @property
    def pinned(self) -> str | None:
        """Return the requested revision, where it is not the default one."""
        from importer.hub.reference import parse, pinned

        named = parse(self.request.reference, self.request.revision)
        if named.directory is not None:  # in a Hub client's cache a commit has a folder of its name
            return named.directory.name if named.directory.name == self.snapshot.revision else None
        return pinned(named)


@frozen
class Studied:
    """The analysis of a snapshot before the proof; ``python`` is the engine's, where it is installed.

    ``by_itself`` is the reason why the engine renders otherwise, so that there is no proof. ``completed`` has
    the settings with complete overrides of the config, and the repository with them.
    """

    request: ImportRequest
    snapshot: Snapshot
    target: Target
    evidence: tuple[Evidence, ...]
    template: Template | None
    tokens: Vocabulary
    study: TemplateAnalysis | None
    python: Path | None
    by_itself: Reason | None
    description: str | None
    completed: Overrides

    @property
    def variables(self) -> tuple[str, ...] | None:
        """Return the names that the chat template reads; ``None`` where the engine renders otherwise."""
        return None if self.study is None or self.by_itself is not None else self.study.named or None

    @property
    def backend(self) -> Decision:
        """Return the decision on the backend."""
        facts = [e for e in self.evidence if e.key == "backend"]
        return decide_setting("backend", facts, self.request.preferences)


def decide_snapshot(
    snapshot: Snapshot, request: ImportRequest, bench: ImportSession, progress: Progress = silent
) -> Decided:
    """Return every decision on a snapshot. Raises ImporterError."""
    studied = study_snapshot(snapshot, request, bench, progress)
    return finalize(studied, prove_studied(studied, bench, progress), progress)


def study_snapshot(
    snapshot: Snapshot, request: ImportRequest, bench: ImportSession, progress: Progress = silent
) -> Studied:
    """Return the evidence of the files, the tables and the template. Raises ImporterError."""
    from importer.analysis import EngineQuestion, Question
    from importer.app.target import bind, check_weights, for_model, machine_for, platform_for, with_template
    from importer.hub.tensor_headers import examined
    from importer.signals import tables

    progress("rendering the chat template")
    machine = machine_for(request.for_device)
    snapshot = examined(snapshot, weights.files(snapshot), exact=request.exact_fit, offline=request.offline)
    analysis = bench.analyse(
        Question(
            snapshot, platform_for(request.for_device), machine, ignore_name=request.ignore_name,
            any_kind="kind" in request.preferences.values, override=request.template, table=tables.stand_in(),
            backend=request.backend,
        )
    )  # fmt: skip
    facts, study, template = analysis.facts, analysis.study, analysis.template
    backend = decide_setting("backend", [e for e in facts if e.key == "backend"], request.preferences)
    check_weights(snapshot, str(backend.value), machine)
    check_layers(snapshot)
    written = "" if template is None else template.text
    tokens = check_tokens(snapshot, written, offline=request.offline)
    bound = bind(
        str(backend.value),
        request.engine_version,
        ask=bench.proves,
        frontend=request.frontend,
        kind=None if request.for_device is None else machine.kind,
        parsers_of=lambda backend, version: bench.parsers_of(
            backend, version, progress, offline=request.offline
        ),
    )
    target = bound.target if request.template is None else with_template(bound.target, request.template)
    target = for_model(target, snapshot)
    check_parsers(request.preferences, target)
    completed = overrides.complete(snapshot, request.preferences.values, target.able)
    completed = adapters.complete(completed, request.adapter, target, offline=request.offline)
    engine_facts = bench.bind(
        EngineQuestion(
            completed.snapshot,
            facts,
            target.backend,
            target.parsers,
            target.able,
            machine,
            request.ignore_name,
        )
    )
    evidence = [*engine_facts.evidence, *tokens, *completed.evidence]
    mode = own_renderer(snapshot, evidence, target)
    by_itself = None if mode is None else rendered_by(mode, target)
    if by_itself is not None or template is None:
        target = replace(target, templates=())
        evidence = [
            e for e in evidence if e.key not in (REQUEST_COVERAGE, VARIABLES)
        ]  # the engine renders otherwise
    if by_itself is not None:  # the engine's own code may write another format
        evidence = [replace(e, rule=_LATER.get(e.rule, e.rule)) for e in evidence if not is_of_text(e.reason)]
    if study is not None and request.observed:
        from importer.signals import observed

        evidence += observed.of_calls(request.observed, study.digest)
    evidence += _override_evidence(request, study, analysis.kind, by_itself, target)
    return Studied(
        request,
        snapshot,
        target,
        tuple(evidence),
        template,
        analysis.vocabulary,
        study,
        bound.python,
        by_itself,
        analysis.description,
        completed,
    )


def prove_studied(studied: Studied, bench: ImportSession, progress: Progress = silent) -> Proof | None:
    """Return the proof of the template; ``None`` where there is no engine or no template."""
    target = studied.target
    if studied.template is None or studied.study is None or studied.python is None:
        return None
    from importer.proof.tokens import tokens_of

    progress(f"asking {target.backend}'s parsers")
    described = tokens_of(studied.snapshot, studied.template, studied.tokens)
    override = studied.request.template
    derives = override is not None and override.name == AS_WRITTEN
    refused = studied.by_itself or _too_costly(studied.study)
    proof = _proof(bench, studied.study, described, target, studied.python, refused, derives)
    if refused is not None or proof.failed:
        return proof
    progress(f"comparing {target.backend}'s prompts")
    images = any(e.key == "modalities" and "image" in (e.value or ()) for e in studied.evidence)
    prompts = bench.prompts(
        studied.template, studied.tokens, studied.study, described[0], target, studied.python, images=images
    )
    return replace(proof, prompts=prompts)


def _too_costly(study: TemplateAnalysis) -> Reason | None:
    """Return why no engine is asked to render a template that renders nothing within our own limits."""
    findings = () if study.samples or study.request_coverage is None else study.request_coverage.findings
    return next((Reason(one.kind) for one in findings if one.kind is CoverageKind.TOO_COSTLY), None)


def finalize(studied: Studied, proof: Proof | None, progress: Progress = silent) -> Decided:
    """Return every decision, the proof among its evidence. Raises ImporterError."""
    request, snapshot, target, study = studied.request, studied.snapshot, studied.target, studied.study
    prompts = () if proof is None else proof.prompts
    evidence = [*studied.evidence, *(() if proof is None else proof.evidence())]
    evidence += evidence_of(prompts, target)
    preferences = replace(request.full_preferences, values=studied.completed.settings)
    thinking = study.thinking if study is not None and study.samples else None
    setting = None if proof is None else proof.setting
    first_decisions = decide(evidence, preferences, target, thinking, setting)
    values = {key: decision.value for key, decision in first_decisions.items()}
    registry = engine_arguments.load(target.backend, target.version)
    arguments = () if registry is None else registry.arguments.keys()
    choice = fit(
        studied.completed.snapshot, request.for_device, request.memory, target.backend,
        FitRequest(values, preferences.values.keys(), arguments, request.engine_version), aim=request.aim,
        exact=request.exact_fit, offline=request.offline, progress=progress,
        measured=measured_by(request, snapshot, target),
    )  # fmt: skip
    evidence += choice.evidence
    decisions = decide(evidence, preferences, target, thinking, setting)
    decisions = downgraded(decisions, prompts, target)
    override_text = None if request.template is None or studied.template is None else studied.template.text
    return Decided(
        request, snapshot, target, tuple(evidence), decisions, proof, choice, override_text,
        studied.description, studied.variables,
    )  # fmt: skip


def _override_evidence(
    request: ImportRequest,
    study: TemplateAnalysis | None,
    kind: str,
    by_itself: Reason | None,
    target: Target,
) -> list[Evidence]:
    """Return the evidence of the template that the user gave.

    Raises UsageError("bad-value") for one that cannot be rendered or would be given in vain.
    """
    if request.template is None:
        return []
    from importer.signals.template_markers import from_override

    problem: Reason | None = by_itself or SILENT_KINDS.get(str(request.preferences.values.get("kind", kind)))
    if study is not None and not study.samples:
        first = next(iter(study.problems.values()), Reason(DecidingReason.NO_TEXT))
        problem = Reason(DecidingReason.NOT_RENDERED, problem=first)
    if problem is not None:
        raise UsageError("bad-value", setting=Setting.TEMPLATE, value=request.template.word, problem=problem)
    return from_override(request.template, target.backend)


def _proof(
    bench: ImportSession,
    study: TemplateAnalysis,
    described: tuple[Tokens, bool],
    target: Target,
    python: Path,
    by_itself: Reason | None,
    derives: bool,
) -> Proof:
    """Return the proof; ``None`` where the engine is broken, for decisions need no engine."""
    from importer.proof.result import ProofReason, unproved

    if by_itself is not None:
        return unproved(by_itself, target, study.digest)
    try:
        return bench.prove(study, *described, target, python, derives=derives)
    except EngineError as error:
        failed = Reason(ProofReason.ENGINE_FAILED, problem=error.message)
        return unproved(failed, target, study.digest)


def check_layers(snapshot: Snapshot) -> None:
    """Reject a config that costs engines minutes to read; raises RepositoryError("too-costly")."""
    if (number := most_layers(config_of(snapshot))) > MOST_DECLARED:
        limit = Reason(UnknownReason.TOO_MANY_LAYERS, number=number, most=MOST_DECLARED)
        raise RepositoryError("too-costly", file=FILE, repo=snapshot.label, limit=limit)


def check_tokens(snapshot: Snapshot, template: str, *, offline: bool) -> list[Evidence]:
    """Return a warning about tokens beyond the embedding that a user may write.

    The headers of the weights are read only where config.json has too few rows. Raises
    RepositoryError("tokens-beyond") where every conversation has such a token.
    """
    numbers, named = token_numbers.declared(snapshot), token_numbers.size(snapshot)
    found = token_numbers.beyond(snapshot, numbers, named, template)
    if not found or named is None:
        return []
    rows = _rows(snapshot, offline=offline)
    if rows is None:  # config.json alone refuses nothing
        return [token_numbers.evidence(found, named, exact=False)]
    found = token_numbers.beyond(snapshot, numbers, rows, template)
    needed = tuple(token.content for token in found if token.needed)
    if needed:
        raise RepositoryError("tokens-beyond", repo=snapshot.label, tokens=", ".join(needed[:3]), rows=rows)
    return [token_numbers.evidence(found, rows, exact=True)] if found else []


def _rows(snapshot: Snapshot, *, offline: bool) -> int | None:
    """Return the rows by the headers of the weights; ``None`` where they cannot be read."""
    from importer.hub import tensor_headers
    from importer.memory import weights

    try:
        return weights.embedding_rows(
            tensor_headers.tensors(snapshot, weights.files(snapshot), offline=offline)
        )
    except (HubError, RepositoryError):
        return None
