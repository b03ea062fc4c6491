"""The decisions of an import: decide, fit to the device by what was decided, decide again with the fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from importer.app.import_request import ImportRequest
from importer.app.session import ImportSession
from importer.app.study import Studied, study_snapshot
from importer.app.target import device_for
from importer.chat_template.conventions import AS_WRITTEN
from importer.chat_template.request_coverage.findings import CoverageKind
from importer.chat_template.study import TemplateAnalysis
from importer.decisions.decide import decide
from importer.decisions.decision import Decision, Target
from importer.errors import EngineError
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot
from importer.memory import shape, weights
from importer.memory.choose import Choice, choose
from importer.memory.engine_keys import FitRequest
from importer.memory.measured import Measured
from importer.memory.plans import Aim
from importer.progress import Progress, silent
from importer.proof import Proof
from importer.proof.result import downgraded, evidence_of, is_read
from importer.reasons import Reason
from importer.signals.evidence import Evidence

if TYPE_CHECKING:
    from importer.engines.tokens import Tokens


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


def decide_snapshot(
    snapshot: Snapshot, request: ImportRequest, bench: ImportSession, progress: Progress = silent
) -> Decided:
    """Return every decision on a snapshot. Raises ImporterError."""
    studied = study_snapshot(snapshot, request, bench, progress)
    return finalize(studied, prove_studied(studied, bench, progress), progress)


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
    refused = _too_costly(studied.study) if is_read(studied.by_itself, target) else studied.by_itself
    proof = _proof(bench, studied.study, described, target, studied.python, refused, derives)
    if studied.by_itself is not None or refused is not None or proof.failed:
        return proof
    progress(f"comparing {target.backend}'s prompts")
    images = any(e.key == "modalities" and "image" in (e.value or ()) for e in studied.evidence)
    prompts = bench.prompts(
        studied.template, studied.tokens, studied.study, described[0], target, studied.python, images=images
    )
    return replace(proof, prompts=prompts)


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
    choice = fit(
        studied.completed.snapshot, request.for_device, request.memory, target.backend,
        FitRequest(values, preferences.values.keys(), request.engine_version), aim=request.aim,
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
    if not request.measured:
        return None
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


def _too_costly(study: TemplateAnalysis) -> Reason | None:
    """Return why no engine is asked to render a template that renders nothing within our own limits."""
    findings = () if study.samples or study.request_coverage is None else study.request_coverage.findings
    return next((Reason(one.kind) for one in findings if one.kind is CoverageKind.TOO_COSTLY), None)


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
    from importer.proof.parser_verdict import ProofReason
    from importer.proof.result import unproved

    if by_itself is not None:
        return unproved(by_itself, target, study.digest)
    try:
        return bench.prove(study, *described, target, python, derives=derives)
    except EngineError as error:
        failed = Reason(ProofReason.ENGINE_FAILED, problem=error.message)
        return unproved(failed, target, study.digest)
