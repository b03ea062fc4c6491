"""Reasoning in a template: markers, switch and default, from renderings with and without reasoning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from importer.chat_template import cases
from importer.chat_template.cases import ANSWER, ASK, ASK_AGAIN, ONE, REASONING, CaseStyle, Turn
from importer.chat_template.markers import SHAPE, THINK, first_marker, last_marker, mirror
from importer.chat_template.probe import Piece, ProbeRequest, TemplateProbe
from importer.chat_template.render import Rendered
from importer.chat_template.samples import Sample, SampleCall, Thinking, Tool
from importer.frozen import frozen

VARIABLE = re.compile(r"think|reason|effort", re.IGNORECASE)
NAMES = ("enable_thinking", "thinking", "think", "enable_reasoning", "reasoning", "reasoning_effort")
OFF_WORDS = {"none", "off", "no", "false", "disabled", "no_think", "nothink", "no-think", "chat", "never"}
MAX_VARIABLES = 12
MAX_OTHERS = 24
MAX_SETTINGS = 4  # values of switches that are tried in a document
MAX_MARKERS = 50  # different markers that are searched in one prompt
OWN = {"messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"}
PART = re.compile(r"""["']thinking["']\s*:""")  # the part itself is printed, not its text
FIELDS: tuple[Mapping[str, str], ...] = tuple(
    {"reasoning": f} for f in ("reasoning_content", "thinking", "tool_plan", "parts")
)
# Phrases of a system prompt that requests reasoning between words rather than markers.
PHRASES = (("Here is my thought process:", "Here is my response:"),)


@frozen
class ReasoningBlock:
    """The rendered text around reasoning, its source (see ``Thinking``) and the style of messages."""

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
    """Return whether a prompt ends behind a block, so the answer has none."""
    if markers is None or markers[1] not in tail or is_open(tail, markers):
        return False
    # A closing marker alone counts only if it can close nothing else: <|end|> ends the question too.
    return markers[0] in tail or THINK.fullmatch(markers[1]) is not None


def analyze_thinking(probe: TemplateProbe) -> Thinking:
    """Return the reasoning of a template, from differential rendering."""
    settings = [{}, *_settings(probe)]
    prompts = _prompts(probe, settings)
    default = prompts[0]
    if default is None:
        return Thinking()
    block = (
        _rendered(probe, settings) or _prompted(probe, prompts) or _stripped(probe) or _instructed(prompts)
    )
    markers = None
    if block:  # the opening and the first closing marker, without white space around
        markers = block.opening.strip(), first_marker(block.closing) or block.closing.strip()
    if block and block.style:
        probe.style = block.style
    tails = [None if p is None else probe.tail(p) for p in prompts]
    switch, on, off = _switch(settings, prompts, tails, markers)
    opened = is_open(tails[0] or "", markers)
    empty = is_closed(tails[0] or "", markers)
    if block is None:
        return Thinking(switch=switch, on=on, off=off)
    by_default = _default(settings, prompts, on, off, opened=opened, empty=empty)
    return Thinking(
        markers=markers,
        opened=opened,
        switch=switch,
        default=by_default,
        source=block.source,
        block=(block.opening, block.closing),
        on=on,
        off=off,
        settings=_sayable(settings, prompts, switch, by_default),
    )


def _sayable(
    settings: Sequence[Mapping[str, object]],
    prompts: Sequence[str | None],
    switch: str | None,
    by_default: bool | None,
) -> tuple[Mapping[str, object], ...]:
    """Return the settings that keep the default's prompt; of an unknown default every value of the switch."""
    rows = [(*next(iter(s.items())), p) for s, p in zip(settings[1:], prompts[1:], strict=True)]
    moving = {name for name, _, prompt in rows if prompt not in (None, prompts[0])}
    rows = sorted((r for r in rows if r[0] in moving), key=lambda row: row[0] != switch)
    keeping = [{name: value} for name, value, prompt in rows if prompt == prompts[0]]
    others = [{name: value} for name, value, prompt in rows if name == switch and prompt != prompts[0]]
    return tuple([*keeping, *(others if by_default is None else ())][:MAX_SETTINGS])


def _settings(probe: TemplateProbe) -> Iterator[dict[str, object]]:
    """Yield settings of each variable for reasoning, one for each of its values."""
    probe.render([probe.job((ASK,), ProbeRequest((ASK,), ASK, probe.no_tools), generate=True)])
    names = sorted((n for n in probe.variables if VARIABLE.search(n)), key=_rank)[:MAX_VARIABLES]
    for name in (*names, *_others(probe, names)):
        words = [v for v in probe.variables[name] if not isinstance(v, bool)]
        for value in words[:6] or (True, False):
            yield {name: value}


def _others(probe: TemplateProbe, names: Sequence[str]) -> list[str]:
    """Return variables with any other name that change the end of the generation prompt."""
    free = [n for n in probe.variables if n not in names and n not in OWN][:MAX_OTHERS]
    default, *prompts = _prompts(probe, [{}, *({n: True} for n in free)])
    if default is None:
        return []
    tail = probe.tail(default)
    return [n for n, p in zip(free, prompts, strict=True) if p is not None and probe.tail(p) != tail]


def _rank(name: str) -> tuple[int, str]:
    return (NAMES.index(name) if name in NAMES else len(NAMES), name)


def _prompts(probe: TemplateProbe, settings: Sequence[Mapping[str, object]]) -> list[str | None]:
    jobs = [probe.job((ASK,), ProbeRequest((ASK,), ASK, probe.no_tools, s), generate=True) for s in settings]
    return [r.text if isinstance(r, Rendered) else None for r in probe.render(jobs)]


def _rendered(probe: TemplateProbe, settings: Sequence[Mapping[str, object]]) -> ReasoningBlock | None:
    """Return the block around a message's own reasoning, in an answer or beside a call."""
    turns = (
        (Turn("assistant", ANSWER, reasoning=REASONING), probe.no_tools),
        (Turn("assistant", calls=(ONE,), reasoning=REASONING), cases.TOOLS),
    )
    for setting in settings:
        asks = [
            ProbeRequest((ASK,), turn, tools, setting, probe.with_style(**field))
            for field in FIELDS
            for turn, tools in turns
        ]
        for ask, piece in zip(asks, probe.cut(asks), strict=True):
            if (
                isinstance(piece, Piece)
                and REASONING in piece.completion
                and not PART.search(piece.completion)
            ):
                block = _around(probe, piece, spoken=not ask.turn.calls)
                if block is not None:
                    return ReasoningBlock(*block, "rendered", ask.style)
    return None


def _around(probe: TemplateProbe, piece: Piece, *, spoken: bool) -> tuple[str, str] | None:
    """Return the text before the reasoning, and behind it up to the answer, else to the first marker."""
    before, _, behind = piece.completion.partition(REASONING)
    if not SHAPE.search(before):
        before = last_marker(probe.tail(piece.header) + before)
    if spoken and ANSWER in behind:
        closing = behind[: behind.index(ANSWER)]
    else:
        marker = SHAPE.search(behind)
        closing = behind[: marker.end()] if marker else ""
    return (before, closing) if before.strip() and closing.strip() else None


def _prompted(probe: TemplateProbe, prompts: Sequence[str | None]) -> ReasoningBlock | None:
    """Return the block with markers that the generation prompt writes."""
    for prompt in prompts:
        markers = THINK.findall(probe.tail(prompt)) if prompt is not None else []
        if markers:
            closes = "/" in markers[-1][:2] or "end" in markers[-1].lower()
            opening, closing = (
                (mirror(markers[-1]), markers[-1]) if closes else (markers[-1], mirror(markers[-1]))
            )
            return ReasoningBlock(f"{opening}\n", f"\n{closing}\n\n", "prompt")
    return None


def _stripped(probe: TemplateProbe) -> ReasoningBlock | None:
    """Return the block with markers that the template removes from an answer's content."""
    text = probe.template.plain or probe.template.text
    closings = dict.fromkeys(m for m in THINK.findall(text) if "/" in m[:2] or "end" in m.lower())
    pairs = [(mirror(c), c) for c in closings][:4]
    ask = ProbeRequest((ASK,), ASK, probe.no_tools)
    jobs = [
        probe.job(
            (ASK, Turn("assistant", f"{o}\n{REASONING}\n{c}\n\n{ANSWER}"), ASK_AGAIN), ask, generate=True
        )
        for o, c in pairs
    ]
    for (opening, closing), result in zip(pairs, probe.render(jobs), strict=True):
        if isinstance(result, Rendered) and ANSWER in result.text and REASONING not in result.text:
            return ReasoningBlock(f"{opening}\n", f"\n{closing}\n\n", "stripped")
    return None


def _instructed(prompts: Sequence[str | None]) -> ReasoningBlock | None:
    """Return the block with markers or phrases in a prompt's instructions, prompts of switches first."""
    default, *others = prompts
    for text in dict.fromkeys(p for p in (*others, default) if p is not None):
        for opening, closing in PHRASES:
            if opening in text and closing in text:
                return ReasoningBlock(f"{opening} ", f" {closing} ", "instructed")
        markers = dict.fromkeys(m for m in THINK.findall(text) if "/" in m[:2])
        closings = [m for m in islice(markers, MAX_MARKERS) if mirror(m) in text]
        if closings:
            return ReasoningBlock(f"{mirror(closings[0])}\n", f"\n{closings[0]}\n\n", "instructed")
    return None


def _switch(
    settings: Sequence[Mapping[str, object]],
    prompts: Sequence[str | None],
    tails: Sequence[str | None],
    markers: tuple[str, str] | None,
) -> tuple[str | None, Mapping[str, object] | None, Mapping[str, object] | None]:
    """Return the first variable with settings for on and off that give different prompts.

    No value is a setting too, so a variable with values for off only is accepted.
    """
    rows = [
        (s, p, t) for s, p, t in zip(settings, prompts, tails, strict=True) if p is not None and t is not None
    ]
    for name in dict.fromkeys(n for s in settings for n in s):
        mine = [r for r in rows if name in r[0]] + [r for r in rows if not r[0]]
        closed = [r for r in mine if is_closed(r[2], markers)]
        named_off = [
            r for r in mine if r[0] and VARIABLE.search(name) and str(r[0][name]).lower() in OFF_WORDS
        ]
        offs = closed or [r for r in named_off if not is_open(r[2], markers)]
        ons = [r for r in mine if is_open(r[2], markers)] or [r for r in mine if r not in offs]
        ons.sort(key=lambda r: type(r[0].get(name)) is int)  # figures of a budget behind words and no value
        for off in offs:
            for on in ons:
                if on[1] != off[1]:
                    return name, on[0], off[0]
    return None, None, None


def _default(
    settings: Sequence[Mapping[str, object]],
    prompts: Sequence[str | None],
    on: Mapping[str, object] | None,
    off: Mapping[str, object] | None,
    *,
    opened: bool,
    empty: bool,
) -> bool | None:
    """Return whether the template thinks without a setting; ``None`` where it is unknown."""
    written = {str(s): p for s, p in zip(settings, prompts, strict=True)}
    if opened or (on is not None and written[str(on)] == prompts[0]):
        return True
    if empty or (off is not None and written[str(off)] == prompts[0]):
        return False
    return None


class ReasoningFormat:
    """The form of reasoning with given template variables; makes samples in this form."""

    def __init__(self, probe: TemplateProbe, thinking: Thinking, kwargs: Mapping[str, object] | None) -> None:
        self.probe = probe
        self.thinking = thinking
        self.kwargs: Mapping[str, object] = kwargs or {}
        piece = probe.cut([ProbeRequest((ASK,), Turn("assistant", ANSWER), probe.no_tools, self.kwargs)])[0]
        self.unseen = piece.residue.strip() if isinstance(piece, Piece) else ""

    def sample(
        self,
        case: str,
        piece: Piece,
        *,
        calls: tuple[SampleCall, ...] = (),
        content: str | None = None,
        tools: Sequence[Tool] = (),
        text_arguments: bool = False,
    ) -> Sample:
        """Return a sample with a completion that fits its prompt: reasoning first where it opens a block."""
        body = self.bare(piece.completion)
        tail = self.probe.tail(piece.prompt)
        lead, prompt = "", piece.prompt
        if is_open(tail, self.thinking.markers):
            lead = REASONING + self.closing
            body = body.lstrip("\n")
        elif self.unseen and piece.residue.strip() and not is_closed(tail, self.thinking.markers):
            prompt = piece.header  # the prompt opens a block of a kind that history never shows
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
        """Return whether a block may stand before any text: its closing holds no header of a channel."""
        return len(SHAPE.findall(self.thinking.block[1])) <= 1

    @property
    def closing(self) -> str:
        """Return the closing with the white space around; the marker alone before another channel."""
        if self.simple or self.thinking.markers is None:
            return self.thinking.block[1]
        return self.thinking.markers[1]

    def bare(self, completion: str) -> str:
        """Return the completion without an empty reasoning block at its start."""
        if self.thinking.markers is None:
            return completion
        opening, closing = map(re.escape, self.thinking.markers)
        return re.sub(rf"^\s*+(?:{opening}\s*+)?{closing}\s*", "", completion, count=1)
