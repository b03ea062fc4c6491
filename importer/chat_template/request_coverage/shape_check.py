"""Check conversations of many shapes: what arrives in one and not in another is lost by the template.

No list of what a template must show is needed. A part that arrives in no shape, and a shape that the template
refuses by an exception of its own, are the template's choice. Each loss has the traits that explain it: the
fewest of the simplest shape with the loss that stand together in no shape without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, combinations, islice

from importer.chat_template.probe import TemplateProbe
from importer.chat_template.render import RefusalReason, Rendered, RenderJob, RenderRefused, Result
from importer.chat_template.request_coverage.compare import compare, judge
from importer.chat_template.request_coverage.covering import shapes
from importer.chat_template.request_coverage.findings import WayInField, WayInFinding, WayInKind
from importer.chat_template.request_coverage.roles import distinct
from importer.chat_template.request_coverage.shaped import conversation, name_of
from importer.chat_template.request_coverage.traits import LONG, Shape, Trait, fits, special, without

MOST = 3  # findings of one kind and field, each with other traits
TOGETHER = 3  # traits that explain a loss together
KINDS = (WayInKind.LOST, WayInKind.CASED, WayInKind.OUT_OF_ORDER)
# What a template may drop once it is old enough: each distance from the end is a part of its own.
AGEING = (WayInField.REASONING, WayInField.WORDS_BESIDE_CALL)
# A field with the number of its part: the role, or the distance from the end.
Part = tuple[WayInField, str]
Seen = Mapping[Part, WayInKind | None]
Has = Callable[[Shape], bool]


@dataclass(frozen=True, slots=True)
class ShapesChecked:
    """The findings, and the number of nonces that were looked for."""

    findings: tuple[WayInFinding, ...]
    checked: int


NONE = ShapesChecked((), 0)


@cache
def asked(*, thinks: bool) -> tuple[Shape, ...]:
    """Return the shapes to render, the short ones first; ``thinks`` keeps those with reasoning."""
    found = shapes() if thinks else tuple(without(shape, Trait.REASONING) for shape in shapes())
    return tuple(sorted(dict.fromkeys(found), key=lambda shape: any(trait in shape for trait in LONG)))


conversation_of = cache(conversation)


def check(probe: TemplateProbe, *, thinks: bool) -> ShapesChecked:
    """Return what some shapes lose and others do not, with the form of messages that the probe has found."""
    tried = _Tried(probe)
    tried.render(asked(thinks=thinks))
    tried.render(_unmasked(tried))
    tried.render_by_the_other()
    findings = (*_broken(tried), *_lost(tried))
    checked = sum(len(conversation_of(shape).marks) for shape in tried.rendered())
    return ShapesChecked(findings, checked)


@dataclass(frozen=True, slots=True)
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
        seen = [self._served(s) for s, seen in self.seen.items() if seen.get(part, WayInKind.LOST) is None]
        return [*seen, *(s for s, seen in self.others.items() if seen.get(part, WayInKind.LOST) is None)]

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
    worst: dict[Part, WayInKind | None] = {}
    for mark in one.marks:
        kind = kinds.get((mark.field, (mark.number,)))
        if kind is None and judge(mark, result.text) in KINDS:
            continue  # lost with what holds it
        part = mark.field, str(mark.number) if mark.field in AGEING else ""
        worst[part] = worst.get(part) or kind
    for role, own in distinct(one, result.text).items():
        worst[WayInField.ROLE, role] = None if own else WayInKind.LOST
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


def _broken(tried: _Tried) -> Iterator[WayInFinding]:
    """Yield shapes that the template refuses, where it renders others: by accident, or deliberately."""
    for kind, broke in ((WayInKind.FAILS, True), (WayInKind.REFUSED, False)):

        def has(shape: Shape, broke: bool = broke) -> bool:
            return _by_accident(tried.results[shape]) is broke

        lost = [shape for shape in tried.results if has(shape)]
        for cause, shape in islice(tried.explained(lost, has, tried.served), MOST):
            result = tried.results[shape]
            words = result.words if isinstance(result, RenderRefused) else ""
            yield WayInFinding(kind, conversation=name_of(shape), words=words, shape=cause)


def _by_accident(result: Result) -> bool | None:
    """Return whether the template broke, as by a recursion too deep; ``None`` if it did not refuse."""
    if not isinstance(result, RenderRefused) or result.reason.kind is not RefusalReason.RAISED:
        return None
    return result.broke or result.kind == "limit"


def _lost(tried: _Tried) -> Iterator[WayInFinding]:
    found = ((part, kind) for seen in tried.seen.values() for part, kind in seen.items())
    for part, kind in [*dict.fromkeys((part, kind) for part, kind in found if kind is not None)]:

        def has(shape: Shape, part: Part = part, kind: WayInKind = kind) -> bool:
            return tried.seen[shape].get(part) is kind

        def whole(part: Part = part) -> list[Shape]:
            return tried.whole(part)

        lost = [shape for shape in tried.results if has(shape)]
        for cause, shape in islice(tried.explained(lost, has, whole), MOST):
            yield WayInFinding(kind, part[0], conversation=name_of(shape), shape=cause)
