"""Readers of what a template renders: request coverage, the prompts of engines, response templates, markers."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from gen_defaults import rust_source
from gen_defaults.sources import markers as source_markers
from importer.chat_template import analyze, instructed_calls
from importer.chat_template.cases import ANSWER, OTHER, QUESTION, RESULT
from importer.chat_template.request_coverage import check, compare, conversations
from importer.chat_template.samples import Sample, SampleCall, Thinking
from importer.chat_template.study import TemplateAnalysis
from importer.engines.parsers import ReadCall, Reading, Replay
from importer.proof import prompt_difference, response_template, verdicts
from importer.proof.conversations import CONVERSATIONS, leaves
from importer.proof.prompts import LONGEST
from importer.proof.result import PromptCase
from importer.signals import template_markers
from tests.clock.repositories import as_is

CALLS = (conversations.plain, conversations.offering, lambda: conversations.calling(True))
LEAVES = [leaves(CONVERSATIONS[case]) for case in (PromptCase.NESTED, PromptCase.RESULTS)]
CALL = SampleCall("get_weather", {"city": "Paris"})


def prompted(text: str) -> None:
    """A prompt in which the text stands beside, between and in place of the words of each mark."""
    half = text[: len(text) // 2]
    for conversation in (one for group in CALLS for one in group()):
        mark = max(conversation.marks, key=lambda m: len(m.text))
        head, tail = mark.ends
        list(compare.compare(conversation, f"{text}{head}{half}{tail}{text}"))
    check.UNSENT.search(text)
    check.IMAGE.search(text)
    check.ABOUT_TOOLS.search(text)


def turned(text: str) -> None:
    """A prompt with the text before each turn."""
    for conversation in conversations.plain()[:4]:
        compare.distinct_roles(conversation, "".join(f"{text}{turn.text}" for turn in conversation.turns))


def repeated(text: str) -> None:
    """A prompt that repeats the first word of a mark, as often as the text has pieces."""
    mark = conversations.USERS[0]
    head, tail = mark.ends
    for prompt in (text.replace(text[:1], head) + tail, (head + text[:5]) * (len(text) // 20) + tail):
        compare.judge(mark, prompt)


def differing(text: str) -> None:
    """Prompts of an engine and of ours that differ at their ends, in a value, in all."""
    values = "".join(str(leaf.value) for leaf in LEAVES[0])
    for parts in LEAVES:
        for ours, theirs in ((text + "a", text + "b"), (text + values, text), (text, text[::-1])):
            prompt_difference.difference("a", ours, theirs, parts)
            prompt_difference.wholeness(ours, parts)
            prompt_difference.moved(ours, theirs, text[:9], text[-9:])


def analysed(text: str) -> TemplateAnalysis:
    """An analysis of a template that writes the text around, between and behind all that it is given."""
    one = f"{text}get_weather{text[:400]}city{text[:400]}Paris{text}"
    two = f'{one}{OTHER.name}{text[:400]}area: "harbour", stars: 4{text}'
    prompt = f"{text}{QUESTION}{text}"
    samples = (
        Sample("one-call", prompt, one, calls=(CALL,)),
        Sample("parallel", f"{prompt}{RESULT}{text}", two, calls=(CALL, OTHER)),
        Sample("numbers", prompt, f"{text}set_reading{text}count -3 ratio 0.25{text}"),
        Sample("no-call", prompt, f"{text}{ANSWER}{text}"),
    )
    thinking = Thinking((text[:40], text[-40:]), source="rendered", block=(text[:50], text[-50:]))
    return TemplateAnalysis("0" * 64, samples, thinking, end_of_turn=text[:30], tools_prompt=text)


def derived(analysis: TemplateAnalysis) -> None:
    """The response template of it."""
    response_template.derive(analysis, [f"<t{n}>" for n in range(200)])


def jsoned(text: str) -> TemplateAnalysis:
    """An analysis of a template whose calls are in brackets of any kind, each opened many times."""
    size = len(text) // 6
    opened = text[:size] + '{"a":[' * (size // 6) + "[0,{" * (size // 4)
    call = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
    return TemplateAnalysis(
        "0" * 64, tuple(Sample(c, "<a>", opened + call + text) for c in ("one-call", "parallel"))
    )


def evidenced(analysis: TemplateAnalysis) -> None:
    """What a rendered template shows: the parsers for its markers, and the calls that its instructions ask for."""
    template_markers.evidence(analysis, name=analysis.tools_prompt)
    analyze.TOOLS_NAMED.search(analysis.tools_prompt)
    template_markers.closeness("vllm", "tool", ["<tool_call>"], analysis.tools_prompt)
    instructed_calls.LISTED.search(analysis.tools_prompt)
    instructed_calls.as_instructed(analysis)


def read_back(text: str) -> Mapping[str, Any]:
    """What a parser returned, with the text at each place."""
    reading = Reading((ReadCall(text, text), ReadCall("f", f'{{"a": "{text}"}}')), text, text)
    return {"sample": Sample("one-call", "", ""), "reading": reading}


def digested(given: Mapping[str, Any]) -> None:
    """The digest of it."""
    verdicts.effect_of([given["sample"]], [given["reading"]], {"a": Replay(given["reading"])}, None)


def of_an_engine(text: str) -> None:
    """A source of an engine's release."""
    for path in rust_source.PATHS:
        for read in (rust_source.rows, rust_source.guesses):
            try:
                read({path: text})
            except ValueError:
                continue
    list(source_markers._markers(ast.Expr(ast.Tuple([ast.Constant(text, lineno=1, col_offset=0)])), {}))


READERS = (
    ("request coverage", prompted, "chat_template.request_coverage.compare chat_template.request_coverage.check", 16_000, as_is),
    ("request coverage, often", repeated, "chat_template.request_coverage.compare", 40_000, as_is),
    ("the request coverage of roles", turned, "chat_template.request_coverage.compare", 16_000, as_is),
    ("prompts of engines", differing, "proof.prompt_difference", LONGEST // 10, as_is),
    ("response templates", derived, "proof.response_template", 12_000, analysed),
    ("response templates of JSON", derived, "proof.response_template", 24_000, jsoned),
    ("a rendered template", evidenced,
     "signals.template_markers chat_template.analyze chat_template.instructed_calls", 12_000, analysed),
    ("the effect of a parser", digested, "proof.verdicts", 80_000, read_back),
    ("a source of an engine", of_an_engine, "gen_defaults.rust_source gen_defaults.sources.markers", 40_000, as_is),
)  # fmt: skip
