"""What a template writes for answers, with and without reasoning: one sample per case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from importer.reasons import Reason
from importer.template.bench import Ask, Bench, Piece
from importer.template.cases import (
    ANSWER,
    ASK,
    ONE,
    REASONING,
    SECOND_ANSWER,
    SECOND_REASONING,
    TOOLS,
    Turn,
)
from importer.template.render import Refused
from importer.template.study import Sample, TemplateProblem, Thinking
from importer.template.thinking import is_closed, is_open
from importer.template.thoughts import Voice

SPOKEN = Turn("assistant", ANSWER)
REASONED = Turn("assistant", ANSWER, reasoning=REASONING)


@dataclass(frozen=True, slots=True)
class Answered:
    """Samples of answers, and the cases that yielded none."""

    samples: tuple[Sample, ...] = ()
    problems: Mapping[str, Reason] = field(default_factory=dict)


def study_answers(bench: Bench, thinking: Thinking) -> Answered:
    """Samples for plain answers and for every way reasoning may stand before them."""
    on = Voice(bench, thinking, None if thinking.default is True else thinking.on)
    off = Voice(bench, thinking, None if thinking.default is False else thinking.off)
    plain, reasoned, silent, called = bench.cut(
        [
            Ask((ASK,), SPOKEN, bench.no_tools, on.kwargs),
            Ask((ASK,), REASONED, bench.no_tools, on.kwargs),
            Ask((ASK,), SPOKEN, bench.no_tools, off.kwargs),
            Ask((ASK,), Turn("assistant", calls=(ONE,), reasoning=REASONING), TOOLS, on.kwargs),
        ]
    )
    if isinstance(silent, Refused):
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


def _whole(voice: Voice, plain: Piece, reasoned: Piece | Refused) -> Sample | None:
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


def _thought(voice: Voice, plain: Piece, whole: Sample) -> Iterator[Sample]:
    """The whole block and what models make of it: cut inside, several, none at all."""
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


def _beside_call(voice: Voice, called: Piece | Refused) -> Sample | Reason:
    """Reasoning, then a call."""
    if isinstance(called, Refused):
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
