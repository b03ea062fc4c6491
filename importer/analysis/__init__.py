"""The reading of a snapshot, all of it, as tasks of the sandbox: template, card, configuration and listing.

Whoever asks imports the shapes and the declarations; the readers themselves are loaded in the child.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from importer.chat_template.find import Template
from importer.chat_template.override import TemplateOverride
from importer.chat_template.samples import TemplateAnalysis
from importer.chat_template.vocabulary import Vocabulary
from importer.errors import RepositoryError
from importer.hub.snapshot import Snapshot
from importer.sandbox import OverLimit, Task
from importer.signals.engine_capabilities import Abilities, Machine
from importer.signals.evidence import Evidence
from importer.signals.tables import Table

SECONDS = 10.0  # of processor time; real repositories take 0.1 to 0.5 s


class AnalysisReason(StrEnum):
    """Why a repository is no ground for a decision."""

    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Question:
    """A snapshot to read.

    ``any_kind``   the user said which kind of model it is.
    ``given``      a template in place of the model's own.
    ``machine``    what the document is for, with its operating system's name as ``platform``.
    ``table``      a parser table in place of the shipped one.
    ``study``      what rendering showed of the same snapshot before.
    """

    snapshot: Snapshot
    platform: str
    machine: Machine
    ignore_name: bool = False
    any_kind: bool = False
    given: TemplateOverride | None = None
    table: Table | None = None
    study: TemplateAnalysis | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the files say, whatever the engine: ``facts`` name parsers as the tables do."""

    kind: str
    template: Template | None
    vocabulary: Vocabulary
    study: TemplateAnalysis | None
    facts: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class EngineQuestion:
    """The facts of a snapshot, and the engine that they are to be told for."""

    snapshot: Snapshot
    facts: tuple[Evidence, ...]
    engine: str
    parsers: Mapping[str, Mapping[str, str]]
    able: Abilities
    machine: Machine


@dataclass(frozen=True, slots=True)
class Facts:
    """Evidence for one engine."""

    evidence: tuple[Evidence, ...]


ANALYSE = Task(
    "importer.analysis:ANALYSE", "importer.analysis.child:analyse", Question, Analysis, SECONDS,
    warm="importer.analysis.child:warm",
)  # fmt: skip
FOR_ENGINE = Task(
    "importer.analysis:FOR_ENGINE", "importer.analysis.child:bind", EngineQuestion, Facts, SECONDS
)


def too_costly(snapshot: Snapshot, over: OverLimit) -> RepositoryError:
    """Return the error for a repository whose reading exceeds a limit."""
    return RepositoryError("too-costly", file="text", repo=snapshot.label, limit=over.reason)
