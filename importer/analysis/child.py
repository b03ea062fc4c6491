"""The sandbox's tasks on a snapshot: pure readers that run in the child alone."""

from __future__ import annotations

from importer.analysis import (
    Analysis,
    AnalysisReason,
    EngineQuestion,
    Facts,
    Question,
)
from importer.chat_template import find, vocabulary
from importer.chat_template.analyze import analyze
from importer.chat_template.conventions import wrap
from importer.chat_template.override import template_of
from importer.chat_template.render_worker import Local
from importer.chat_template.way_in import shipped
from importer.chat_template.way_in.offers import with_offers
from importer.engines import capabilities, registries
from importer.errors import RepositoryError
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals import parser_markers, tables
from importer.signals.collect import collect, for_engine
from importer.signals.description import description
from importer.signals.evidence import TASKS
from importer.signals.kind import find_kind
from importer.signals.unserved import holds_nothing


def warm() -> None:
    """Read the tables and the conventions: no file can be opened later."""
    tables.shipped()
    tables.sampling_table()
    parser_markers.warm()
    wrap.warm()
    shipped.registry()
    for engine in registries.PINNED:
        capabilities.load(engine)


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
    kind = find_kind(snapshot, question.ignore_name, capabilities.load("vllm"))
    problem = None if question.any_kind else kind.error(snapshot.label)
    if problem is not None:
        raise problem
    _check_something(snapshot)
    template, tokens = find.find(snapshot), vocabulary.read(snapshot)
    if kind.kind in TASKS and question.override is None and not question.any_kind:
        template = None  # no conversation is rendered for a model that pools or transcribes
    named = find.named(snapshot)
    if question.override is not None:
        template = template_of(question.override, template, tokens, renderer, named)
    analysis = question.study
    if analysis is None and template is not None:
        analysis = analyze(template, tokens, renderer)
        if question.override is None:
            analysis = with_offers(analysis, template, named, tokens, renderer)
    facts = collect(
        snapshot, kind, analysis, question.platform, ignore_name=question.ignore_name,
        machine=question.machine, able=capabilities.load,
        template=None if question.override is None else question.override.source,
    )  # fmt: skip
    return Analysis(kind.kind, template, tokens, analysis, tuple(facts), description(snapshot))


def bind(bound: EngineQuestion) -> Facts:
    """Return the facts with the engine's own names, and the facts for this engine alone."""
    return Facts(
        tuple(
            for_engine(
                bound.facts,
                bound.snapshot,
                bound.engine,
                bound.parsers,
                bound.able,
                bound.machine,
                ignore_name=bound.ignore_name,
                related=bound.related,
            )
        )
    )


def _check_something(snapshot: Snapshot) -> None:
    """Raise RepositoryError("nothing-to-decide") for a repository that shows no model."""
    if holds_nothing(snapshot):
        raise RepositoryError(
            "nothing-to-decide",
            repo=snapshot.label,
            problem=Reason(AnalysisReason.NOTHING),
        )
