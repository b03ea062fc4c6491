"""How a template thinks: markers, the switch, the default, learned by rendering with and without."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from importer.chat_template import cases
from importer.chat_template.cases import ANSWER, ASK, ASK_AGAIN, ONE, REASONING, CaseStyle, Turn
from importer.chat_template.markers import SHAPE, THINK, first_marker, last_marker, mirror
from importer.chat_template.probe import Piece, ProbeRequest, TemplateProbe
from importer.chat_template.render import Rendered
from importer.chat_template.samples import Sample, SampleCall, Thinking

VARIABLE = re.compile(r"think|reason|effort", re.IGNORECASE)
NAMES = ("enable_thinking", "thinking", "think", "enable_reasoning", "reasoning", "reasoning_effort")
OFF_WORDS = {"none", "off", "no", "false", "disabled", "no_think", "nothink", "no-think", "chat", "never"}
MAX_VARIABLES = 12
MAX_OTHERS = 24
MAX_MARKERS = 50  # different ones that are looked for in one prompt
OWN = {"messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"}
PART = re.compile(r"""["']thinking["']\s*:""")  # the part itself was printed, not what it says
FIELDS: tuple[Mapping[str, str], ...] = tuple(
    {"reasoning": f} for f in ("reasoning_content", "thinking", "tool_plan", "parts")
)
# Phrases in which a system prompt asks for reasoning between words rather than markers.
PHRASES = (("Here is my thought process:", "Here is my response:"),)


@dataclass(frozen=True, slots=True)
class ReasoningBlock:
    """The text around reasoning as rendered, and how it was learned."""

    opening: str
    closing: str
    source: Any
    style: CaseStyle | None = None


def is_open(tail: str, markers: tuple[str, str] | None) -> bool:
    """Return whether a prompt ends inside the block."""
    if markers is None:
        return False
    opening, closing = markers
    at = tail.rfind(opening)
    return at >= 0 and closing not in tail[at + len(opening) :]


def is_closed(tail: str, markers: tuple[str, str] | None) -> bool:
    """Return whether a prompt ends behind a block, so that the answer comes without one."""
    if markers is None or markers[1] not in tail or is_open(tail, markers):
        return False
    # A closing marker alone counts only if it can close nothing else: <|end|> ends the question too.
    return markers[0] in tail or THINK.fullmatch(markers[1]) is not None


def study_thinking(bench: TemplateProbe) -> Thinking:
    """Return everything that differential rendering shows of thinking."""
    settings = [{}, *_settings(bench)]
    prompts = _prompts(bench, settings)
    default = prompts[0]
    if default is None:
        return Thinking()
    block = (
        _rendered(bench, settings) or _prompted(bench, prompts) or _stripped(bench) or _instructed(prompts)
    )
    markers = _markers(block) if block else None
    if block and block.style:
        bench.style = block.style
    tails = [None if p is None else bench.tail(p) for p in prompts]
    switch, on, off = _switch(settings, prompts, tails, markers)
    opened = is_open(tails[0] or "", markers)
    empty = is_closed(tails[0] or "", markers)
    if block is None:
        return Thinking(switch=switch, on=on, off=off)
    return Thinking(
        markers=markers,
        opened=opened,
        switch=switch,
        default=_default(settings, prompts, on, off, opened=opened, empty=empty),
        keeps_history=_keeps(bench),
        source=block.source,
        block=(block.opening, block.closing),
        on=on,
        off=off,
        empty_block=empty,
    )


def _settings(bench: TemplateProbe) -> Iterator[dict[str, Any]]:
    """Yield each variable that speaks of thinking, with the values it may take."""
    bench.render([bench.job((ASK,), ProbeRequest((ASK,), ASK, bench.no_tools), generate=True)])
    names = sorted((n for n in bench.variables if VARIABLE.search(n)), key=_rank)[:MAX_VARIABLES]
    for name in (*names, *_others(bench, names)):
        words = [v for v in bench.variables[name] if not isinstance(v, bool)]
        for value in words[:6] or (True, False):
            yield {name: value}


def _others(bench: TemplateProbe, names: Sequence[str]) -> list[str]:
    """Variables of any other name that change how the generation prompt ends."""
    free = [n for n in bench.variables if n not in names and n not in OWN][:MAX_OTHERS]
    default, *prompts = _prompts(bench, [{}, *({n: True} for n in free)])
    if default is None:
        return []
    tail = bench.tail(default)
    return [n for n, p in zip(free, prompts, strict=True) if p is not None and bench.tail(p) != tail]


def _rank(name: str) -> tuple[int, str]:
    return (NAMES.index(name) if name in NAMES else len(NAMES), name)


def _prompts(bench: TemplateProbe, settings: Sequence[Mapping[str, Any]]) -> list[str | None]:
    jobs = [bench.job((ASK,), ProbeRequest((ASK,), ASK, bench.no_tools, s), generate=True) for s in settings]
    return [r.text if isinstance(r, Rendered) else None for r in bench.render(jobs)]


def _rendered(bench: TemplateProbe, settings: Sequence[Mapping[str, Any]]) -> ReasoningBlock | None:
    """Return the block around a message's own reasoning, in an answer or beside a call."""
    turns = (
        (Turn("assistant", ANSWER, reasoning=REASONING), bench.no_tools),
        (Turn("assistant", calls=(ONE,), reasoning=REASONING), cases.TOOLS),
    )
    for setting in settings:
        asks = [
            ProbeRequest((ASK,), turn, tools, setting, bench.with_style(**field))
            for field in FIELDS
            for turn, tools in turns
        ]
        for ask, piece in zip(asks, bench.cut(asks), strict=True):
            if (
                isinstance(piece, Piece)
                and REASONING in piece.completion
                and not PART.search(piece.completion)
            ):
                block = _around(bench, piece, spoken=not ask.turn.calls)
                if block is not None:
                    return ReasoningBlock(*block, "rendered", ask.style)
    return None


def _around(bench: TemplateProbe, piece: Piece, *, spoken: bool) -> tuple[str, str] | None:
    """Return the text before and behind the reasoning; behind it up to the answer, else the first marker."""
    before, _, behind = piece.completion.partition(REASONING)
    if not SHAPE.search(before):
        before = last_marker(bench.tail(piece.header) + before)
    if spoken and ANSWER in behind:
        closing = behind[: behind.index(ANSWER)]
    else:
        found = SHAPE.search(behind)
        closing = behind[: found.end()] if found else ""
    return (before, closing) if before.strip() and closing.strip() else None


def _prompted(bench: TemplateProbe, prompts: Sequence[str | None]) -> ReasoningBlock | None:
    """Return markers that the generation prompt itself writes."""
    for prompt in prompts:
        found = THINK.findall(bench.tail(prompt)) if prompt is not None else []
        if found:
            closes = "/" in found[-1][:2] or "end" in found[-1].lower()
            opening, closing = (mirror(found[-1]), found[-1]) if closes else (found[-1], mirror(found[-1]))
            return ReasoningBlock(f"{opening}\n", f"\n{closing}\n\n", "prompt")
    return None


def _stripped(bench: TemplateProbe) -> ReasoningBlock | None:
    """Return markers that the template knows in order to cut a block out of an answer's content."""
    text = bench.template.plain or bench.template.text
    closings = dict.fromkeys(m for m in THINK.findall(text) if "/" in m[:2] or "end" in m.lower())
    pairs = [(mirror(c), c) for c in closings][:4]
    ask = ProbeRequest((ASK,), ASK, bench.no_tools)
    jobs = [
        bench.job(
            (ASK, Turn("assistant", f"{o}\n{REASONING}\n{c}\n\n{ANSWER}"), ASK_AGAIN), ask, generate=True
        )
        for o, c in pairs
    ]
    for (opening, closing), result in zip(pairs, bench.render(jobs), strict=True):
        if isinstance(result, Rendered) and ANSWER in result.text and REASONING not in result.text:
            return ReasoningBlock(f"{opening}\n", f"\n{closing}\n\n", "stripped")
    return None


def _instructed(prompts: Sequence[str | None]) -> ReasoningBlock | None:
    """Return markers or phrases that only appear in the prompt once a switch is thrown."""
    default, *others = prompts
    for text in dict.fromkeys(p for p in (*others, default) if p is not None):
        for opening, closing in PHRASES:
            if opening in text and closing in text:
                return ReasoningBlock(f"{opening} ", f" {closing} ", "instructed")
        told = dict.fromkeys(m for m in THINK.findall(text) if "/" in m[:2])
        closings = [m for m in islice(told, MAX_MARKERS) if mirror(m) in text]
        if closings:
            return ReasoningBlock(f"{mirror(closings[0])}\n", f"\n{closings[0]}\n\n", "instructed")
    return None


def _markers(block: ReasoningBlock) -> tuple[str, str]:
    """Return the block's opening as written and its first closing marker, without white space around."""
    return block.opening.strip(), first_marker(block.closing) or block.closing.strip()


def _switch(
    settings: Sequence[Mapping[str, Any]],
    prompts: Sequence[str | None],
    tails: Sequence[str | None],
    markers: tuple[str, str] | None,
) -> tuple[str | None, Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """Return the first variable with a setting for on and one for off whose prompts differ.

    Leaving it alone is a setting too, so a variable whose every value turns thinking off will do.
    """
    rows = [
        (s, p, t) for s, p, t in zip(settings, prompts, tails, strict=True) if p is not None and t is not None
    ]
    for name in dict.fromkeys(n for s in settings for n in s):
        mine = [r for r in rows if name in r[0]] + [r for r in rows if not r[0]]
        closed = [r for r in mine if is_closed(r[2], markers)]
        meant = [r for r in mine if r[0] and VARIABLE.search(name) and _means_off(r[0][name])]
        offs = closed or [r for r in meant if not is_open(r[2], markers)]
        ons = [r for r in mine if is_open(r[2], markers)] or [r for r in mine if r not in offs]
        ons.sort(key=lambda r: _is_amount(r[0].get(name)))
        for off in offs:
            for on in ons:
                if on[1] != off[1]:
                    return name, on[0], off[0]
    return None, None, None


def _is_amount(value: Any) -> bool:
    """Return a budget's figure, which says less than a word or nothing."""
    return isinstance(value, int) and not isinstance(value, bool)


def _means_off(value: Any) -> bool:
    return value is False or (isinstance(value, str) and value.lower() in OFF_WORDS)


def _default(
    settings: Sequence[Mapping[str, Any]],
    prompts: Sequence[str | None],
    on: Mapping[str, Any] | None,
    off: Mapping[str, Any] | None,
    *,
    opened: bool,
    empty: bool,
) -> bool | None:
    """Return whether it thinks when nothing is said."""
    written = {str(s): p for s, p in zip(settings, prompts, strict=True)}
    if opened or (on is not None and written[str(on)] == prompts[0]):
        return True
    if empty or (off is not None and written[str(off)] == prompts[0]):
        return False
    return None


def _keeps(bench: TemplateProbe) -> bool:
    """Return whether a past turn's reasoning is still there at the next question."""
    ask = ProbeRequest((ASK,), ASK, bench.no_tools)
    turns = (ASK, Turn("assistant", ANSWER, reasoning=REASONING), ASK_AGAIN)
    result = bench.render([bench.job(turns, ask, generate=True)])[0]
    return isinstance(result, Rendered) and REASONING in result.text


class ReasoningFormat:
    """How the model speaks under given template variables."""

    def __init__(self, bench: TemplateProbe, thinking: Thinking, kwargs: Mapping[str, Any] | None) -> None:
        self.bench = bench
        self.thinking = thinking
        self.kwargs: Mapping[str, Any] = kwargs or {}
        said = bench.cut([ProbeRequest((ASK,), Turn("assistant", ANSWER), bench.no_tools, self.kwargs)])[0]
        self.unseen = said.residue.strip() if isinstance(said, Piece) else ""

    def sample(
        self,
        case: str,
        piece: Piece,
        *,
        calls: tuple[SampleCall, ...] = (),
        content: str | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        text_arguments: bool = False,
    ) -> Sample:
        """Return a sample whose completion fits its prompt: reasoning first where the prompt opens a
        block.
        """
        body = self.bare(piece.completion)
        tail = self.bench.tail(piece.prompt)
        lead, prompt = "", piece.prompt
        if is_open(tail, self.thinking.markers):
            lead = REASONING + self.closing
            body = body.lstrip("\n")
        elif self.unseen and piece.residue.strip() and not is_closed(tail, self.thinking.markers):
            prompt = piece.header  # a block of another kind is opened, which no turn of history shows
        return Sample(
            case=case,
            prompt=prompt,
            completion=lead + body,
            calls=calls,
            content=content,
            reasoning=REASONING if lead else "",
            tools=tuple(tools),
            kwargs=self.kwargs,
            text_arguments=text_arguments,
            lead=len(lead),
        )

    @property
    def simple(self) -> bool:
        """Return whether a block may stand before anything: its closing holds no header of another
        channel.
        """
        return len(SHAPE.findall(self.thinking.block[1])) <= 1

    @property
    def closing(self) -> str:
        """Return what closes the block, with the white space around; the marker alone before another
        channel.
        """
        if self.simple or self.thinking.markers is None:
            return self.thinking.block[1]
        return self.thinking.markers[1]

    def bare(self, completion: str) -> str:
        """Return the completion without a block that holds no reasoning."""
        if self.thinking.markers is None:
            return completion
        opening, closing = map(re.escape, self.thinking.markers)
        return re.sub(rf"^\s*+(?:{opening}\s*+)?{closing}\s*", "", completion, count=1)
