"""The analysis of a template, and its samples for answers with and without reasoning.

The variables of a template that a client may set, with their values and the default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from importer.chat_template import cases, reasoning, tool_calls
from importer.chat_template.cases import (
    ANSWER,
    ASK,
    ASK_AGAIN,
    ONE,
    REASONING,
    RESULT,
    SECOND_ANSWER,
    SECOND_REASONING,
    TOOLS,
    Turn,
)
from importer.chat_template.find import Template
from importer.chat_template.markers import LONGEST, SHAPE
from importer.chat_template.probe import Piece, ProbeRequest, TemplateProbe
from importer.chat_template.reasoning import OWN, ReasoningFormat, is_closed, is_open
from importer.chat_template.render import Recorder, Rendered, RenderRefused, Renders, Result
from importer.chat_template.render_worker import Local
from importer.chat_template.request_coverage.check import check
from importer.chat_template.samples import Sample, TemplateProblem, Thinking, Variable
from importer.chat_template.study import Served, SettingSamples, TemplateAnalysis
from importer.chat_template.vocabulary import Vocabulary
from importer.frozen import frozen
from importer.reasons import Reason

MOST = 24  # variables; published templates have up to nine
VALUES = 6  # of one variable
TURNS = (
    ASK,
    Turn("assistant", calls=(ONE,), reasoning=REASONING),
    Turn("tool", RESULT),
    Turn("assistant", ANSWER, reasoning=REASONING),
    ASK_AGAIN,
)


def variables(probe: TemplateProbe) -> tuple[Variable, ...]:
    """Return the variables that change the prompt of a conversation with reasoning and a call."""
    asked: list[tuple[str, tuple[Any, ...]]] = []
    for name, listed in sorted(probe.variables.items()):
        words = tuple(value for value in listed if not isinstance(value, bool))
        asked += [(name, words[:VALUES] or (True, False))] if name not in OWN else []
    asked = asked[:MOST]
    settings: list[dict[str, object]] = [{}, *({name: value} for name, values in asked for value in values)]
    default, *prompts = _prompts(probe, settings)
    found, left = [], iter(prompts)
    for name, values in asked:
        same = [value for value, prompt in zip(values, left, strict=False) if prompt == default]
        if len(same) < len(values):
            found.append(Variable(name, values, same[0] if len(same) == 1 else None))
    return tuple(found)


def _prompts(probe: TemplateProbe, settings: Sequence[dict[str, object]]) -> list[tuple[str | None, ...]]:
    """Return the prompts under each setting: of one question, and of past reasoning and a call."""
    groups = (((ASK,), probe.no_tools), (TURNS, TOOLS))
    jobs = [
        probe.job(turns, ProbeRequest(turns, cases.ASK, tools, kwargs), generate=True)
        for kwargs in settings
        for turns, tools in groups
    ]
    texts = [one.text if isinstance(one, Rendered) else None for one in probe.render(jobs)]
    return [tuple(texts[at : at + len(groups)]) for at in range(0, len(texts), len(groups))]


TOOLS_NAMED = re.compile(r"\btools?\b")
SPOKEN = Turn("assistant", ANSWER)
REASONED = Turn("assistant", ANSWER, reasoning=REASONING)


def next_turns(probe: TemplateProbe) -> tuple[str, ...]:
    """Return the markers directly behind an answer and directly behind a call, each once."""
    plain, tools = ProbeRequest((ASK,), ASK, probe.no_tools), ProbeRequest((ASK,), ASK, TOOLS)
    answer, call = (ASK, Turn("assistant", ANSWER)), (ASK, Turn("assistant", calls=(ONE,)))
    results = probe.render(
        [
            probe.job(answer, plain, generate=False),
            probe.job((*answer, ASK_AGAIN), plain, generate=False),
            probe.job(call, tools, generate=False),
            probe.job((*call, Turn("tool", RESULT)), tools, generate=False),
        ]
    )
    markers = (_marker(*results[i : i + 2]) for i in (0, 2))
    return tuple(dict.fromkeys(m for m in markers if m))


def end_of_calls(probe: TemplateProbe, completion: str) -> str:
    """Return the text from the end of a past turn of calls up to the tool's result; ``completion`` is it."""
    turns = (ASK, Turn("assistant", calls=(ONE,)), Turn("tool", RESULT))
    [result] = probe.render([probe.job(turns, ProbeRequest((ASK,), ASK, TOOLS), generate=False)])
    value = str(ONE.arguments["city"])
    close = completion[completion.rfind(value) + len(value) :]
    if not isinstance(result, Rendered) or value not in completion:
        return ""
    behind = result.text[result.text.rfind(value) + len(value) :]
    return behind[len(close) :].lstrip() if behind.startswith(close) else ""


def _marker(alone: Result, going_on: Result) -> str:
    """Return the marker that begins the continuation, if the text before it is the same; else nothing."""
    if not isinstance(alone, Rendered) or not isinstance(going_on, Rendered):
        return ""
    before = alone.text.rstrip()
    if not before or not going_on.text.startswith(before):
        return ""
    begun = SHAPE.match(going_on.text[len(before) :].lstrip())
    return begun[0] if begun is not None else ""


@frozen
class Answered:
    """Samples of answers, and the cases without a sample."""

    samples: tuple[Sample, ...] = ()
    problems: Mapping[str, Reason] = field(default_factory=dict)


def analyze_answers(
    probe: TemplateProbe, thinking: Thinking, document: Mapping[str, Any] | None = None
) -> Answered:
    """Return samples of plain answers and of answers with each form of reasoning before them.

    ``document`` are the template's variables in a document; a request's own are set on top of them.
    """
    base = document or {}
    said_on = None if thinking.default is True else thinking.on
    said_off = None if thinking.default is False else thinking.off
    on = ReasoningFormat(probe, thinking, {**base, **(said_on or {})})
    off = ReasoningFormat(probe, thinking, {**base, **(said_off or {})})
    plain, reasoned, silent, called = probe.cut(
        [
            ProbeRequest((ASK,), SPOKEN, probe.no_tools, on.kwargs),
            ProbeRequest((ASK,), REASONED, probe.no_tools, on.kwargs),
            ProbeRequest((ASK,), SPOKEN, probe.no_tools, off.kwargs),
            ProbeRequest((ASK,), Turn("assistant", calls=(ONE,), reasoning=REASONING), TOOLS, on.kwargs),
        ]
    )
    if isinstance(silent, RenderRefused):
        return Answered(problems={"plain": Reason(TemplateProblem.REFUSED, words=silent.reason)})
    if ANSWER not in silent.completion:
        return Answered(problems={"plain": Reason(TemplateProblem.ANSWER_ABSENT)})
    samples = [off.sample("plain" if thinking.off is None else "thinking-off", silent, content=ANSWER)]
    problems: dict[str, Reason] = {}
    if thinking.markers is not None and isinstance(plain, Piece):
        # Templates write a plan only before calls.
        whole = None if probe.style.reasoning == "tool_plan" else _whole(on, plain, reasoned)
        if whole is not None:
            samples += _thought(on, plain, whole)
        call = _beside_call(on, called)
        if isinstance(call, Sample):
            samples.append(call)
        else:
            problems["thinking-call"] = call
    if thinking.default is None and thinking.switch is not None:
        samples += _unsaid(probe, thinking, base)
    return Answered(tuple(samples), problems)


def _unsaid(probe: TemplateProbe, thinking: Thinking, document: Mapping[str, Any]) -> Iterator[Sample]:
    """Yield the answers of a request without the switch: those that its prompt leaves open to the model."""
    form = ReasoningFormat(probe, thinking, document)
    asks = [ProbeRequest((ASK,), turn, probe.no_tools, document) for turn in (SPOKEN, REASONED)]
    plain, reasoned = probe.cut(asks)
    if not isinstance(plain, Piece) or ANSWER not in plain.completion:
        return
    whole = _whole(form, plain, reasoned) if thinking.markers is not None else None
    if whole is not None:
        yield replace(whole, case="unsaid-thinking")
    if not is_open(probe.tail(plain.prompt), thinking.markers):
        yield form.sample("unsaid-plain", plain, content=ANSWER)


def _whole(form: ReasoningFormat, plain: Piece, reasoned: Piece | RenderRefused) -> Sample | None:
    """Return a sample of reasoning and answer, as rendered; composed where no reasoning is rendered."""
    base = form.sample("thinking-whole", plain, content=ANSWER)
    opened = is_open(form.probe.tail(plain.prompt), form.thinking.markers)
    case = "thinking-opened" if opened else "thinking-whole"
    fits = isinstance(reasoned, Piece) and not reasoned.residue.strip()
    if isinstance(reasoned, Piece) and fits and REASONING in reasoned.completion:
        lead = reasoned.completion.find(ANSWER)
        return replace(
            base,
            case=case,
            completion=reasoned.completion,
            prompt=reasoned.prompt,
            reasoning=REASONING,
            lead=max(lead, 0),
        )
    if opened:
        return replace(base, case=case)
    if is_closed(form.probe.tail(plain.prompt), form.thinking.markers):
        return None  # the prompt has closed the block, so no reasoning follows
    lead_text = form.thinking.block[0] + REASONING + form.closing
    return replace(
        base, case=case, completion=lead_text + base.completion, reasoning=REASONING, lead=len(lead_text)
    )


def _thought(form: ReasoningFormat, plain: Piece, whole: Sample) -> Iterator[Sample]:
    """Yield samples of the whole block and of its variants in model output: cut inside, several, none."""
    yield whole
    at = whole.completion.find(REASONING)
    half = REASONING[: len(REASONING) // 2]
    cut = whole.completion[:at] + half
    yield replace(whole, case="thinking-cut", completion=cut, content="", reasoning=half, lead=len(cut))
    if form.simple:
        opening, closing = form.thinking.block[0].lstrip(), form.closing
        again = f"{whole.completion}\n\n{opening}{SECOND_REASONING}{closing}{SECOND_ANSWER}"
        yield replace(whole, case="thinking-several", completion=again, content=None, reasoning=None)
    # Without a switch this is the plain answer again.
    if whole.case == "thinking-whole" and form.thinking.off is not None:
        yield form.sample("thinking-none", plain, content=ANSWER)


def _beside_call(form: ReasoningFormat, called: Piece | RenderRefused) -> Sample | Reason:
    """Return a sample of reasoning and a call, or the reason why there is none."""
    if isinstance(called, RenderRefused):
        return Reason(TemplateProblem.REFUSED, words=called.reason)
    if ONE.name not in called.completion:
        return Reason(TemplateProblem.CALL_ABSENT)
    base = form.sample("thinking-call", called, calls=(ONE,), content="", tools=TOOLS)
    if REASONING in called.completion and not called.residue.strip():
        at = called.completion.find(REASONING) + len(REASONING)
        lead = called.completion.find(form.closing.strip(), at) + len(form.closing.strip())
        return replace(
            base, completion=called.completion, prompt=called.prompt, reasoning=REASONING, lead=max(lead, at)
        )
    if base.lead:
        return base
    if is_closed(form.probe.tail(called.prompt), form.thinking.markers):
        return Reason(TemplateProblem.BLOCK_CLOSED)
    if not form.simple:
        return Reason(TemplateProblem.REASONING_DROPPED)
    lead_text = form.thinking.block[0] + REASONING + form.closing
    return replace(
        base, completion=lead_text + base.completion.lstrip("\n"), reasoning=REASONING, lead=len(lead_text)
    )


def analyze(template: Template, vocabulary: Vocabulary, renderer: Renders) -> TemplateAnalysis:
    """Return the analysis of a template; a case that the template refuses is a problem, never an error."""
    recorder = Recorder(renderer)
    probe = TemplateProbe(template, vocabulary, recorder)
    tool_calls.find_form(probe)
    thought = reasoning.analyze_thinking(probe)
    called = tool_calls.analyze_calls(probe, thought)
    spoken = analyze_answers(probe, thought)
    settings = tuple(
        SettingSamples(kwargs, analyze_answers(probe, thought, kwargs).samples) for kwargs in thought.settings
    )
    analysis = TemplateAnalysis(
        digest=template.digest,
        samples=(*called.samples, *spoken.samples),
        thinking=thought,
        tools_rendered=called.tools_rendered,
        calls_rendered=called.calls_rendered,
        tools_prompt=called.tools_prompt,
        end_of_turn=probe.end_of_turn,
        next_turns=() if probe.end_of_turn else next_turns(probe),
        behind_calls=next(
            (end_of_calls(probe, s.completion)[:LONGEST] for s in called.samples if s.case == "one-call"), ""
        ),
        problems={
            **called.problems,
            **spoken.problems,
            **({"template": probe.unsafe} if probe.unsafe is not None else {}),
        },
        request_coverage=check(probe, thought),
        settings=settings,
        tools_named=TOOLS_NAMED.search(template.text) is not None,
        variables=variables(probe),
        named=tuple(probe.variables),
    )
    return replace(analysis, renders=recorder.digest)


def study(served: Served) -> TemplateAnalysis:
    """Return the analysis of a served template; runs in the sandbox alone."""
    return analyze(served.template, served.vocabulary, Local())
