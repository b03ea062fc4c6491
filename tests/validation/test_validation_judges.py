"""Judging replies: what passes, what fails, and who is blamed."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from importer.reasons import Reason
from importer.validation.calls import judge_call
from importer.validation.diagnosis import unread
from importer.validation.expectations import (
    CommonReason,
    Expectations,
    PromiseReason,
    no_chat,
    no_reasoning,
    no_tools,
    promise_of,
)
from importer.validation.outcome import (
    QUOTED,
    Fail,
    Inconclusive,
    NotApplicable,
    Outcome,
    Pass,
    ProbeRow,
    Report,
    Stage,
    counts_as_passed,
    differs,
    quoted,
)
from importer.validation.probes.chat import judge_plain_chat, leak
from importer.validation.probes.reasoning import judge_reasoning_apart
from importer.validation.probes.tools import judge_tool_result_turn
from importer.validation.prompts import SUM, WEATHER, WEATHER_TOOL
from importer.validation.reply import Reply, ToolCall, Usage
from importer.validation.tool_markup import control_token, looks_like_call, thinking_markup
from tests.facts import as_reason
from tests.judging import CALL, verdict, words

PARIS = '{"location": "Paris"}'


def called(arguments: str = PARIS, name: str = "get_weather", **more: object) -> Reply:
    fields: dict[str, object] = {"finish_reason": "tool_calls"}
    return Reply(tool_calls=(ToolCall(0, "call_1", name, arguments),), **(fields | more))  # type: ignore[arg-type]


def said(
    content: str = "", reasoning: str = "", finish: str | None = "stop", wrote: int | None = None
) -> Reply:
    return Reply(content, reasoning, (), finish, Usage(10, wrote))


def tokens(text: str) -> tuple[object, ...]:
    """As vLLM shows what was written, one token per character."""
    return tuple({"token": c, "bytes": list(c.encode())} for c in text)


# The same call as ten families write it: none of these may be taken for prose.
WRITTEN = [
    '<tool_call>\n{"name": "get_weather", "arguments": {"location": "Paris"}}\n</tool_call>',
    '{"name": "get_weather", "parameters": {"location": "Paris"}}',
    '[TOOL_CALLS][{"name": "get_weather", "arguments": {"location": "Paris"}}]',
    "[TOOL_CALLS]get_weather[ARGS]" + PARIS,
    "<tool_call>\n<function=get_weather>\n<parameter=location>\nParis\n</parameter>\n</function>\n</tool_call>",
    "<tool_call>get_weather\n<arg_key>location</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>",
    '<invoke name="get_weather">\n<parameter name="location">Paris</parameter>\n</invoke>',
    '[get_weather(location="Paris")]',
    "```tool_code\nget_weather(location='Paris')\n```",
    "call:get_weather{location:Paris}",
    "functions.get_weather:0" + PARIS,
    '{"name": "get_weather", "arguments": "{\\"location\\": \\"Paris\\"}"}',
    "<get_weather><location>Paris</location></get_weather>",
]


@pytest.mark.parametrize("text", WRITTEN)
def test_a_written_call_is_seen_in_any_format(text: str) -> None:
    assert looks_like_call(f"Let me see.\n{text}", (WEATHER_TOOL,))
    assert verdict(judge_call(said(text), WEATHER)) == "fail configuration"
    assert verdict(judge_call(said("Fine.", text), WEATHER)) == "fail configuration"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (called(), "pass"),
        (called(content="Let me see."), "pass"),
        (called(finish_reason="stop"), "fail engine"),
        (called(finish_reason="length"), "inconclusive model"),
        (called('{"location": "Par', finish_reason="length"), "inconclusive model"),
        (called(content="<|im_end|>Ha", finish_reason="length"), "fail configuration"),
        (called(finish_reason="length", logprobs=tokens("…<|im_end|>Ha")), "fail configuration"),
        (called(content="</tool_call>"), "fail configuration"),
        (called(content=WRITTEN[1]), "fail configuration"),
        (called('"{\\"location\\": \\"Paris\\"}"'), "fail configuration"),
        (called('{"location": "Par'), "fail engine"),
        (called("[]"), "inconclusive model"),
        (called("{}"), "inconclusive model"),
        (called('{"location": "Rome"}'), "inconclusive model"),
        (called(name="get_wether"), "inconclusive model"),
        (called(name="get_weather>\n<parameter"), "fail configuration"),
        (
            Reply(tool_calls=(ToolCall(0, "", "get_weather", PARIS),), finish_reason="tool_calls"),
            "fail engine",
        ),
        (said(finish="tool_calls"), "fail configuration"),
        (said(finish="stop", wrote=23), "fail configuration"),
        (said(finish="stop", wrote=1), "inconclusive model"),
        (said(reasoning="The weather, then", finish="length"), "inconclusive model"),
    ],
)
def test_tool_calls(reply: Reply, expected: str) -> None:
    assert verdict(judge_call(reply, WEATHER)) == expected


@pytest.mark.parametrize("text", WRITTEN)
def test_a_call_that_left_no_trace_is_seen_in_what_was_written(text: str) -> None:
    lost = Reply("Let me see.", finish_reason="stop", logprobs=tokens(f"Let me see.{text}<|im_end|>"))
    assert verdict(judge_call(lost, WEATHER)) == "fail configuration"
    assert unread(lost, WEATHER)
    assert unread(Reply("No.", finish_reason="stop", logprobs=tokens("No.<|im_end|>")), WEATHER) is None


DRAFTS = (
    'I could write <tool_call>{"name": "get_weather", "arguments": {"location": "Paris"}}</tool_call> now.',
    'Maybe get_weather(location="Paris")? It would not help.',
)
CANNOT = "I cannot look that up."


@pytest.mark.parametrize("draft", DRAFTS)
def test_a_call_that_the_model_only_thought_of_is_nobodys_fault(draft: str) -> None:
    written = tokens(f"<think>\n{draft}\n</think>\n\n{CANNOT}<|im_end|>")
    for reply in (
        Reply(CANNOT, draft, (), "stop", Usage(10, 40), written),
        Reply(CANNOT, draft, (), "stop", Usage(10, 40)),
        Reply("", draft, (), "stop", Usage(10, 40), tokens(f"<think>\n{draft}\n</think><|im_end|>")),
        Reply(f"<think>\n{draft}\n</think>\n\n{CANNOT}", "", (), "stop", Usage(10, 40)),
    ):
        assert verdict(judge_call(reply, WEATHER)) == "inconclusive model"
        assert (unread(reply, WEATHER) or "").find("call") == -1
    assert leak(Reply(CANNOT, draft, (), "stop")) is None
    cut_short = draft[: max(draft.rfind(c) for c in ">)") + 1]
    assert verdict(judge_call(Reply(CANNOT, cut_short, (), "stop"), WEATHER)) == "inconclusive model"


@pytest.mark.parametrize("text", WRITTEN)
def test_a_call_after_a_draft_of_it_is_still_missed(text: str) -> None:
    thought = 'Maybe get_weather(location="Paris"). Yes, that.'
    written = tokens(f"<think>\n{thought}\n</think>\n\n{text}<|im_end|>")
    swallowed = Reply("", f"{thought}\n{text}", (), "stop", Usage(10, 40), written)
    dropped = Reply("", thought, (), "stop", Usage(10, 40), written)
    for reply in (swallowed, dropped):
        assert verdict(judge_call(reply, WEATHER)) == "fail configuration"
        assert unread(reply, WEATHER) == Reason(CommonReason.CALL_UNREAD)


@pytest.mark.parametrize(
    ("written", "lost"),
    [
        ("<think>\nAdd.\n</think>\n\nFour.", True),
        ("Add.\n</think>\n\nFour.", True),
        ("<think>\n\n</think>\n\nFour.", False),
        ("</think>\n\nFour.", False),
        ("[THINK]Add.[/THINK]Four.", True),
        ("<|START_THINKING|>Add.<|END_THINKING|>Four.", True),
        ("Four.", False),
        ("<think>Add.", True),
    ],
)
def test_thoughts_in_what_was_written(written: str, lost: bool) -> None:
    stripped = Reply("Four.", finish_reason="stop", logprobs=tokens(written))
    assert (unread(stripped, SUM) is not None) is lost
    assert verdict(judge_reasoning_apart(stripped)) == (
        "fail configuration" if lost else "inconclusive model"
    )


def test_written_text_in_either_spelling() -> None:
    spelled = (
        {"id": 1, "token": "\u0120Hi"},
        {},
        {"token": "\u010a"},
        {"token": "\u2581x", "bytes": None},
        7,
    )
    assert Reply(logprobs=spelled).written == " Hi\n x"
    assert Reply(logprobs=tokens("Zürich ☔")).written == "Zürich ☔"
    assert Reply(logprobs=({"bytes": [300], "token": "a"}, {"bytes": "x"})).written == "a"
    assert (
        Reply(logprobs=({"token": "\u0120K\u00c3\u00b6ln"}, {"token": "<|im_end|>"})).written
        == " Köln<|im_end|>"
    )
    assert Reply(logprobs=({"token": "\u2581K\u00f6ln"},)).written == " Köln"
    assert Reply().written == ""


def test_a_number_written_as_text_is_the_parsers_doing() -> None:
    tool = json.loads(json.dumps(WEATHER_TOOL))
    tool["function"]["parameters"]["properties"]["days"] = {"type": "array"}
    prompt = type(WEATHER)("days", WEATHER.messages, (tool,), WEATHER.expects)
    assert verdict(judge_call(called('{"location": "Paris", "days": [1, 2]}'), prompt)) == "pass"
    assert (
        verdict(judge_call(called('{"location": "Paris", "days": "[1, 2]"}'), prompt)) == "fail configuration"
    )
    assert verdict(judge_call(called('{"location": "Paris", "days": "two"}'), prompt)) == "inconclusive model"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (said("Hello!"), "pass"),
        (said("Hello!", "A greeting."), "pass"),
        (said("", "Hello!"), "fail configuration"),
        (said("", "", wrote=12), "fail configuration"),
        (said("", "", wrote=1), "inconclusive unexplained"),
        (said("Hello!", finish=None), "fail engine"),
        (called(), "fail engine"),
        (said("Hello!<|im_end|>\n<|im_start|>user", finish="length"), "fail configuration"),
        (said("Hello!\nuser\nSay hello.\nassistant\nHello!", finish="length"), "fail configuration"),
        (said("", "Hm, hm, hm", finish="length"), "inconclusive model"),
    ],
)
def test_plain_chat(reply: Reply, expected: str) -> None:
    assert verdict(judge_plain_chat(reply)) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (said("Four.", "Add them."), "pass"),
        (said("Four."), "inconclusive model"),
        (said("<think>\nAdd.\n</think>\n\nFour."), "fail configuration"),
        (said("Add.\n</think>\n\nFour."), "fail configuration"),
        (said("<thought>Add.</thought>Four."), "fail configuration"),
        (said("<ponder>Add.</ponder>Four."), "fail configuration"),
        (said("[THINK]Add.[/THINK]Four."), "fail configuration"),
        (said("Four.", "Add.</think>"), "fail configuration"),
        (said("", "Add them. Four."), "fail configuration"),
        (said("Four.", "Four."), "fail configuration"),
        (said("", "Add them", finish="length"), "inconclusive model"),
    ],
)
def test_reasoning(reply: Reply, expected: str) -> None:
    assert verdict(judge_reasoning_apart(reply)) == expected


@pytest.mark.parametrize(
    "token",
    ["<|im_end|>", "<|eot_id|>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "</s>", "<eos>", "<end_of_turn>",
     "<|end|>", "[/INST]", "<channel|>", "<|channel>", "<unused94>", "<|return|>"],
)  # fmt: skip
def test_control_tokens_are_seen_anywhere(token: str) -> None:
    assert leak(said("Hello!")) is None
    for reply in (
        said(f"Hello!{token}"),
        said("Hi", f"{token}A greeting."),
        called(f'{{"location": "Paris{token}"}}'),
    ):
        found = leak(reply)
        assert found is not None
        assert token.casefold() in words(found).casefold()


@pytest.mark.parametrize(
    "text", ["1 < 2 and 3 > 2", "a | b", "[1, 2]", "List<String>", "x <- y", "<3", "I think so."]
)
def test_ordinary_text_holds_no_markup(text: str) -> None:
    assert control_token(text) is None
    assert thinking_markup(text) is None
    assert leak(said(text)) is None


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (said("It is snowy in Paris."), "pass"),
        (said("Minus three: -3 °C."), "pass"),
        (said("It is sunny in Paris."), "inconclusive model"),
        (called(), "inconclusive model"),
        (replace(called(), content="It is snowy."), "inconclusive model"),  # a call beside an echo
        (said(f"{CALL} snowy -3"), "fail configuration"),
        (said("", "", wrote=9), "fail configuration"),
    ],
)
def test_tool_result(reply: Reply, expected: str) -> None:
    assert verdict(judge_tool_result_turn(reply)) == expected


def test_only_a_pass_and_what_does_not_apply_count() -> None:
    outcomes: list[Outcome] = [
        Pass(as_reason("x")),
        NotApplicable(as_reason("x")),
        Inconclusive(as_reason("x"), Stage.DRAWN),
        Fail(as_reason("x"), Stage.WHOLE),
    ]
    assert [counts_as_passed(o) for o in outcomes] == [True, True, False, False]


def test_promises() -> None:
    document = {
        "name": "m",
        "backend": "vllm",
        "parameters": {"model": "m", "temperature": 0.6},
        "options": ["tool_parser:hermes", "reasoning_parser: qwen3", "other:1"],
        "max_model_len": 1000,
        "importer": {"client_sampling": {"repeat_penalty": 1.1, "top_k": 20}},
    }
    assert promise_of(document) == Expectations(
        tool_parser="hermes",
        reasoning_parser="qwen3",
        client_sampling={"repetition_penalty": 1.1, "top_k": 20},
        max_tokens=500,
        sampling={"temperature": 0.6},
        context=1000,
    )
    bare = promise_of({"name": "m", "options": ["tool_parser:null"], "importer": None})
    assert (bare.tool_parser, bare.reasoning_parser, bare.client_sampling) == (None, None, {})
    assert (no_chat(bare), bool(no_tools(bare)), bool(no_reasoning(bare))) == (None, True, True)
    base = promise_of({"name": "m", "options": ["tool_parser:x"], "importer": {"kind": "base"}})
    assert no_chat(base)
    assert no_tools(base) == no_chat(base)


def test_what_an_engine_lacks_is_a_reason_and_what_nobody_knows_is_none() -> None:
    some = Expectations(offers=frozenset({"stop", "logprobs"}))
    assert some.lacks("stop") is None
    assert some.lacks("stop", "seed", "tokenize") == Reason(
        PromiseReason.NOT_OFFERED, names=("seed", "tokenize"), engine=""
    )
    assert Expectations().lacks("seed") is None


@pytest.mark.parametrize(
    ("came", "expected", "sentence"),
    [
        (0, 2, "it: 0, not 2"),
        (None, "stop", "it: none, not stop"),
        ("", "stop", "it: '', not stop"),
        (quoted("Hello!"), None, "it: 'Hello!'"),
        ([math.nan, 1.0], "numbers", "it: [nan, 1.0], not numbers"),
        ("x" * 10_000, None, f"it: {'x' * QUOTED}"),
        ([1.5] * 10_000, None, f"it: {str([1.5] * 10_000)[:QUOTED]}"),
        (10**4000, None, f"it: {str(10**4000)[:QUOTED]}"),
        ("a\ud83d", None, "it: a?"),
    ],
)
def test_a_comparison_is_one_short_sentence_that_any_reader_takes(
    came: object, expected: object, sentence: str
) -> None:
    report = Report({}, "", {}, (ProbeRow("p", "", differs("it", came, expected)),)).to_json()
    text = json.dumps(report, ensure_ascii=False, allow_nan=False).encode().decode()
    assert json.loads(text)["outcomes"][0]["reason"] == sentence


def test_two_calls_for_something_else_show_the_same() -> None:
    one, other = (judge_call(called(json.dumps({"location": city})), WEATHER) for city in ("Oslo", "Rome"))
    assert one.shows(other.seen)
    assert one.reason != other.reason
