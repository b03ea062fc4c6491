"""Tasks of the sandbox that read a snapshot: its template, card, configuration and listing.

The caller imports the types and declarations; the child imports the readers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from importer.chat_template.find import Template
from importer.chat_template.override import TemplateOverride
from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.vocabulary import Vocabulary
from importer.errors import RepositoryError
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot
from importer.reasons import ReasonKind
from importer.sandbox import OverLimit, Task
from importer.sandbox.codec import codec_of
from importer.signals.engine_capabilities import Abilities, Machine
from importer.signals.evidence import Evidence
from importer.signals.tables import Table

SECONDS = 10.0  # of processor time; real repositories need 0.1 to 0.5 s
STUDIES = 32  # analyses of templates that a process keeps, of about 0.3 MiB each


class AnalysisReason(ReasonKind):
    """Reasons why a repository gives no decision."""

    NOTHING = "it names no architecture and lists no weights"


@frozen
class Question:
    """A snapshot to read.

    ``any_kind``   whether the user set the kind of model.
    ``override``   a template in place of the model's own.
    ``machine``    the target of the document; ``platform`` its operating system.
    ``table``      a parser table in place of the shipped one.
    ``study``      an earlier analysis of the same snapshot's template.
    ``backend``    the user's, whose loader takes the template; else the one that the files show.
    """

    snapshot: Snapshot
    platform: str
    machine: Machine
    ignore_name: bool = False
    any_kind: bool = False
    override: TemplateOverride | None = None
    table: Table | None = None
    study: TemplateAnalysis | None = None
    backend: str | None = None


@frozen
class Analysis:
    """The analysis of a snapshot for all engines; ``facts`` have the tables' names of parsers.

    ``packed_study``  the analysis of the template as JSON, so that equal ones are read once.
    ``description``   a paragraph of the card, ``None`` where it has none.
    """

    kind: str
    template: Template | None
    vocabulary: Vocabulary
    packed_study: str | None
    facts: tuple[Evidence, ...]
    description: str | None = None

    @property
    def study(self) -> TemplateAnalysis | None:
        """Return the analysis of the template; equal ones are one object, which nobody may change."""
        return None if self.packed_study is None else _study(self.packed_study)


def packed(study: TemplateAnalysis) -> str:
    """Return the JSON of a study."""
    return json.dumps(codec_of(TemplateAnalysis).encode(study))


@lru_cache(maxsize=STUDIES)
def _study(text: str) -> TemplateAnalysis:
    study: TemplateAnalysis = codec_of(TemplateAnalysis).decode(json.loads(text))
    return study


@frozen
class EngineQuestion:
    """The facts of a snapshot, and the engine for them."""

    snapshot: Snapshot
    facts: tuple[Evidence, ...]
    engine: str
    parsers: Mapping[str, Mapping[str, str]]
    able: Abilities
    machine: Machine
    ignore_name: bool = False


@frozen
class Facts:
    """Evidence for one engine."""

    evidence: tuple[Evidence, ...]


ANALYSE = Task(
    "importer.analysis:ANALYSE", "importer.analysis.child:analyse", Question, Analysis, SECONDS,
    warm="importer.analysis.child:warm", kept=True,
)  # fmt: skip
FOR_ENGINE = Task(
    "importer.analysis:FOR_ENGINE", "importer.analysis.child:bind", EngineQuestion, Facts, SECONDS, kept=True
)


def too_costly(snapshot: Snapshot, over: OverLimit) -> RepositoryError:
    """Return the error for a repository that exceeds a limit of the sandbox."""
    return RepositoryError("too-costly", file="text", repo=snapshot.label, limit=over.reason)
