"""The analysis of a template alone, as a task of the sandbox: for one that is served."""

from __future__ import annotations

from dataclasses import dataclass

from importer.chat_template.find import Template
from importer.chat_template.samples import TemplateAnalysis
from importer.chat_template.vocabulary import Vocabulary
from importer.sandbox import Task

SECONDS = 10.0  # of processor time; real templates need 0.1 to 0.5 s


@dataclass(frozen=True, slots=True)
class Served:
    """A template, with the vocabulary of its repository."""

    template: Template
    vocabulary: Vocabulary


STUDY = Task(
    "importer.chat_template.study:STUDY", "importer.chat_template.analyze:study", Served, TemplateAnalysis,
    SECONDS, warm="importer.chat_template.render_worker:warm",
)  # fmt: skip
