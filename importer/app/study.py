"""The study of a snapshot before its proof: the evidence of its files, of the tables and of its template."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from importer.analysis import EngineQuestion, Question
from importer.app import tokenizer_edges
from importer.app.import_request import ImportRequest
from importer.app.preferences import check_parsers
from importer.app.session import ImportSession
from importer.app.target import (
    bind,
    check_kind,
    check_weights,
    for_model,
    machine_for,
    platform_for,
    with_template,
)
from importer.chat_template.find import is_of_text
from importer.chat_template.request_coverage.findings import KEY as REQUEST_COVERAGE
from importer.chat_template.request_coverage.findings import VARIABLES
from importer.chat_template.study import TemplateAnalysis
from importer.decisions.decision import Decision, Target, decide_setting
from importer.decisions.parsers import no_parser
from importer.errors import HubError, RepositoryError, Setting, UsageError
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot
from importer.memory import weights
from importer.memory.config_keys import MOST_DECLARED, most_layers
from importer.memory.estimate_types import UnknownReason
from importer.progress import Progress, silent
from importer.proof.result import own_renderer, rendered_by
from importer.reasons import Reason, ReasonKind
from importer.signals import overrides, tables, token_numbers
from importer.signals.architecture import FILE, config_of
from importer.signals.evidence import Evidence, Rule
from importer.signals.overrides import Overrides

if TYPE_CHECKING:
    from importer.chat_template.find import Template
    from importer.chat_template.vocabulary import Vocabulary

_LATER = {Rule.TEMPLATE_FORMAT: Rule.TEMPLATE_INSTRUCTIONS}


class DecidingReason(ReasonKind):
    """Why nothing can be decided with the template that was given."""

    NOT_RENDERED = "it cannot be rendered: {problem}"
    NO_TEXT = "no case gave a text"


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


def study_snapshot(
    snapshot: Snapshot, request: ImportRequest, bench: ImportSession, progress: Progress = silent
) -> Studied:
    """Return the evidence of the files, the tables and the template. Raises ImporterError."""
    from importer.hub.tensor_headers import examined

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
    check_kind(request.preferences.values.get("kind", analysis.kind), str(backend.value))
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
    if request.adapter:
        from importer.app import adapters

        places, offline = bench.places, request.offline
        completed = adapters.complete(completed, request.adapter, target, places, offline=offline)
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
    evidence += tokenizer_edges.of_control(snapshot, evidence, target.backend, offline=request.offline)
    mode = own_renderer(snapshot, evidence, target)
    by_itself = None if mode is None else rendered_by(mode, target)
    if by_itself is not None or template is None:
        target = replace(target, templates=())
        evidence = [
            e for e in evidence if e.key not in (REQUEST_COVERAGE, VARIABLES)
        ]  # the engine renders otherwise
    if by_itself is not None:  # the engine's own code may write another format
        evidence = [replace(e, rule=_LATER.get(e.rule, e.rule)) for e in evidence if not is_of_text(e.reason)]
    if by_itself is None:
        evidence += tokenizer_edges.of_begin(snapshot, study, target.backend, offline=request.offline)
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

    problem: Reason | None = by_itself or no_parser(str(request.preferences.values.get("kind", kind)))
    if study is not None and not study.samples:
        first = next(iter(study.problems.values()), Reason(DecidingReason.NO_TEXT))
        problem = Reason(DecidingReason.NOT_RENDERED, problem=first)
    if problem is not None:
        raise UsageError("bad-value", setting=Setting.TEMPLATE, value=request.template.word, problem=problem)
    return from_override(request.template, target.backend)


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
    if rows is None:  # config.json alone shows no missing row
        return []
    found = token_numbers.beyond(snapshot, numbers, rows, template)
    needed = tuple(token.content for token in found if token.needed)
    if needed:
        raise RepositoryError("tokens-beyond", repo=snapshot.label, tokens=", ".join(needed[:3]), rows=rows)
    return [token_numbers.evidence(found, rows)] if found else []


def _rows(snapshot: Snapshot, *, offline: bool) -> int | None:
    """Return the rows by the headers of the weights; ``None`` where they cannot be read."""
    from importer.hub import tensor_headers

    try:
        return weights.embedding_rows(
            tensor_headers.tensors(snapshot, weights.files(snapshot), offline=offline)
        )
    except (HubError, RepositoryError):
        return None
