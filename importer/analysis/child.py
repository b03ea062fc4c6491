"""The sandbox's tasks on a snapshot: pure readers that run in the child alone."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from importer import backends
from importer.analysis import STUDIES, Analysis, AnalysisReason, EngineQuestion, Facts, Question, packed
from importer.chat_template import find
from importer.chat_template.analyze import analyze
from importer.chat_template.conventions import wrap
from importer.chat_template.find import Template
from importer.chat_template.offers import with_offers
from importer.chat_template.override import template_of
from importer.chat_template.render_worker import Local
from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.vocabulary import Vocabulary, read_vocabulary
from importer.decisions.decision import Decision, Preferences, decide_setting
from importer.engines import registries
from importer.errors import RepositoryError
from importer.hub import safetensors  # noqa: F401 - a snapshot has its kinds, and no file can be opened later
from importer.reasons import Reason
from importer.signals import loading, tables, template_markers
from importer.signals.collect import collect, for_engine
from importer.signals.description import description
from importer.signals.evidence import TASKS
from importer.signals.kind import KindFinding, find_kind, holds_nothing
from importer.signals.tasks import task_backend

# Studies of this child and their JSON, the last used at the end: a study follows from its key alone.
_studies: OrderedDict[tuple[object, ...], tuple[TemplateAnalysis, str]] = OrderedDict()


def warm() -> None:
    """Read the tables and the conventions: no file can be opened later."""
    tables.shipped()
    tables.sampling_table()
    template_markers.warm()
    wrap.warm()
    for engine in registries.PINNED:
        registries.load_capabilities(engine)


def analyse(question: Question) -> Analysis:
    """Return the analysis for all engines.

    Raises RepositoryError and UsageError("bad-value").
    """
    if question.table is None:
        return _analyse(question)
    with tables.standing_in(question.table):
        return _analyse(question)


def _analyse(question: Question) -> Analysis:
    snapshot, renderer = question.snapshot, Local()
    kind = find_kind(snapshot, question.ignore_name, registries.load_capabilities(backends.DEFAULT))
    problem = None if question.any_kind else kind.error(snapshot.label)
    if problem is not None:
        raise problem
    if holds_nothing(snapshot):
        nothing = Reason(AnalysisReason.NOTHING)
        raise RepositoryError("nothing-to-decide", repo=snapshot.label, problem=nothing)
    backend = question.backend or str(_backend(question, kind).value)
    loader = registries.loader_of(backend)
    template, tokens = find.find(snapshot, loader), read_vocabulary(snapshot)
    if kind.kind in TASKS and question.override is None and not question.any_kind:
        template = None  # no conversation is rendered for a model that pools or transcribes
    named = find.named(snapshot, loader)
    if question.override is not None:
        template = template_of(question.override, template, tokens, renderer, named)
    analysis, text = question.study, None if question.study is None else packed(question.study)
    if analysis is None and template is not None:
        analysis, text = _study(template, tokens, named if question.override is None else None)
    facts = collect(
        snapshot, kind, analysis, question.platform, ignore_name=question.ignore_name,
        machine=question.machine, able=registries.load_capabilities,
        template=None if question.override is None else question.override.source,
    )  # fmt: skip
    return Analysis(kind.kind, template, tokens, text, tuple(facts), description(snapshot))


def _backend(question: Question, kind: KindFinding) -> Decision:
    """Return the decision on the backend by the files alone."""
    facts = [
        *task_backend(kind.kind),
        *loading.backend_evidence(
            question.snapshot, question.platform, question.machine, registries.load_capabilities
        ),
    ]
    return decide_setting("backend", facts, Preferences())


def _study(
    template: Template, tokens: Vocabulary, named: Mapping[str, str] | None
) -> tuple[TemplateAnalysis, str]:
    """Return the study of a template and its JSON; ``named`` is ``None`` for a template in place of its own.

    The forms of template and vocabulary are complete, so equal ones have one study.
    """
    key = (template, repr(tokens), None if named is None else tuple(named.items()))
    known = _studies.get(key)
    if known is None:
        renderer = Local()
        analysis = analyze(template, tokens, renderer)
        if named is not None:
            analysis = with_offers(analysis, template, named, tokens, renderer)
        known = _studies[key] = analysis, packed(analysis)
        if len(_studies) > STUDIES:
            _studies.popitem(last=False)
    _studies.move_to_end(key)
    return known


def bind(bound: EngineQuestion) -> Facts:
    """Return the facts with the engine's own names, and the facts for this engine alone."""
    facts = for_engine(
        bound.facts, bound.snapshot, bound.engine, bound.parsers, bound.able, bound.machine,
        ignore_name=bound.ignore_name,
    )  # fmt: skip
    return Facts(tuple(facts))
