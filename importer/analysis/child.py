"""What the sandbox does with a snapshot: pure readers, run in the child alone."""

from __future__ import annotations

from importer.analysis import Analysis, AnalysisReason, Bound, Facts, Question
from importer.engines import abilities, registries
from importer.errors import RepositoryError
from importer.evidence import tables
from importer.evidence.gather import for_engine, gather
from importer.evidence.kind import find_kind
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.template import source, vocabulary
from importer.template.given import template_of
from importer.template.learn import learn
from importer.template.ours import dress
from importer.template.worker import Local


def warm() -> None:
    """Read the tables and our templates: no file can be opened later."""
    tables.shipped()
    tables.sampling_table()
    dress.warm()
    for engine in registries.PINNED:
        abilities.load(engine)


def analyse(question: Question) -> Analysis:
    """Everything that holds for every engine. Raises RepositoryError, UsageError("bad-value")."""
    if question.table is None:
        return _analyse(question)
    with tables.standing_in(question.table):
        return _analyse(question)


def _analyse(question: Question) -> Analysis:
    snapshot, renderer = question.snapshot, Local()
    kind = find_kind(snapshot, question.ignore_name)
    problem = None if question.any_kind else kind.error(snapshot.label)
    if problem is not None:
        raise problem
    _check_something(snapshot)
    template, tokens = source.find(snapshot), vocabulary.read(snapshot)
    if question.given is not None:
        template = template_of(question.given, template, tokens, renderer)
    study = question.study
    if study is None and template is not None:
        study = learn(template, tokens, renderer)
    facts = gather(
        snapshot, kind, study, question.platform, ignore_name=question.ignore_name,
        machine=question.machine, able=abilities.load,
        template=None if question.given is None else question.given.source,
    )  # fmt: skip
    return Analysis(kind.kind, template, tokens, study, tuple(facts))


def bind(bound: Bound) -> Facts:
    """The facts under the engine's own names, and what speaks for this engine alone."""
    return Facts(
        tuple(for_engine(bound.facts, bound.snapshot, bound.engine, bound.parsers, bound.able, bound.machine))
    )


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
            problem=Reason(AnalysisReason.NOTHING),
        )
