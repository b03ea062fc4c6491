"""What a template writes for tool calls: one sample per case, and the form messages need for it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from importer.chat_template import cases
from importer.chat_template.cases import (
    AGAIN,
    ANSWER,
    ASK,
    CALLS,
    NARRATION,
    ONE,
    OTHER,
    RESULT,
    TOOLS,
    CaseStyle,
    Turn,
)
from importer.chat_template.markers import SHAPE, common_prefix
from importer.chat_template.probe import Piece, ProbeRequest, TemplateProbe
from importer.chat_template.reasoning import ReasoningFormat
from importer.chat_template.render import Rendered, RenderRefused
from importer.chat_template.samples import Sample, SampleCall, TemplateProblem, Thinking
from importer.reasons import Reason

DUMP = re.compile(r"""["']tool_calls["']\s*:""")


@dataclass(frozen=True, slots=True)
class Called:
    """Samples of tool calls, the cases that yielded none, and what shows of tools at all."""

    samples: tuple[Sample, ...] = ()
    problems: Mapping[str, Reason] = field(default_factory=dict)
    tools_rendered: bool = False
    calls_rendered: bool = False
    tools_prompt: str = ""


def find_form(bench: TemplateProbe) -> dict[str, Any]:
    """Choose the form of messages in which the template prints a call, and keep it on the bench."""
    bench.style = _form_of_calls(bench) or _form_of_words(bench)
    bench.learn_no_tools()
    bench.learn_end()
    style = bench.style
    return {"arguments": style.arguments, "ids": style.ids, "empty": style.empty, "parts": style.parts}


def _form_of_calls(bench: TemplateProbe) -> CaseStyle | None:
    for styles in (cases.STYLES[:1], cases.STYLES[1:]):  # the first will do for most
        asks = [ProbeRequest((ASK,), Turn("assistant", calls=(ONE,)), TOOLS, style=s) for s in styles]
        for style, piece in zip(styles, bench.cut(asks), strict=True):
            if isinstance(piece, Piece) and _prints(piece.completion, ONE):
                return style
    return None


def _form_of_words(bench: TemplateProbe) -> CaseStyle:
    """Return where no call is printed: the form in which at least an answer is."""
    asks = [ProbeRequest((ASK,), Turn("assistant", ANSWER), style=s) for s in cases.STYLES]
    for style, piece in zip(cases.STYLES, bench.cut(asks), strict=True):
        if isinstance(piece, Piece) and ANSWER in piece.completion and "'text'" not in piece.completion:
            return style
    return CaseStyle()


def _prints(written: str, call: SampleCall) -> bool:
    """Return whether name and values stand there, and not as Python would print a dictionary."""
    escaped = json.dumps(json.dumps(dict(call.arguments)))[1:-1]
    if DUMP.search(written):
        return False
    if str(dict(call.arguments)) in written or (call.arguments and escaped in written):
        return False
    return call.name in written and all(_holds(written, v) for v in call.arguments.values())


def _holds(written: str, value: Any) -> bool:
    """Return whether a value's leaves stand in the text, raw or as JSON spells them."""
    if isinstance(value, Mapping):
        return all(k in written and _holds(written, v) for k, v in value.items())
    if isinstance(value, list):
        return all(_holds(written, v) for v in value)
    if isinstance(value, str):
        spelled = (
            value,
            json.dumps(value)[1:-1],
            json.dumps(value, ensure_ascii=False)[1:-1],
            repr(value)[1:-1],
        )
        return any(s in written for s in spelled)
    return any(s in written for s in (json.dumps(value), str(value)))


def study_calls(bench: TemplateProbe, thinking: Thinking) -> Called:
    """Samples for every case in which calls are made or tools are on offer."""
    voice = ReasoningFormat(bench, thinking, None if thinking.default is False else thinking.off)
    pieces = bench.cut([a for _, a in _asks(voice.kwargs)])
    samples: dict[str, Sample] = {}
    problems: dict[str, Reason] = {}
    text_arguments = _prints_text(bench, voice)
    for (case, ask), piece in zip(_asks(voice.kwargs), pieces, strict=True):
        reason = _unfit(piece, ask.turn, text_arguments=text_arguments)
        if reason is not None:
            problems[case] = reason
            continue
        assert isinstance(piece, Piece)  # noqa: S101 - _unfit has looked
        sample = voice.sample(
            case,
            piece,
            calls=ask.turn.calls,
            content=ask.turn.text,
            tools=ask.tools or (),
            text_arguments=text_arguments,
        )
        samples[case] = _as_reasoning(sample, thinking) if case.startswith("narrated") else sample
    samples |= {s.case: s for s in _derived(samples)}
    prompt = _tools_prompt(bench)
    offered = all(t["function"]["name"] in prompt for t in TOOLS)
    return Called(tuple(samples.values()), problems, offered, "one-call" in samples, prompt)


def _asks(kwargs: Mapping[str, Any]) -> list[tuple[str, ProbeRequest]]:
    asked = (ASK,)
    result = (ASK, Turn("assistant", calls=(ONE,)), Turn("tool", RESULT))
    turns: list[tuple[str, tuple[Turn, ...], Turn]] = [
        (name, asked, Turn("assistant", calls=c)) for name, c in CALLS.items()
    ]
    turns += [
        ("narrated", asked, Turn("assistant", NARRATION, (ONE,))),
        ("narrated-parallel", asked, Turn("assistant", NARRATION, (ONE, OTHER))),
        ("call-after-result", result, Turn("assistant", calls=(AGAIN,))),
        ("answer-after-result", result, Turn("assistant", ANSWER)),
        ("no-call", asked, Turn("assistant", ANSWER)),
    ]
    return [
        (name, ProbeRequest(before, turn, cases.tools_for(turn.calls), kwargs))
        for name, before, turn in turns
    ]


def _unfit(piece: Piece | RenderRefused, turn: Turn, *, text_arguments: bool) -> Reason | None:
    """Return why a piece shows nothing; ``None`` when it does."""
    if isinstance(piece, RenderRefused):
        return Reason(TemplateProblem.REFUSED, words=piece.reason)
    if turn.text and turn.text not in piece.completion:
        return Reason(TemplateProblem.TEXT_DROPPED if turn.calls else TemplateProblem.ANSWER_ABSENT)
    if DUMP.search(piece.completion):
        return Reason(TemplateProblem.MESSAGE_PRINTED)
    missing = [c.name for c in turn.calls if c.name not in piece.completion]
    if missing:
        return Reason(TemplateProblem.CALL_ABSENT)
    if not all(_holds(piece.completion, c.arguments) for c in turn.calls):
        return Reason(TemplateProblem.ARGUMENTS_ABSENT)
    values = [v for c in turn.calls for v in c.arguments.values()]
    if any(_garbled(piece.completion, v, text_arguments=text_arguments) for v in values):
        return Reason(TemplateProblem.ARGUMENTS_GARBLED)
    return None


def _garbled(written: str, value: Any, *, text_arguments: bool) -> bool:
    """Return whether a value stands in quotes without its escapes, or as Python prints it where text is
    read.
    """
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) != f'"{value}"' and f'"{value}' in written
    if not isinstance(value, (Mapping, list, type(None))) or json.dumps(value) in written:
        return False
    return f'"{value}"' in written or (text_arguments and str(value) in written)


def _as_reasoning(sample: Sample, thinking: Thinking) -> Sample:
    """Return text beside a call that the template writes as reasoning, as harmony does, is to be read back
    so.
    """
    if thinking.markers is None or f"{thinking.markers[0]}{NARRATION}" not in sample.completion:
        return sample
    lead = sample.completion.index(NARRATION) + len(NARRATION)
    return replace(sample, reasoning=NARRATION, content="", lead=lead)


def _prints_text(bench: TemplateProbe, voice: ReasoningFormat) -> bool:
    """Return whether 3 and "3" are printed alike, so that only the schema tells them apart."""
    alike = [SampleCall("set_reading", {"count": v}) for v in (3, "3")]
    pieces = bench.cut(
        [ProbeRequest((ASK,), Turn("assistant", calls=(c,)), TOOLS, voice.kwargs) for c in alike]
    )
    written = [p.completion for p in pieces if isinstance(p, Piece)]
    return len(written) == 2 and written[0] == written[1] and "3" in written[0]


def _tools_prompt(bench: TemplateProbe) -> str:
    """Return what the prompt has with tools and lacks without."""
    offers = (TOOLS, bench.no_tools if bench.no_tools != TOOLS else [])
    asks = [ProbeRequest((ASK,), ASK, tools) for tools in offers]
    given, none = bench.render([bench.job((ASK,), ask, generate=True) for ask in asks])
    if not isinstance(given, Rendered):
        return ""
    if not isinstance(none, Rendered):
        return given.text
    start = common_prefix(given.text, none.text)
    rest = common_prefix(given.text[start:][::-1], none.text[start:][::-1])
    return given.text[start : len(given.text) - rest]


def _derived(samples: Mapping[str, Sample]) -> Iterator[Sample]:
    """Cases that no template writes but models do: text after a call, a broken call beside a good one."""
    one = samples.get("one-call")
    closing = list(SHAPE.finditer(one.completion)) if one else []
    if one and closing and closing[-1].end() == len(one.completion):
        yield replace(
            one, case="text-after", completion=f"{one.completion}\n{cases.AFTERWARDS}", content=None
        )
    broken = _broken(samples["parallel"]) if "parallel" in samples else None
    if broken:
        yield replace(
            samples["parallel"],
            case="broken-beside",
            completion=broken,
            calls=(OTHER,),
            content=None,
            at_least=True,
        )


def _broken(parallel: Sample) -> str | None:
    """Return the first of two calls without what closes its argument, where markers part the two.

    Between the first call's value and the second call's name stand the end of the value, the end of the
    call, and the start of the next. Without a marker in between the two share one JSON text, and nobody
    could read the second once the first is broken.
    """
    value = ONE.arguments["city"]
    at = parallel.completion.find(value, parallel.lead)
    second = parallel.completion.find(OTHER.name, at)
    if at < 0 or second < 0:
        return None
    start = at + len(value)
    marker = SHAPE.search(parallel.completion, start, second)
    if marker is None:
        return None
    stop = marker.start() if parallel.completion[start : marker.start()].strip() else marker.end()
    if not SHAPE.search(parallel.completion, stop, second):
        return None
    return parallel.completion[:start] + parallel.completion[stop:]
