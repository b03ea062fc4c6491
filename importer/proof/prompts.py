"""The prompts of an engine beside those of transformers: conversation by conversation, for each form of
contents that the engine can be started with.

Ours is the chat template in the sandbox. A template is rendered with each form of messages that templates ask
for; the renderings that lose the least are what the template means. An engine's prompt that equals one of
them is equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from importer import backends
from importer.chat_template.cases import CaseStyle
from importer.chat_template.find import Template
from importer.chat_template.render import Rendered, RenderJob, Renders, Result, date_at, now
from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.vocabulary import Vocabulary
from importer.decisions.decision import PromptVerdict
from importer.engines.deaths import Accident
from importer.engines.parsers import Answer, Conversation
from importer.engines.tokens import Tokens
from importer.errors import EngineError
from importer.frozen import frozen
from importer.proof.conversations import CONVERSATIONS, SHAPES, cases, leaves, shaped
from importer.proof.prompt_difference import EXCERPT, difference, moved, place, wholeness
from importer.proof.result import LOSSES, FormatOutcome, FrontendPrompts, PromptCase, PromptDifference
from importer.reasons import Reason

IMAGES = ("image", "<|vision", "[IMG]")
# A template writes up to 100,000 characters in the sandbox, and an engine may write more. Comparing takes
# 0.5 s for each million characters of ours.
LONGEST = 100_000  # characters of an engine's prompt that are compared
MOST_COMPARED = 4_000_000  # characters of ours, for all prompts of one engine
DATES = "strftime_now"  # the function of a template that reads the clock


Reference = tuple[
    str, ...
]  # what a template means for one conversation, the likeliest first; none: its refusal


@frozen
class Ours:
    """A template that is rendered by ourselves, with the variables of the repository's vocabulary.

    ``images`` is whether the model is known to see images.
    """

    template: Template
    vocabulary: Vocabulary
    renderer: Renders
    analysis: TemplateAnalysis
    images: bool = False

    def references(
        self,
        asked: Sequence[PromptCase],
        variables: Mapping[str, object] | None = None,
        *,
        moments: Sequence[float] = (0.0,),
    ) -> dict[PromptCase, Reference]:
        """Return the reference of each case.

        ``moments`` are times of the engine's rendering in seconds after the fixed time: a prompt of any of
        them is meant.
        """
        found: dict[PromptCase, Reference] = {}
        for offered in (False, True):
            some = [case for case in asked if bool(CONVERSATIONS[case].tools) is offered]
            text = self.template.text if offered else self.template.plain or self.template.text
            forms = [(later, shape) for later in moments for shape in SHAPES]
            jobs = [self._job(case, shape, variables or {}, later) for case in some for later, shape in forms]
            if jobs:
                results = self.renderer.render(text, jobs, self.vocabulary.variables).results
                for number, case in enumerate(some):
                    own = results[number * len(forms) : (number + 1) * len(forms)]
                    found[case] = _reference(case, own)
        return found

    def _job(
        self, case: PromptCase, shape: CaseStyle, variables: Mapping[str, object], later: float
    ) -> RenderJob:
        conversation = CONVERSATIONS[case]
        return RenderJob(
            shaped(conversation, shape), [*conversation.tools] or None, add_generation_prompt=True,
            kwargs=variables, later=later,
        )  # fmt: skip


def _reference(case: PromptCase, results: Sequence[Result]) -> Reference:
    """Return the renderings that lose the least, in the order of the shapes."""
    texts = [result.text for result in results if isinstance(result, Rendered)]
    if not texts:
        return ()
    parts = leaves(CONVERSATIONS[case])
    ranked = {text: wholeness(text, parts) for text in texts}
    best = min(ranked.values())
    return tuple(text for text, rank in ranked.items() if rank == best)


class Frontend(Protocol):
    """The part of an engine that turns messages into a prompt; vLLM has two from 0.33 on."""

    @property
    def name(self) -> str:
        """Return ``vllm``, ``vllm-rust``, ``mlx`` or ``mlx-vlm``."""

    def version(self) -> str:
        """Return the version that the frontend reports."""

    def render(self, tokens: Tokens, conversations: Sequence[Conversation]) -> Mapping[str, Sequence[Answer]]:
        """Return for each form of contents, the default first, the answers; raises EngineError."""


def compare(ours: Ours, tokens: Tokens, engine: Frontend) -> FrontendPrompts:
    """Return the differences of an engine's prompts in each form of contents.

    A frontend that does not start with the template gives a reason. Raises SandboxError.
    """
    shows = names_images(ours.template)
    asked = cases(images=shows and ours.images and backends.of(engine.name).sees)
    begun = now()
    try:
        version = engine.version()
        by_form, accident = _rendered(engine, tokens, asked)
    except EngineError as error:
        failed = Reason(PromptVerdict.NOT_STARTED, problem=error.message)
        return FrontendPrompts(engine.name, "", failed=failed)
    if accident is not None:
        failed = Reason(PromptVerdict.NOT_STARTED, problem=accident)
        return FrontendPrompts(engine.name, version, failed=failed)
    judge = _Judge(ours, asked, _moments(ours.template, begun))
    outcomes = {
        form: judge.outcome(dict(zip(asked, answers, strict=True))) for form, answers in by_form.items()
    }
    unseen = shows and PromptCase.IMAGE not in asked
    return FrontendPrompts(engine.name, version, outcomes, unseen=unseen)


def _moments(template: Template, begun: float) -> tuple[float, ...]:
    """Return the begin and the end of the engine's rendering, where a date may have changed between them."""
    ended = now()
    changed = date_at(begun) != date_at(ended)
    return (begun, ended) if changed and DATES in template.text + template.plain else (ended,)


def _rendered(
    engine: Frontend, tokens: Tokens, asked: Sequence[PromptCase]
) -> tuple[Mapping[str, Sequence[Answer]], Reason | None]:
    """Return the answers, asked twice where a busy machine affected one; and the accident that stayed."""
    conversations = [CONVERSATIONS[case] for case in asked]
    by_form, accident = engine.render(tokens, conversations), None
    for again in (True, False):
        refused = (a for answers in by_form.values() for a in answers if isinstance(a, Reason))
        accident = next((reason for reason in refused if isinstance(reason.kind, Accident)), None)
        if accident is not None and again:
            by_form = engine.render(tokens, conversations)
    return by_form, accident


class _Judge:
    """Judges the answers of one engine; further references are rendered where the first ones differ."""

    def __init__(self, ours: Ours, asked: Sequence[PromptCase], moments: Sequence[float]) -> None:
        self._ours, self._asked, self._moments = ours, asked, moments
        self._known: dict[str, dict[PromptCase, Reference]] = {}
        self._left = MOST_COMPARED

    def outcome(self, answers: Mapping[PromptCase, Answer]) -> FormatOutcome:
        """Return the outcome of one form of contents."""
        findings = tuple(f for case, a in answers.items() if (f := self._finding(case, a)) is not None)
        format_ = next((a.format for a in answers.values() if not isinstance(a, Reason)), None)
        # A conversation that both refuse has no prompt to compare.
        known = self._references({})
        neither = sum(isinstance(a, Reason) and not known[case] for case, a in answers.items())
        return FormatOutcome(len(answers) - neither, findings, format_)

    def _finding(self, case: PromptCase, answer: Answer) -> Reason | None:
        reference = self._references({})[case]
        if isinstance(answer, Reason):
            if not reference:
                return None
            return Reason(PromptDifference.REFUSED, case=case, place="prompt", words=answer)
        if not reference or answer.text in reference:
            return None
        text = answer.text[: LONGEST + 1]  # longer than any of ours, so it equals none
        if case is PromptCase.IMAGE:
            return self._image(case, text, reference)
        return self._nearest(case, text, reference)

    def _nearest(self, case: PromptCase, text: str, reference: Reference) -> Reason | None:
        """Return the lightest finding over all that the template may mean, the likeliest first of many."""
        parts = leaves(CONVERSATIONS[case])
        texts = dict.fromkeys(reference)
        for variables in self._switches():
            switched = self._references(variables)[case]
            if text in switched:
                name, value = next(iter(variables.items()))
                return Reason(
                    PromptDifference.SWITCHED, case=case, place="prompt", variable=name, value=value
                )
            texts |= dict.fromkeys(switched)
        found = [f for one in self._few([*texts]) if (f := difference(case, one, text, parts)) is not None]
        order = [*PromptDifference]
        return max(found, key=lambda f: order.index(PromptDifference(f.kind)), default=None)

    def _few(self, texts: Sequence[str]) -> Iterator[str]:
        """Yield the first text, and the others while there are characters left to compare."""
        for number, text in enumerate(texts):
            if number and self._left < len(text):
                return
            self._left -= len(text)
            yield text

    def _image(self, case: PromptCase, text: str, reference: Reference) -> Reason | None:
        """Return what is lost beside an image; its own token is the engine's, so texts are not equal."""
        parts = leaves(CONVERSATIONS[case])
        found = difference(case, reference[0], text, parts)
        if found is not None and found.kind in LOSSES:
            return found
        before, after = (leaf.value for leaf in parts)
        if moved(reference[0], text, before, after):
            excerpts = {"ours": reference[0][:EXCERPT], "theirs": text[:EXCERPT]}
            return Reason(PromptDifference.MOVED, case=case, place=place(parts[0]), **excerpts)
        return None

    def _switches(self) -> list[Mapping[str, object]]:
        thinking = self._ours.analysis.thinking
        return [variables for variables in (thinking.on, thinking.off) if variables]

    def _references(self, variables: Mapping[str, object]) -> dict[PromptCase, Reference]:
        key = repr(sorted(variables.items()))
        if key not in self._known:
            self._known[key] = self._ours.references(self._asked, variables, moments=self._moments)
        return self._known[key]


def names_images(template: Template) -> bool:
    """Return whether the template names images."""
    return any(word in template.text for word in IMAGES)
