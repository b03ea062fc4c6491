"""One template on the bench: renders conversations and cuts a turn into prompt and completion."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from importer.chat_template import cases
from importer.chat_template.cases import CaseStyle, Turn
from importer.chat_template.find import Template
from importer.chat_template.markers import ENDS, SHAPE, Marks, first_marker
from importer.chat_template.render import Rendered, RenderJob, RenderRefused, Renders, Result
from importer.chat_template.samples import TemplateProblem
from importer.chat_template.vocabulary import Vocabulary
from importer.reasons import Reason

Tools = Sequence[Mapping[str, Any]] | None
RESULT_ANCHOR = "overcast"
TAILS = {"": (), "tool": (Turn("tool", cases.RESULT),), "user": (cases.ASK_AGAIN,)}
HOPELESS = {"syntax", "limit", "memory"}  # refusals that no other form of messages would mend
MOST_CUTS = 50  # markers one behind the other; no turn ends in more than three
MOST_STOPS = 50  # that files name; models have up to seven
MUTATION = re.compile(r"access to attribute '\w+' of '(?:list|dict|set)' object is unsafe")


@dataclass(frozen=True, slots=True)
class Piece:
    """A turn cut in two.

    ``prompt``      the prompt as rendered with the generation prompt.
    ``header``      the part of it that the conversation's history shares.
    ``completion``  what history has after the header, end-of-turn markers cut off.
    """

    prompt: str
    header: str
    completion: str

    @property
    def residue(self) -> str:
        """Return what the generation prompt adds and history lacks: an opened or an empty thinking block."""
        return self.prompt[len(self.header) :]


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """A turn to be cut out: what stands before it, the turn, tools on offer, template variables."""

    before: tuple[Turn, ...]
    turn: Turn
    tools: Tools = None
    kwargs: Mapping[str, Any] | None = None
    style: CaseStyle | None = None


class TemplateProbe:
    """Renders through a ``Renderer`` and remembers what was rendered before."""

    def __init__(self, template: Template, vocabulary: Vocabulary, renderer: Renders) -> None:
        self.template = template
        self.marks = Marks(vocabulary.contents)
        self.style = CaseStyle()
        self.variables: Mapping[str, Sequence[Any]] = {}
        self.end_of_turn = ""
        self.no_tools: Tools = None
        self.unsafe: Reason | None = None  # why transformers would not render some of this
        self._vocabulary = vocabulary
        self._renderer = renderer
        self._known: dict[str, Result] = {}
        self._given_up: Result | None = None  # why nothing more is rendered

    def render(self, jobs: Sequence[RenderJob]) -> list[Result]:
        """Results in order; each different job is rendered once, all new ones in one exchange."""
        keys = [json.dumps([j.messages, j.tools, j.add_generation_prompt, dict(j.kwargs)]) for j in jobs]
        fresh = {k: j for k, j in zip(keys, jobs, strict=True) if k not in self._known}
        plain = self.template.plain
        groups = (
            (self.template.text, {k: j for k, j in fresh.items() if j.tools is not None or not plain}),
            (plain, {k: j for k, j in fresh.items() if j.tools is None and plain}),
        )
        for text, group in groups:
            if group:
                self._known |= zip(group, self._ask(text, list(group.values())), strict=True)
        return [self._known[k] for k in keys]

    def _ask(self, text: str, jobs: Sequence[RenderJob]) -> Sequence[Result]:
        if self._given_up is not None:
            return [self._given_up] * len(jobs)
        done = self._renderer.render(text, jobs, self._vocabulary.variables, mutable=self.unsafe is not None)
        if all(isinstance(r, RenderRefused) and r.kind in HOPELESS for r in done.results):
            self._given_up = done.results[-1]
        self.variables = {**self.variables, **done.variables}
        refused = (r for r in done.results if isinstance(r, RenderRefused))
        unsafe = next((r for r in refused if MUTATION.search(r.words)), None)
        if unsafe is None or self.unsafe is not None:
            return done.results
        self.unsafe = Reason(TemplateProblem.REFUSED, words=unsafe.reason)
        return self._ask(text, jobs)

    def job(self, turns: Sequence[Turn], ask: ProbeRequest, *, generate: bool) -> RenderJob:
        """Return a job for ``turns`` in the style, with the tools and variables of ``ask``."""
        style = ask.style or self.style
        return RenderJob(style.messages(turns), ask.tools, generate, ask.kwargs or {})

    def cut(self, asks: Sequence[ProbeRequest]) -> list[Piece | RenderRefused]:
        """Cut each turn out of its conversation; all are rendered in one exchange."""
        jobs: list[RenderJob] = []
        for ask in asks:
            tail = TAILS[self._style(ask).tail]
            jobs += [
                self.job(ask.before, ask, generate=True),
                self.job(ask.before, ask, generate=False),
                self.job((*ask.before, ask.turn, *tail), ask, generate=False),
            ]
        results = self.render(jobs)
        return [self._cut(ask, *results[3 * i : 3 * i + 3]) for i, ask in enumerate(asks)]

    def _style(self, ask: ProbeRequest) -> CaseStyle:
        return ask.style or self.style

    def _cut(self, ask: ProbeRequest, prompt: Result, asked: Result, full: Result) -> Piece | RenderRefused:
        for result in (prompt, full):
            if isinstance(result, RenderRefused):
                return result
        assert isinstance(prompt, Rendered)  # noqa: S101 - both were looked at above
        assert isinstance(full, Rendered)  # noqa: S101
        anchor = _anchor(ask.before[-1], prompt.text, full.text)
        start = _after(prompt.text, anchor)
        question, history = prompt.text[start:], full.text[_after(full.text, anchor) :]
        header, written = self._apart(question, history)
        if self._style(ask).tail:
            written = self._before_tail(written, prompt.text)
        elif isinstance(asked, Rendered):
            # What a turn of the user ends with, the assistant's usually ends with too; and a template
            # that opens the next turn unasked does so after both.
            shared = self.marks.suffix(written, asked.text[_after(asked.text, anchor) :])
            marker = SHAPE.search(shared)
            if marker is not None:
                written = written[: len(written) - len(shared) + marker.start()]
        return Piece(prompt.text, prompt.text[: start + header], self.trim(written))

    def trim(self, written: str) -> str:
        """Cut end-of-turn markers off, and what is no more than white space and markers behind them."""
        ends = self._ends
        for _ in range(MOST_CUTS):
            bare = written.rstrip()
            for end in ends:
                head, found, rest = bare.rpartition(end)
                if found and not SHAPE.sub("", rest).strip():
                    written = head
                    break
            else:
                shape = ENDS.search(bare)
                if shape is None:
                    return bare
                written = bare[: shape.start()]
        return written.rstrip()

    @property
    def _ends(self) -> list[str]:
        """Return what may end a turn: what the template was seen to write, and the first that files name."""
        return [e for e in (self.end_of_turn, *self._vocabulary.stops[:MOST_STOPS]) if e]

    def _apart(self, question: str, history: str) -> tuple[int, str]:
        """Return how much of the prompt history shares, and what history goes on with.

        Where both go on with the same marker after white space that differs, it is the same header.
        """
        header = self.marks.prefix(question, history)
        written = history[header:]
        for _ in range(MOST_CUTS):
            rest, more = question[header:].lstrip(), written.lstrip()
            shared = self.marks.prefix(rest, more)
            if not SHAPE.search(rest[:shared]):
                return header, written
            header, written = len(question) - len(rest) + shared, more[shared:]
        return header, written

    def _before_tail(self, written: str, prompt: str) -> str:
        """Cut where the turn ends that stands before a tool's result or the next question."""
        before = next(
            (written[: written.rfind(a)] for a in (RESULT_ANCHOR, cases.FOLLOW_UP) if a in written), written
        )
        ends = [before.rfind(e) for e in self._ends if e in before]
        if ends:
            return before[: max(ends)]
        opening = prompt[: max(prompt.rfind(cases.QUESTION), 0)]
        return before.removesuffix(self.marks.suffix(before, opening))

    def learn_end(self) -> None:
        """Find what ends an answer: it follows the answer at the end and before the next question alike."""
        ask = ProbeRequest((cases.ASK,), Turn("assistant", cases.ANSWER), self.no_tools)
        turns = (*ask.before, ask.turn)
        last, going_on, asked = self.render(
            [
                self.job(turns, ask, generate=False),
                self.job((*turns, cases.ASK_AGAIN), ask, generate=True),
                self.job(ask.before, ask, generate=False),
            ]
        )
        if isinstance(last, Rendered) and isinstance(going_on, Rendered):
            after = [t.text[_after(t.text, cases.ANSWER) :] for t in (last, going_on)]
            common = after[0][: self.marks.prefix(*after)].strip()
            # A template that opens the next turn unasked shares the start of its header too.
            end = common if common == after[0].strip() else first_marker(common)
            # What closes the answer's own text is no end of turn; that closes the question too.
            shared = (
                self.marks.suffix(end, self.tail(asked.text).strip()) if isinstance(asked, Rendered) else ""
            )
            self.end_of_turn = shared if SHAPE.search(shared) else end

    def learn_no_tools(self) -> None:
        """Find how this template is told that there are no tools; a template for tool use may need some."""
        choices: tuple[Tools, ...] = (None, [], cases.TOOLS)
        for tools in choices:
            ask = ProbeRequest((cases.ASK,), cases.ASK, tools)
            if isinstance(self.render([self.job((cases.ASK,), ask, generate=True)])[0], Rendered):
                self.no_tools = tools
                return

    def tail(self, prompt: str, last: Turn = cases.ASK) -> str:
        """Return the prompt after the last turn's text."""
        return prompt[_after(prompt, _anchor(last, prompt, prompt)) :]

    def with_style(self, **changes: Any) -> CaseStyle:
        """Return the style with some fields changed."""
        return replace(self.style, **changes)


def _anchor(turn: Turn, *texts: str) -> str:
    """Return the text of the turn before, if every rendering holds it; else nothing."""
    wanted = RESULT_ANCHOR if turn.role == "tool" else turn.text
    return wanted if all(wanted in t for t in texts) else ""


def _after(text: str, anchor: str) -> int:
    return text.rfind(anchor) + len(anchor) if anchor and anchor in text else 0
