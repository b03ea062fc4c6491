"""Compare prompts with the marks of their conversations: lost, cut, altered, doubled or out of order.

The shapes of conversations as a covering array: each trait stands alone once, and with each other one.

Roles in a prompt: the words and markers before a turn that stand before no turn of the other role.
"""

from __future__ import annotations

import ast
import html
import json
import re
import unicodedata
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from itertools import chain, combinations, islice, product, takewhile
from typing import TypeVar

from importer.chat_template.markers import SHAPE
from importer.chat_template.probe import TemplateProbe
from importer.chat_template.render import RefusalReason, Rendered, RenderJob, RenderRefused, Result
from importer.chat_template.request_coverage import conversations
from importer.chat_template.request_coverage.conversations import (
    Conversation,
    Mark,
    Shaped,
    name_of,
    shaped_conversation,
)
from importer.chat_template.request_coverage.findings import (
    BASE,
    CALLING,
    FACTORS,
    LONG,
    NEEDS,
    OF_CALLS,
    PLACE,
    CoverageField,
    CoverageFinding,
    CoverageKind,
    Shape,
    T,
    Trait,
    fits,
    special,
    without,
)
from importer.frozen import frozen

L = TypeVar("L")
Row = tuple[L, ...]
Chosen = Mapping[int, L]  # levels by the number of their factor
Fill = Callable[[Chosen[L]], Row[L] | None]


def covering(
    factors: Sequence[Sequence[L]], fill: Fill[L], *, alone: Collection[L] = ()
) -> tuple[Row[L], ...]:
    """Return rows with each level by itself first, then rows until each possible pair of levels is in one.

    ``fill`` completes chosen levels with the simplest others, and returns ``None`` for levels that do not go
    together. Levels in ``alone`` stand in no pair beside those that ``fill`` gives them.
    """
    rows: dict[Row[L], None] = {}
    for number, levels in enumerate(factors):
        for level in levels:
            rows |= dict.fromkeys(row for row in [fill({number: level})] if row is not None)
    paired = [[level for level in levels if level not in alone] for levels in factors]
    left = {pair for one, two in combinations(range(len(paired)), 2) for pair in _pairs(paired, one, two)}
    for row in rows:
        left -= _covered(row)
    for one, two in combinations(range(len(paired)), 2):
        for (_, first), (_, second) in _pairs(paired, one, two):
            if ((one, first), (two, second)) not in left:
                continue
            widest = _widest(paired, fill, {one: first, two: second}, left)
            left -= {((one, first), (two, second))} if widest is None else _covered(widest)
            rows |= {} if widest is None else {widest: None}
    return tuple(rows)


Pair = tuple[tuple[int, L], tuple[int, L]]


def _pairs(factors: Sequence[Sequence[L]], one: int, two: int) -> Iterator[Pair[L]]:
    return (((one, first), (two, second)) for first, second in product(factors[one], factors[two]))


def _covered(row: Row[L]) -> set[Pair[L]]:
    return set(combinations(enumerate(row), 2))


def _widest(
    factors: Sequence[Sequence[L]], fill: Fill[L], chosen: Chosen[L], left: set[Pair[L]]
) -> Row[L] | None:
    """Return a row with the chosen levels, and of each other factor the level with the most new pairs."""
    row = fill(chosen)
    if row is None:
        return None
    for number, levels in enumerate(factors):
        if number in chosen:
            continue
        news = {level: _new(number, level, chosen, left) for level in levels}
        best = max(levels, key=lambda level: news[level])
        more = {**chosen, number: best}
        filled = fill(more) if news[best] else None
        if filled is not None:
            row, chosen = filled, more
    return row


def _new(number: int, level: L, chosen: Chosen[L], left: set[Pair[L]]) -> int:
    mine = (number, level)
    others = ((other, held) for other, held in chosen.items())
    return sum(((mine, one) if number < one[0] else (one, mine)) in left for one in others)


@cache
def covering_shapes() -> tuple[Shape, ...]:
    """Return the shapes, each trait by itself first; those of hundreds of turns stand beside no other."""
    return covering(FACTORS, _filled, alone=LONG)


def _filled(chosen: Mapping[int, Trait]) -> Shape | None:
    """Return the simplest shape with the chosen traits; ``None`` if they do not go together."""
    row = [chosen.get(number, simplest) for number, simplest in enumerate(BASE)]
    fixed = set(chosen)
    for trait in (T.NAMES, T.REASONING, *OF_CALLS, *CALLING, *NEEDS):
        if trait not in row or not (needed := NEEDS[trait]) or any(one in row for one in needed):
            continue
        free = next((one for one in needed if PLACE[one] not in fixed), None)
        if free is None:
            return None
        row[PLACE[free]] = free
    return tuple(row)


WORD = re.compile(rf"{SHAPE.pattern}|\w+")
NONCE_NAME = re.compile(rf"\b\w+{conversations.NAMED}\b")
SPEAKERS = ("user", "assistant")


def distinct_roles(conversation: Shaped, prompt: str) -> Mapping[str, bool]:
    """Return for the user and the assistant whether something before their turns is theirs alone.

    Only turns behind another one are judged: what begins a prompt stands before the first. Empty where a turn
    has no text, or where the prompt lacks one.
    """
    before: dict[str, set[str]] = {}
    at = -1
    for turn in conversation.turns:
        start = prompt.find(turn.text, max(at, 0)) if turn.text and not turn.calls else -1
        if start < 0 or turn.role == "tool":
            return {}
        if at >= 0 and turn.role in SPEAKERS:
            before.setdefault(turn.role, set()).update(WORD.findall(NONCE_NAME.sub("", prompt[at:start])))
        at = start + len(turn.text)
    if len(before) < len(SPEAKERS):
        return {}
    user, assistant = (before[role] for role in SPEAKERS)
    return {"user": bool(user - assistant), "assistant": bool(assistant - user)}


ROOM = 8  # an escape makes a character six to twelve long at most; more is another text
# Fields whose text may stand between the quotes of a JSON text that the template writes by hand.
QUOTED = frozenset(
    {
        CoverageField.ARGUMENT, CoverageField.NESTED_ARGUMENT, CoverageField.TOOL_DESCRIPTION,
        CoverageField.PARAMETER_DESCRIPTION, CoverageField.NESTED_DESCRIPTION,
    }
)  # fmt: skip
ARGUMENTS = frozenset({CoverageField.ARGUMENT, CoverageField.NESTED_ARGUMENT})
DESCRIPTIONS = frozenset(
    {
        CoverageField.TOOL_DESCRIPTION, CoverageField.PARAMETER_DESCRIPTION, CoverageField.NESTED_DESCRIPTION,
    }
)  # fmt: skip
# Tools written as declarations of a programming language have comments, each line with a sign of its own.
COMMENT = re.compile(r"\n[ \t]*(?://|#|--|\*)[ \t]*")
LITERAL = 2_000  # characters that are read as a Python literal
# Names that a JSON text and a Python dictionary write in different quotes.
KEYS = frozenset({CoverageField.PARAMETER, CoverageField.NESTED_PARAMETER, CoverageField.ARGUMENT_NAME})


@frozen
class Place:
    """Where a mark stands in a prompt: ``start`` of its first word, ``stop`` behind its last one."""

    start: int
    stop: int


def compare(conversation: Conversation, prompt: str) -> Iterator[CoverageFinding]:
    """Yield what the prompt does to each mark, and marks that stand before an earlier one."""
    # Apart, because a template may write the name of a function beside its result.
    furthest = {True: -1, False: -1}
    python_calls = _python_calls(conversation, prompt)
    kinds: dict[str, CoverageKind] = {}
    for mark in conversation.marks:
        kind = judge(mark, prompt, python=python_calls)
        above = kinds.get(mark.parent)
        if kind is not None:
            kinds[mark.text] = kind
        if kind is not None and kind is not above and above is not CoverageKind.LOST:
            kept = _kept(mark, prompt) if kind is CoverageKind.CUT else 0
            yield replace(_finding(kind, mark, conversation), kept=kept)
        at = prompt.find(mark.ends[0])
        if at >= 0 and mark.before and -1 < prompt.find(mark.before) < at:
            yield _finding(CoverageKind.OUT_OF_ORDER, mark, conversation)
        if at >= 0 and mark.once and prompt.count(mark.ends[0]) > 1:
            yield _finding(CoverageKind.DOUBLED, mark, conversation)
        if at < 0 or not mark.ordered:
            continue
        called = mark.field is CoverageField.CALL
        if at < furthest[called]:
            yield _finding(CoverageKind.OUT_OF_ORDER, mark, conversation)
        furthest[called] = max(furthest[called], at)


def _finding(kind: CoverageKind, mark: Mark, conversation: Conversation) -> CoverageFinding:
    return CoverageFinding(kind, mark.field, (mark.number,), conversation.name)


def _kept(mark: Mark, prompt: str) -> int:
    """Return how many characters of a text stand in the prompt, from its first word on."""
    at = prompt.find(mark.ends[0])
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(mark.text, prompt[at:], strict=False))
    return sum(1 for _ in alike) if at >= 0 else 0


def judge(mark: Mark, prompt: str, *, python: bool = False) -> CoverageKind | None:
    """Return what the prompt does to one mark; ``None`` if it holds the mark as it was sent.

    ``python`` is whether the template writes calls as Python does, so that Python's quotes are no fault.
    """
    if mark.whole:
        return _judge_word(mark, prompt, python=python)
    places = list(_places(mark, prompt))
    if not places:
        heads = [word in prompt for word in mark.ends]
        if any(heads):
            return CoverageKind.CUT
        lowered = prompt.lower()
        return CoverageKind.CASED if any(word.lower() in lowered for word in mark.ends) else CoverageKind.LOST
    kinds = [_judge_place(mark, prompt, place, python=python) for place in places]
    return None if None in kinds else kinds[0]


def _judge_word(mark: Mark, prompt: str, *, python: bool) -> CoverageKind | None:
    if mark.text not in prompt:
        return CoverageKind.CASED if mark.text.lower() in prompt.lower() else CoverageKind.LOST
    if python or mark.field not in KEYS:
        return None
    dictionary, written = f"'{mark.text}':", prompt.count(mark.text)
    return CoverageKind.REPR if dictionary in prompt and prompt.count(f"'{mark.text}'") == written else None


def _places(mark: Mark, prompt: str) -> Iterator[Place]:
    head, tail = mark.ends
    room = ROOM * len(mark.text)
    start = prompt.find(head)
    while start >= 0:
        begun = start + len(head)
        following = prompt.find(head, begun)  # places never overlap, so all of them are as long as the prompt
        stop = prompt.find(tail, begun, min(start + room, following) if following >= 0 else start + room)
        if stop >= 0:
            yield Place(start, stop + len(tail))
        start = following


def _judge_place(mark: Mark, prompt: str, place: Place, *, python: bool) -> CoverageKind | None:
    written = prompt[place.start : place.stop]
    if written != mark.text:
        return _altered(mark, written, python=python)
    before = prompt[max(place.start - 1, 0) : place.start]
    if mark.field in QUOTED and before == '"' and prompt[place.stop : place.stop + 1] == '"':
        return CoverageKind.UNESCAPED
    return None if _has_edges(mark, prompt, place) else CoverageKind.TRIMMED


def _altered(mark: Mark, written: str, *, python: bool) -> CoverageKind | None:
    meant = _as_json(written)
    # The arguments of a call may be a JSON text inside a JSON text, as in an API's messages.
    if meant == mark.text or (mark.field in ARGUMENTS and _as_json(meant or "") == mark.text):
        return CoverageKind.ASCII if written.isascii() and not mark.text.isascii() else None
    if mark.field in DESCRIPTIONS and _lines(COMMENT.sub("\n", written)) == _lines(mark.text):
        return None if COMMENT.search(written) else CoverageKind.ALTERED
    if mark.text in (
        without_entities(written),
        without_entities(meant or ""),
        _as_json(without_entities(written)),
    ):
        return CoverageKind.ESCAPED
    if len(written) <= LITERAL and _as_python(written) == mark.text:
        return None if python else CoverageKind.REPR
    return CoverageKind.CASED if written.lower() == mark.text.lower() else CoverageKind.ALTERED


def _lines(text: str) -> str:
    """Return a text without blank lines."""
    return "\n".join(line for line in text.split("\n") if line.strip())


def _has_edges(mark: Mark, prompt: str, place: Place) -> bool:
    """Return whether the white space around the text stands there, raw or as JSON writes it."""
    before, after = mark.edges
    raw = prompt.endswith(before, 0, place.start) and prompt.startswith(after, place.stop)
    quoted = (json.dumps(before)[1:-1], json.dumps(after)[1:-1])
    return raw or (prompt.endswith(quoted[0], 0, place.start) and prompt.startswith(quoted[1], place.stop))


def without_entities(text: str) -> str:
    """Return the text without HTML's entities; unchanged where a number is too long for Python."""
    try:
        return html.unescape(text)
    except ValueError:
        return text


def _as_json(written: str) -> str | None:
    """Return the text that a JSON text between quotes means; ``None`` if it is none."""
    try:
        value = json.loads(f'"{written}"')
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _as_python(written: str) -> str | None:
    """Return the text that a Python literal between quotes means; ``None`` if it is none."""
    for quote in ("'", '"'):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of escapes that Python does not know
                value = ast.literal_eval(quote + written + quote)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(value, str):
            return value
    return None


def _python_calls(conversation: Conversation, prompt: str) -> bool:
    """Return whether a call of the conversation is written as Python writes calls: ``name(``."""
    names = [mark.text for mark in conversation.marks if mark.field is CoverageField.CALL]
    return any(called_as_python(name, prompt) for name in names)


def called_as_python(name: str, prompt: str) -> bool:
    """Return whether a prompt calls a function as Python does."""
    return f"{name}(" in prompt


def shows(prompt: str, names: Sequence[str]) -> bool:
    """Return whether the prompt holds the name of any offered tool, in any case of its letters."""
    lowered = prompt.lower()
    return any(name.lower() in lowered for name in names)


MOST = 3  # findings of one kind and field, each with other traits
TOGETHER = 3  # traits that explain a loss together
KINDS = (CoverageKind.LOST, CoverageKind.CASED, CoverageKind.OUT_OF_ORDER)
# What a template may drop once it is old enough: each distance from the end is a part of its own.
AGEING = (CoverageField.REASONING, CoverageField.WORDS_BESIDE_CALL)
# A field with the number of its part: the role, or the distance from the end.
Part = tuple[CoverageField, str]
Seen = Mapping[Part, CoverageKind | None]
Has = Callable[[Shape], bool]


@frozen
class ShapesChecked:
    """The findings, and the number of nonces that were looked for."""

    findings: tuple[CoverageFinding, ...]
    checked: int


NONE = ShapesChecked((), 0)


@cache
def asked_shapes(*, thinks: bool) -> tuple[Shape, ...]:
    """Return the shapes to render, the short ones first; ``thinks`` keeps those with reasoning."""
    found = (
        covering_shapes() if thinks else tuple(without(shape, Trait.REASONING) for shape in covering_shapes())
    )
    return tuple(sorted(dict.fromkeys(found), key=lambda shape: any(trait in shape for trait in LONG)))


conversation_of = cache(shaped_conversation)


def check_shapes(probe: TemplateProbe, *, thinks: bool) -> ShapesChecked:
    """Return what some shapes lose and others do not, with the form of messages that the probe has found."""
    tried = _Tried(probe)
    tried.render(asked_shapes(thinks=thinks))
    tried.render(_unmasked(tried))
    tried.render_by_the_other()
    findings = (*_broken(tried), *_lost(tried))
    checked = sum(len(conversation_of(shape).marks) for shape in tried.rendered())
    return ShapesChecked(findings, checked)


@frozen
class _Tried:
    """The results of shapes, and what of each shape reached its prompt.

    ``others`` are those that the template for requests without tools shows whole, if it is another.
    """

    probe: TemplateProbe
    results: dict[Shape, Result] = field(default_factory=dict)
    seen: dict[Shape, Seen] = field(default_factory=dict)
    others: dict[Shape, Seen] = field(default_factory=dict)

    def render(self, wanted: Iterable[Shape]) -> None:
        """Render the new ones of the shapes in one exchange."""
        fresh = [shape for shape in dict.fromkeys(wanted) if shape not in self.results]
        for shape, result in zip(fresh, self.probe.render([*map(self._job, fresh)]), strict=True):
            self.results[shape] = result
            self.seen[shape] = _seen(shape, result)

    def render_by_the_other(self) -> None:
        """Render what has tools with a template for requests without tools, where that is another one."""
        offered = [shape for shape in self.results if Trait.TOOLS in shape and self.probe.template.plain]
        results = self.probe.render_plain([*map(self._job, offered)]) if offered else ()
        for shape, result in zip(offered, results, strict=True):
            seen = _seen(shape, result)
            if seen and not any(seen.values()):
                self.others[shape] = seen

    def _job(self, shape: Shape) -> RenderJob:
        one = conversation_of(shape)
        tools = self.probe.no_tools if one.tools is None else one.tools
        return RenderJob(one.messages(self.probe.style), tools, add_generation_prompt=True)

    def rendered(self) -> list[Shape]:
        """Return the shapes that the template does not refuse."""
        return [shape for shape, result in self.results.items() if isinstance(result, Rendered)]

    def served(self) -> list[Shape]:
        """Return the shapes that are not refused; the other template's lack the trait of this one."""
        return [*map(self._served, self.rendered()), *self.others]

    def whole(self, part: Part) -> list[Shape]:
        """Return the shapes in whose prompt a part arrives, those of the other template among them."""
        seen = [self._served(s) for s, seen in self.seen.items() if seen.get(part, CoverageKind.LOST) is None]
        return [*seen, *(s for s, seen in self.others.items() if seen.get(part, CoverageKind.LOST) is None)]

    def _served(self, shape: Shape) -> Shape:
        return (*shape, Trait.TOOL_TEMPLATE) if self.others and Trait.TOOLS in shape else shape

    def explained(self, lost: Sequence[Shape], has: Has, whole: Callable[[], list[Shape]]) -> Iterator[Cause]:
        """Yield the causes of a loss; each is sought with the least shape that ``has`` it."""
        left = sorted(lost, key=lambda shape: len(special(shape))) if whole() else []
        while left:
            least = self._least(left[0], has)
            cause = cause_of(self._served(least), whole())
            yield cause, least
            left = [shape for shape in left[1:] if not set(cause) <= {*self._served(shape)}]

    def _least(self, shape: Shape, has: Has) -> Shape:
        """Return the shape without the traits that its loss does not need."""
        for trait in reversed(special(shape)):
            less = without(shape, trait)
            if fits(less):
                self.render([less])
                shape = less if has(less) else shape
        return shape


Cause = tuple[Shape, Shape]  # the traits, and a shape that has the loss by them


def _seen(shape: Shape, result: Result) -> Seen:
    """Return the parts of a shape with what the prompt does to each; ``None`` if nothing."""
    if not isinstance(result, Rendered):
        return {}
    one = conversation_of(shape)
    kinds = {(f.field, f.numbers): f.kind for f in compare(one, result.text) if f.kind in KINDS}
    worst: dict[Part, CoverageKind | None] = {}
    for mark in one.marks:
        kind = kinds.get((mark.field, (mark.number,)))
        if kind is None and judge(mark, result.text) in KINDS:
            continue  # lost with what holds it
        part = mark.field, str(mark.number) if mark.field in AGEING else ""
        worst[part] = worst.get(part) or kind
    for role, own in distinct_roles(one, result.text).items():
        worst[CoverageField.ROLE, role] = None if own else CoverageKind.LOST
    return worst


def _unmasked(tried: _Tried) -> list[Shape]:
    """Return the refused shapes without the traits that are refused alone: these hid the others."""
    refused = [shape for shape in tried.results if shape not in tried.rendered()]
    alone = [one for one in map(special, refused) if len({*one} - {Trait.TOOLS}) == 1]
    traits = {trait for one in alone for trait in one if trait is not Trait.TOOLS}
    found = []
    for shape in refused:
        for trait in traits:
            shape = without(shape, trait)  # noqa: PLW2901 - one trait after the other
        found += [shape] if fits(shape) else []
    return found


def cause_of(shape: Shape, whole: Sequence[Shape]) -> Shape:
    """Return the fewest traits of a shape that stand together in none of ``whole``; special ones first."""
    held = [frozenset(one) for one in whole]
    groups = chain.from_iterable(
        chain(combinations(special(shape), size), combinations(shape, size))
        for size in range(1, TOGETHER + 1)
    )
    return next((c for c in groups if not any(one.issuperset(c) for one in held)), special(shape))


def _broken(tried: _Tried) -> Iterator[CoverageFinding]:
    """Yield shapes that the template refuses, where it renders others: by accident, or deliberately."""
    for kind, broke in ((CoverageKind.FAILS, True), (CoverageKind.REFUSED, False)):

        def has(shape: Shape, broke: bool = broke) -> bool:
            return _by_accident(tried.results[shape]) is broke

        lost = [shape for shape in tried.results if has(shape)]
        for cause, shape in islice(tried.explained(lost, has, tried.served), MOST):
            result = tried.results[shape]
            words = result.words if isinstance(result, RenderRefused) else ""
            yield CoverageFinding(kind, conversation=name_of(shape), words=words, shape=cause)


def _by_accident(result: Result) -> bool | None:
    """Return whether the template broke, as by a recursion too deep; ``None`` if it did not refuse."""
    if not isinstance(result, RenderRefused) or result.reason.kind is not RefusalReason.RAISED:
        return None
    return result.broke or result.kind == "limit"


def _lost(tried: _Tried) -> Iterator[CoverageFinding]:
    found = ((part, kind) for seen in tried.seen.values() for part, kind in seen.items())
    for part, kind in [*dict.fromkeys((part, kind) for part, kind in found if kind is not None)]:

        def has(shape: Shape, part: Part = part, kind: CoverageKind = kind) -> bool:
            return tried.seen[shape].get(part) is kind

        def whole(part: Part = part) -> list[Shape]:
            return tried.whole(part)

        lost = [shape for shape in tried.results if has(shape)]
        for cause, shape in islice(tried.explained(lost, has, whole), MOST):
            yield CoverageFinding(kind, part[0], conversation=name_of(shape), shape=cause)


UNSEEN = frozenset({"Cf", "Cc", "Co"})  # Unicode's formats, controls and private characters
SPACES = "\n\r\t"


def check_frame(question: str, prompt: str, history: str, ends: Collection[str]) -> Iterator[CoverageFinding]:
    """Yield what a prompt has that no model is trained with.

    ``question``  the one text of the request. ``history``  the same template's text before an earlier answer.
    ``ends``      tokens at which generation ends.
    """
    own = prompt.replace(question, "")
    unseen = sorted({c for c in own if unicodedata.category(c) in UNSEEN and c not in SPACES})
    if unseen:
        words = ", ".join(f"U+{ord(character):04X}" for character in unseen)
        yield CoverageFinding(CoverageKind.UNSEEN, conversation="bare", words=words)
    # A token that begins the answer in the history, too, is a header: some files name it among the ends.
    closed = [end for end in ends if prompt.rstrip().endswith(end) and not history.rstrip().endswith(end)]
    if closed:
        yield CoverageFinding(CoverageKind.CLOSED, conversation="bare", words=max(closed, key=len))
