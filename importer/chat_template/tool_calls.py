"""Samples of a template's tool calls, one for each case, and the form of messages that they require."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
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
from importer.frozen import frozen
from importer.reasons import Reason

DUMP = re.compile(r"""["']tool_calls["']\s*:""")


@frozen
class Called:
    """Samples of tool calls, the cases without a sample, and the visibility of tools and calls."""

    samples: tuple[Sample, ...] = ()
    problems: Mapping[str, Reason] = field(default_factory=dict)
    tools_rendered: bool = False
    calls_rendered: bool = False
    tools_prompt: str = ""


def find_form(probe: TemplateProbe) -> None:
    """Find the form of messages that makes the template print a call: ``probe`` uses it from then on."""
    probe.style = _showing_words(probe, _form_of_calls(probe) or _form_of_words(probe))
    probe.find_no_tools()
    probe.find_end_of_turn()


def _form_of_calls(probe: TemplateProbe) -> CaseStyle | None:
    for styles in (cases.STYLES[:1], cases.STYLES[1:]):  # the first fits most templates
        asks = [ProbeRequest((ASK,), Turn("assistant", calls=(ONE,)), TOOLS, style=s) for s in styles]
        for style, piece in zip(styles, probe.cut(asks), strict=True):
            if isinstance(piece, Piece) and _prints(piece.completion, ONE):
                return style
    return None


def _form_of_words(probe: TemplateProbe) -> CaseStyle:
    """Return the first form that makes the template print an answer, for templates without calls."""
    asks = [ProbeRequest((ASK,), Turn("assistant", ANSWER), style=s) for s in cases.STYLES]
    for style, piece in zip(cases.STYLES, probe.cut(asks), strict=True):
        if isinstance(piece, Piece) and ANSWER in piece.completion and "'text'" not in piece.completion:
            return style
    return CaseStyle()


def _showing_words(probe: TemplateProbe, style: CaseStyle) -> CaseStyle:
    """Return the form, with contents in parts where the template shows a question in parts alone."""
    for tried in (style, replace(style, parts=True)):
        [result] = probe.render([probe.job((ASK,), ProbeRequest((), ASK, style=tried), generate=True)])
        if isinstance(result, Rendered) and ASK.text in result.text:
            return tried
    return style


def _prints(written: str, call: SampleCall) -> bool:
    """Return whether the text holds name and values of a call, and not as Python prints a dictionary."""
    escaped = json.dumps(json.dumps(dict(call.arguments)))[1:-1]
    if DUMP.search(written):
        return False
    if str(dict(call.arguments)) in written or (call.arguments and escaped in written):
        return False
    return call.name in written and all(_holds(written, v) for v in call.arguments.values())


def _holds(written: str, value: Any) -> bool:
    """Return whether the text holds a value's leaves, raw or in JSON's spelling."""
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


def analyze_calls(probe: TemplateProbe, thinking: Thinking) -> Called:
    """Return the samples of every case with calls or offered tools."""
    form = ReasoningFormat(probe, thinking, None if thinking.default is False else thinking.off)
    pieces = probe.cut([a for _, a in _asks(form.kwargs)])
    samples: dict[str, Sample] = {}
    problems: dict[str, Reason] = {}
    text_arguments = _prints_text(probe, form)
    for (case, ask), piece in zip(_asks(form.kwargs), pieces, strict=True):
        reason = _unfit(piece, ask.turn, text_arguments=text_arguments)
        if reason is not None:
            problems[case] = reason
            continue
        assert isinstance(piece, Piece)  # noqa: S101 - _unfit has checked
        sample = form.sample(
            case,
            piece,
            calls=ask.turn.calls,
            content=ask.turn.text,
            tools=ask.tools or (),
            text_arguments=text_arguments,
        )
        samples[case] = _as_reasoning(sample, thinking) if case.startswith("narrated") else sample
    samples |= {s.case: s for s in _derived(samples)}
    prompt = _tools_prompt(probe)
    offered = all(t["function"]["name"] in prompt for t in TOOLS)
    return Called(tuple(samples.values()), problems, offered, "one-call" in samples, prompt)


def _asks(kwargs: Mapping[str, object]) -> list[tuple[str, ProbeRequest]]:
    question = (ASK,)
    result = (ASK, Turn("assistant", calls=(ONE,)), Turn("tool", RESULT))
    turns: list[tuple[str, tuple[Turn, ...], Turn]] = [
        (name, question, Turn("assistant", calls=c)) for name, c in CALLS.items()
    ]
    turns += [
        ("narrated", question, Turn("assistant", NARRATION, (ONE,))),
        ("narrated-parallel", question, Turn("assistant", NARRATION, (ONE, OTHER))),
        ("call-after-result", result, Turn("assistant", calls=(AGAIN,))),
        ("answer-after-result", result, Turn("assistant", ANSWER)),
        ("no-call", question, Turn("assistant", ANSWER)),
    ]
    return [
        (name, ProbeRequest(before, turn, cases.tools_for(turn.calls), kwargs))
        for name, before, turn in turns
    ]


def _unfit(piece: Piece | RenderRefused, turn: Turn, *, text_arguments: bool) -> Reason | None:
    """Return the reason why a piece is no sample, or ``None``."""
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
    """Return whether a value stands in quotes without its escapes, or as Python prints it among texts."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) != f'"{value}"' and f'"{value}' in written
    if not isinstance(value, (Mapping, list, type(None))) or json.dumps(value) in written:
        return False
    return f'"{value}"' in written or (text_arguments and str(value) in written)


def _as_reasoning(sample: Sample, thinking: Thinking) -> Sample:
    """Return the sample with its text as reasoning, where the template writes it so, as harmony does."""
    if thinking.markers is None or f"{thinking.markers[0]}{NARRATION}" not in sample.completion:
        return sample
    lead = sample.completion.index(NARRATION) + len(NARRATION)
    return replace(sample, reasoning=NARRATION, content="", lead=lead)


def _prints_text(probe: TemplateProbe, form: ReasoningFormat) -> bool:
    """Return whether 3 and "3" are printed alike, so only the schema distinguishes them."""
    alike = [SampleCall("set_reading", {"count": v}) for v in (3, "3")]
    pieces = probe.cut(
        [ProbeRequest((ASK,), Turn("assistant", calls=(c,)), TOOLS, form.kwargs) for c in alike]
    )
    written = [p.completion for p in pieces if isinstance(p, Piece)]
    return len(written) == 2 and written[0] == written[1] and "3" in written[0]


def _tools_prompt(probe: TemplateProbe) -> str:
    """Return the part of the prompt that tools add."""
    offers = (TOOLS, probe.no_tools if probe.no_tools != TOOLS else [])
    asks = [ProbeRequest((ASK,), ASK, tools) for tools in offers]
    with_tools, without = probe.render([probe.job((ASK,), ask, generate=True) for ask in asks])
    if not isinstance(with_tools, Rendered):
        return ""
    if not isinstance(without, Rendered):
        return with_tools.text
    start = common_prefix(with_tools.text, without.text)
    rest = common_prefix(with_tools.text[start:][::-1], without.text[start:][::-1])
    return with_tools.text[start : len(with_tools.text) - rest]


def _derived(samples: Mapping[str, Sample]) -> Iterator[Sample]:
    """Yield cases that only models write: text after a call, a broken call beside a good one."""
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
    """Return two calls, the first without the end of its argument, or ``None`` without markers between them.

    Between the first call's value and the second call's name stand the end of the value, the end of the
    call, and the start of the next. Without a marker in between the two share one JSON text, and no parser
    can read the second once the first is broken.
    """
    value = str(ONE.arguments["city"])
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
