"""A probe of one template: renders conversations and cuts a turn into prompt and completion."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from importer.chat_template import cases
from importer.chat_template.cases import CaseStyle, Turn
from importer.chat_template.find import Template
from importer.chat_template.markers import ENDS, SHAPE, Marks, first_marker
from importer.chat_template.render import Rendered, RenderJob, RenderRefused, Renders, Result
from importer.chat_template.samples import TemplateProblem, Tool
from importer.chat_template.vocabulary import Vocabulary
from importer.frozen import frozen
from importer.reasons import Reason

Tools = Sequence[Tool] | None
RESULT_ANCHOR = "overcast"
TAILS = {"": (), "tool": (Turn("tool", cases.RESULT),), "user": (cases.ASK_AGAIN,)}
HOPELESS = {"syntax", "limit", "memory"}  # refusals that hold for every form of messages
MOST_CUTS = 50  # markers one behind the other; no turn ends in more than three
MOST_STOPS = 50  # tokens that files name; models have up to seven
# A text that no model writes: what a server made up, and what the clock changes.
MARK = f"{cases.SERVER_ID}00000"
CLOCK, ANOTHER_TIME = "strftime_now", 374_536_073.0  # seconds: 28 November 2037, 09:47:53
_ID = rf"{cases.SERVER_ID}\d{{5}}"
_NAMES = r"(?:[\w:.-]*[_:.-])?(?:id|date|time(?:stamp)?|sent|created)(?:_at)?"
# What such a text stands in: a member of an object, an attribute, a tag or a word of its own; else alone.
SERVERS = re.compile(
    rf"""\s*,\s*(?P<q>["'])[\w-]+(?P=q)\s*:\s*(?P<v>["']){_ID}(?P=v)"""
    rf"""|(?P<k>["'])[\w-]+(?P=k)\s*:\s*(?P<w>["']){_ID}(?P=w)\s*,?\s*"""
    rf"""|\s+[\w-]+=(?P<a>["']?){_ID}(?P=a)"""
    rf"""|[<\[][|｜]?{_NAMES}[|｜]?[>\]]\s*{_ID}(?:\s*[<\[]/{_NAMES}[>\]])?"""
    rf"""|\b{_NAMES}\s*[:=]\s*{_ID},?\s*"""
    rf"""|{_ID}""",
    re.IGNORECASE,
)
# The parts of a date are one text: 2026-01-15T12:00:00+00:00.
DATE = re.compile(rf"{MARK}(?:[\s\d:./,+-]{{1,3}}{MARK})*(?:Z|[+-]\d\d:?\d\d)?")
MUTATION = re.compile(r"access to attribute '\w+' of '(?:list|dict|set)' object is unsafe")


@frozen
class Piece:
    """A turn cut in two.

    ``prompt``      the prompt as rendered with the generation prompt.
    ``header``      the part of the prompt that the conversation's history shares.
    ``completion``  the text of history after the header, end-of-turn markers cut off.
    """

    prompt: str
    header: str
    completion: str

    @property
    def residue(self) -> str:
        """Return the end of the generation prompt that history lacks: an open or an empty reasoning block."""
        return self.prompt[len(self.header) :]


@frozen
class ProbeRequest:
    """A turn to cut out: the turns before it, the turn, offered tools, template variables, style."""

    before: tuple[Turn, ...]
    turn: Turn
    tools: Tools = None
    kwargs: Mapping[str, object] | None = None
    style: CaseStyle | None = None


class TemplateProbe:
    """Renders one template and caches the results."""

    def __init__(self, template: Template, vocabulary: Vocabulary, renderer: Renders) -> None:
        self.template = template
        self.marks = Marks(vocabulary.contents)
        self.style = CaseStyle()
        self.variables: Mapping[str, Sequence[Any]] = {}
        self.end_of_turn = ""
        self.no_tools: Tools = None
        self.unsafe: Reason | None = None  # why transformers would reject a rendering
        self._vocabulary = vocabulary
        self._renderer = renderer
        self._known: dict[str, Result] = {}
        self._hopeless: Result | None = None  # the refusal that ends all rendering

    def render(self, jobs: Sequence[RenderJob]) -> list[Result]:
        """Return the results in order; each different job is rendered once, all new ones in one exchange."""
        keys = [
            json.dumps([j.messages, j.tools, j.add_generation_prompt, dict(j.kwargs), j.later]) for j in jobs
        ]
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

    def served(self, jobs: Sequence[RenderJob]) -> Sequence[Result]:
        """Return the results as transformers has them: its sandbox refuses changes of lists."""
        if self.unsafe is None:
            return self.render(jobs)
        plain = self.template.plain or self.template.text
        results: list[Result] = []
        for job in jobs:  # one by one: a request without tools may have a template of its own
            text = plain if job.tools is None else self.template.text
            results += self._renderer.render(text, [job], self._vocabulary.variables).results
        return results

    def _ask(self, text: str, jobs: Sequence[RenderJob]) -> Sequence[Result]:
        if self._hopeless is not None:
            return [self._hopeless] * len(jobs)
        done = self._renderer.render(text, jobs, self._vocabulary.variables, mutable=self.unsafe is not None)
        if all(isinstance(r, RenderRefused) and r.kind in HOPELESS for r in done.results):
            self._hopeless = done.results[-1]
        self.variables = {**self.variables, **done.variables}
        refused = (r for r in done.results if isinstance(r, RenderRefused))
        unsafe = next((r for r in refused if MUTATION.search(r.words)), None)
        if unsafe is None or self.unsafe is not None:
            return done.results
        self.unsafe = Reason(TemplateProblem.REFUSED, words=unsafe.reason)
        return self._ask(text, jobs)

    def job(self, turns: Sequence[Turn], ask: ProbeRequest, *, generate: bool, later: float = 0) -> RenderJob:
        """Return a job for ``turns`` in the style, with the tools and variables of ``ask``."""
        style = ask.style or self.style
        return RenderJob(style.messages(turns), ask.tools, generate, ask.kwargs or {}, later)

    def cut(self, asks: Sequence[ProbeRequest]) -> list[Piece | RenderRefused]:
        """Cut each turn out of its conversation, without what changes with the time of the rendering."""
        pieces = self._pieces(asks)
        if CLOCK not in self.template.text:
            return pieces
        return [_undated(*both) for both in zip(pieces, self._pieces(asks, ANOTHER_TIME), strict=True)]

    def _pieces(self, asks: Sequence[ProbeRequest], later: float = 0) -> list[Piece | RenderRefused]:
        """Cut each turn out of its conversation; all are rendered in one exchange."""
        jobs: list[RenderJob] = []
        for ask in asks:
            tail = TAILS[self._style(ask).tail]
            jobs += [
                self.job(ask.before, ask, generate=True, later=later),
                self.job(ask.before, ask, generate=False, later=later),
                self.job((*ask.before, ask.turn, *tail), ask, generate=False, later=later),
            ]
        results = self.render(jobs)
        return [self._cut(ask, *results[3 * i : 3 * i + 3]) for i, ask in enumerate(asks)]

    def _style(self, ask: ProbeRequest) -> CaseStyle:
        return ask.style or self.style

    def _cut(
        self, ask: ProbeRequest, prompt: Result, unanswered: Result, full: Result
    ) -> Piece | RenderRefused:
        for result in (prompt, full):
            if isinstance(result, RenderRefused):
                return result
        assert isinstance(prompt, Rendered)  # noqa: S101 - the loop has checked both
        assert isinstance(full, Rendered)  # noqa: S101
        anchor = _anchor(ask.before[-1], prompt.text, full.text)
        start = _after(prompt.text, anchor)
        question, history = prompt.text[start:], full.text[_after(full.text, anchor) :]
        header, written = self._apart(question, history)
        if self._style(ask).tail:
            written = self._before_tail(written, prompt.text)
        elif isinstance(unanswered, Rendered):
            # The assistant's turn usually ends as the user's does. A template that always opens the next
            # turn opens it after both.
            shared = self.marks.suffix(written, unanswered.text[_after(unanswered.text, anchor) :])
            marker = SHAPE.search(shared)
            if marker is not None:
                written = written[: len(written) - len(shared) + marker.start()]
        if self._style(ask).ids == "nine":
            written = SERVERS.sub("", written)
        return Piece(prompt.text, prompt.text[: start + header], self.trim(written))

    def trim(self, written: str) -> str:
        """Return the text without end-of-turn markers, and without markers and white space behind them."""
        ends = self.ends
        for _ in range(MOST_CUTS):
            bare = written.rstrip()
            for end in ends:
                head, separator, rest = bare.rpartition(end)
                if separator and not SHAPE.sub("", rest).strip():
                    written = head
                    break
            else:
                shape = ENDS.search(bare)
                if shape is None:
                    return bare
                written = bare[: shape.start()]
        return written.rstrip()

    @property
    def ends(self) -> list[str]:
        """Return the possible ends of a turn: the rendered one, then the first ones that files name."""
        return [e for e in (self.end_of_turn, *self._vocabulary.stops[:MOST_STOPS]) if e]

    def _apart(self, question: str, history: str) -> tuple[int, str]:
        """Return the length of the header that prompt and history share, and the rest of history.

        A marker that follows in both after different white space belongs to the header.
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
        """Return the text up to the end of the turn before a tool's result or the next question."""
        before = next(
            (written[: written.rfind(a)] for a in (RESULT_ANCHOR, cases.FOLLOW_UP) if a in written), written
        )
        ends = [before.rfind(e) for e in self.ends if e in before]
        if ends:
            return before[: max(ends)]
        opening = prompt[: max(prompt.rfind(cases.QUESTION), 0)]
        return before.removesuffix(self.marks.suffix(before, opening))

    def find_end_of_turn(self) -> None:
        """Set the end of a turn: the text behind an answer at the end and before the next question alike."""
        ask = ProbeRequest((cases.ASK,), Turn("assistant", cases.ANSWER), self.no_tools)
        turns = (*ask.before, ask.turn)
        last, going_on, unanswered = self.render(
            [
                self.job(turns, ask, generate=False),
                self.job((*turns, cases.ASK_AGAIN), ask, generate=True),
                self.job(ask.before, ask, generate=False),
            ]
        )
        if isinstance(last, Rendered) and isinstance(going_on, Rendered):
            after = [t.text[_after(t.text, cases.ANSWER) :] for t in (last, going_on)]
            common = after[0][: self.marks.prefix(*after)].strip()
            # A template that always opens the next turn shares the start of its header too.
            end = common if common == after[0].strip() else first_marker(common)
            # A marker that closes only the answer's text is no end of turn: an end closes the question too.
            shared = (
                self.marks.suffix(end, self.tail(unanswered.text).strip())
                if isinstance(unanswered, Rendered)
                else ""
            )
            self.end_of_turn = shared if SHAPE.search(shared) else end

    def find_no_tools(self) -> None:
        """Set the value of ``tools`` for a request without tools; a template for tool use may need some."""
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


def _undated(one: Piece | RenderRefused, other: Piece | RenderRefused) -> Piece | RenderRefused:
    """Return the first piece without the words that differ in the second, rendered at another time."""
    if isinstance(one, RenderRefused) or isinstance(other, RenderRefused):
        return one
    words, others = (re.findall(r"\w+|\W", piece.completion) for piece in (one, other))
    if one.completion == other.completion or len(words) != len(others):
        return one
    marked = "".join(word if word == twin else MARK for word, twin in zip(words, others, strict=True))
    return replace(one, completion=SERVERS.sub("", DATE.sub(MARK, marked)))


def _anchor(turn: Turn, *texts: str) -> str:
    """Return the text of the turn, if all ``texts`` contain it; else nothing."""
    anchor = RESULT_ANCHOR if turn.role == "tool" else turn.text
    return anchor if all(anchor in t for t in texts) else ""


def _after(text: str, anchor: str) -> int:
    return text.rfind(anchor) + len(anchor) if anchor and anchor in text else 0
