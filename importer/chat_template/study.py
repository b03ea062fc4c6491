"""The analysis of a template, and the task of the sandbox that analyses a served template alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from importer.chat_template.find import Template
from importer.chat_template.request_coverage.findings import RequestCoverage
from importer.chat_template.samples import Sample, Thinking, Variable
from importer.chat_template.vocabulary import Vocabulary
from importer.frozen import frozen
from importer.reasons import Reason
from importer.sandbox import Task

SECONDS = 10.0  # of processor time; real templates need 0.1 to 0.5 s


@frozen
class SettingSamples:
    """The samples of answers under template variables that a document may set; requests set theirs on top."""

    kwargs: Mapping[str, object]
    samples: tuple[Sample, ...]


@frozen
class TemplateAnalysis:
    """The analysis of a template by rendering.

    ``tools_rendered``  whether offered tools are visible in the prompt.
    ``tools_named``     whether the template's text names tools at all; some want them in a field of a turn.
    ``calls_rendered``  whether calls are visible in history.
    ``end_of_turn``     the marker that ends an answer.
    ``next_turns``      without such a marker: the markers that begin the possible next turns.
    ``behind_calls``    the text behind a past turn of calls, before the tool's result.
    ``problems``        case to reason, for cases without a sample.
    ``digest``          SHA-256 of the template's text, for caching.
    ``renders``         SHA-256 of all that it rendered here: reformatted templates have the same one.
    ``tools_prompt``    the text that tools add to the prompt: where a template prints no calls, its
                        instructions may still name the format.
    ``request_coverage``          what a request loses on its way into the prompt.
    ``variables``       that a client may set, and that change a prompt; ``named`` are all that it names.
    ``settings``        the answers again, under each value of a switch that keeps the default's prompt.
    """

    digest: str
    samples: tuple[Sample, ...] = ()
    thinking: Thinking = field(default_factory=Thinking)
    tools_rendered: bool = False
    calls_rendered: bool = False
    end_of_turn: str = ""
    next_turns: tuple[str, ...] = ()
    behind_calls: str = ""
    problems: Mapping[str, Reason] = field(default_factory=dict)
    tools_prompt: str = ""
    request_coverage: RequestCoverage | None = None
    settings: tuple[SettingSamples, ...] = ()
    tools_named: bool = False
    renders: str = ""
    variables: tuple[Variable, ...] = ()
    named: tuple[str, ...] = ()


@frozen
class Served:
    """A template, with the vocabulary of its repository."""

    template: Template
    vocabulary: Vocabulary


STUDY = Task(
    "importer.chat_template.study:STUDY", "importer.chat_template.analyze:study", Served, TemplateAnalysis,
    SECONDS, warm="importer.chat_template.render_worker:warm",
)  # fmt: skip
