"""What a template writes for answers, with and without reasoning: one sample per case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from importer.chat_template import reasoning, tool_calls
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
from importer.chat_template.markers import SHAPE
from importer.chat_template.probe import Piece, ProbeRequest, TemplateProbe
from importer.chat_template.reasoning import ReasoningFormat, is_closed, is_open
from importer.chat_template.render import Rendered, RenderRefused, Renders, Result
from importer.chat_template.samples import Sample, TemplateAnalysis, TemplateProblem, Thinking
from importer.chat_template.vocabulary import Vocabulary
from importer.reasons import Reason


def next_turns(bench: TemplateProbe) -> tuple[str, ...]:
    """Return the markers that follow right behind an answer and right behind a call, each once."""
    plain, tools = ProbeRequest((ASK,), ASK, bench.no_tools), ProbeRequest((ASK,), ASK, TOOLS)
    answer, call = (ASK, Turn("assistant", ANSWER)), (ASK, Turn("assistant", calls=(ONE,)))
    results = bench.render(
        [
            bench.job(answer, plain, generate=False),
            bench.job((*answer, ASK_AGAIN), plain, generate=False),
            bench.job(call, tools, generate=False),
            bench.job((*call, Turn("tool", RESULT)), tools, generate=False),
        ]
    )
    found = (_marker(*results[i : i + 2]) for i in (0, 2))
    return tuple(dict.fromkeys(m for m in found if m))


def _marker(alone: Result, going_on: Result) -> str:
    """Return what goes on with a marker, if all before it is the same."""
    if not isinstance(alone, Rendered) or not isinstance(going_on, Rendered):
        return ""
    before = alone.text.rstrip()
    if not before or not going_on.text.startswith(before):
        return ""
    begun = SHAPE.match(going_on.text[len(before) :].lstrip())
    return begun[0] if begun is not None else ""


SPOKEN = Turn("assistant", ANSWER)
REASONED = Turn("assistant", ANSWER, reasoning=REASONING)


@dataclass(frozen=True, slots=True)
class Answered:
    """Samples of answers, and the cases that yielded none."""

    samples: tuple[Sample, ...] = ()
    problems: Mapping[str, Reason] = field(default_factory=dict)


def study_answers(bench: TemplateProbe, thinking: Thinking) -> Answered:
    """Samples for plain answers and for every way reasoning may stand before them."""
    on = ReasoningFormat(bench, thinking, None if thinking.default is True else thinking.on)
    off = ReasoningFormat(bench, thinking, None if thinking.default is False else thinking.off)
    plain, reasoned, silent, called = bench.cut(
        [
            ProbeRequest((ASK,), SPOKEN, bench.no_tools, on.kwargs),
            ProbeRequest((ASK,), REASONED, bench.no_tools, on.kwargs),
            ProbeRequest((ASK,), SPOKEN, bench.no_tools, off.kwargs),
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
        # A plan is only ever written before calls.
        whole = None if bench.style.reasoning == "tool_plan" else _whole(on, plain, reasoned)
        if whole is not None:
            samples += _thought(on, plain, whole)
        call = _beside_call(on, called)
        if isinstance(call, Sample):
            samples.append(call)
        else:
            problems["thinking-call"] = call
    return Answered(tuple(samples), problems)


def _whole(voice: ReasoningFormat, plain: Piece, reasoned: Piece | RenderRefused) -> Sample | None:
    """Reasoning, then the answer, as the template prints it; put together by hand where it prints none."""
    base = voice.sample("thinking-whole", plain, content=ANSWER)
    opened = is_open(voice.bench.tail(plain.prompt), voice.thinking.markers)
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
    if is_closed(voice.bench.tail(plain.prompt), voice.thinking.markers):
        return None  # the prompt has closed the block, so no reasoning follows
    lead_text = voice.thinking.block[0] + REASONING + voice.closing
    return replace(
        base, case=case, completion=lead_text + base.completion, reasoning=REASONING, lead=len(lead_text)
    )


def _thought(voice: ReasoningFormat, plain: Piece, whole: Sample) -> Iterator[Sample]:
    """Yield the whole block and what models make of it: cut inside, several, none at all."""
    yield whole
    at = whole.completion.find(REASONING)
    half = REASONING[: len(REASONING) // 2]
    cut = whole.completion[:at] + half
    yield replace(whole, case="thinking-cut", completion=cut, content="", reasoning=half, lead=len(cut))
    if voice.simple:
        opening, closing = voice.thinking.block[0].lstrip(), voice.closing
        again = f"{whole.completion}\n\n{opening}{SECOND_REASONING}{closing}{SECOND_ANSWER}"
        yield replace(whole, case="thinking-several", completion=again, content=None, reasoning=None)
    if whole.case == "thinking-whole":
        yield voice.sample("thinking-none", plain, content=ANSWER)


def _beside_call(voice: ReasoningFormat, called: Piece | RenderRefused) -> Sample | Reason:
    """Reasoning, then a call."""
    if isinstance(called, RenderRefused):
        return Reason(TemplateProblem.REFUSED, words=called.reason)
    if ONE.name not in called.completion:
        return Reason(TemplateProblem.CALL_ABSENT)
    base = voice.sample("thinking-call", called, calls=(ONE,), content="", tools=TOOLS)
    if REASONING in called.completion and not called.residue.strip():
        at = called.completion.find(REASONING) + len(REASONING)
        lead = called.completion.find(voice.closing.strip(), at) + len(voice.closing.strip())
        return replace(
            base, completion=called.completion, prompt=called.prompt, reasoning=REASONING, lead=max(lead, at)
        )
    if base.lead:
        return base
    if is_closed(voice.bench.tail(called.prompt), voice.thinking.markers):
        return Reason(TemplateProblem.BLOCK_CLOSED)
    if not voice.simple:
        return Reason(TemplateProblem.REASONING_DROPPED)
    lead_text = voice.thinking.block[0] + REASONING + voice.closing
    return replace(
        base, completion=lead_text + base.completion.lstrip("\n"), reasoning=REASONING, lead=len(lead_text)
    )


def analyze(template: Template, vocabulary: Vocabulary, renderer: Renders) -> TemplateAnalysis:
    """Return all that rendering shows; what the template refuses is a problem with its reason, never an
    error.
    """
    bench = TemplateProbe(template, vocabulary, renderer)
    form = tool_calls.find_form(bench)
    thought = reasoning.study_thinking(bench)
    called = tool_calls.study_calls(bench, thought)
    spoken = study_answers(bench, thought)
    return TemplateAnalysis(
        digest=template.digest,
        samples=(*called.samples, *spoken.samples),
        thinking=thought,
        tools_rendered=called.tools_rendered,
        calls_rendered=called.calls_rendered,
        tools_prompt=called.tools_prompt,
        end_of_turn=bench.end_of_turn,
        next_turns=() if bench.end_of_turn else next_turns(bench),
        problems={
            **called.problems,
            **spoken.problems,
            **({"template": bench.unsafe} if bench.unsafe is not None else {}),
        },
        form=form,
    )
