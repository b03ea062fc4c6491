"""What a model wrote beside what its template writes, and what the proof knows of other parsers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from importer.proof.parser_verdict import ParserVerdict
from importer.proof.result import Proof
from importer.sentences import render
from importer.validation import proof_check
from importer.validation.calls import judge_call
from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.expectations import Expectations
from importer.validation.outcome import Fail
from importer.validation.probes.server import settings_read_back
from importer.validation.prompts import WEATHER
from importer.validation.reply import Reply, ToolCall
from tests.facts import as_reason
from tests.judging import CALL, asked, remedy, verdict
from tests.validation.test_validation_judges import WRITTEN


@pytest.mark.parametrize("text", [w for w in WRITTEN if not w.startswith("functions")])
def test_a_call_as_the_template_writes_it(text: str) -> None:
    rendered = f"<|user|>Weather?<|assistant|>\n{text}<|im_end|>\n<|tool|>snow"
    assert proof_check.as_rendered(f"<think>\nLet me see.\n</think>\n\n{text}<|im_end|>", rendered)
    assert not proof_check.as_rendered("I cannot.", rendered)
    assert not proof_check.as_rendered(f"{text}\n<|user|>\n{text}", rendered)
    assert not proof_check.as_rendered(text + "<|user|>" + "again and again " * 10, rendered)


def test_a_call_in_another_form_than_the_templates() -> None:
    rendered = f"<tool_call>\n{CALL}\n</tool_call>"
    for other in WRITTEN[3:]:
        assert not proof_check.as_rendered(other, rendered), other


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (CALL, "fail configuration"),
        ("<tool_call>get_weather\n<arg_key>location</arg_key>\n<arg_value>Paris", "fail configuration"),
        ('{"name": "get_weather", "arguments": {}}', "inconclusive model"),
        ("", "inconclusive model"),
    ],
)
def test_an_argument_that_was_written_and_did_not_arrive(written: str, expected: str) -> None:
    empty = (ToolCall(0, "call_1", "get_weather", "{}"),)
    reply = Reply(tool_calls=empty, finish_reason="tool_calls", behind=written)
    assert verdict(judge_call(reply, WEATHER)) == expected


def test_an_argument_that_was_not_written_is_seen_beside_the_calls_own_tokens_alone() -> None:
    text = '{"name": "get_weather", "arguments": {"place": "Paris"}}'
    call = (ToolCall(0, "call_1", "get_weather", '{"location": "Paris"}'),)
    beside = Reply(tool_calls=call, finish_reason="tool_calls", behind=text)
    assert verdict(judge_call(beside, WEATHER)) == "pass"
    own = replace(beside, behind="", logprobs=({"token": text},))
    assert verdict(judge_call(own, WEATHER)) == "fail configuration"


@pytest.mark.parametrize(
    ("alone", "expected"),
    [
        (CALL, "fail configuration"),
        ('{"name": "get_weather", "arguments": {}}', "inconclusive model"),
        ('{"name": "get_time", "arguments": {"location": "Paris"}}', "inconclusive model"),
    ],
)
def test_an_engine_that_lets_a_call_be_written_in_its_parsers_format_only(
    alone: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM holds the model to the format of the parser that is named; left alone it writes its own."""
    shown = "<tool_call>get_weather</tool_call>"
    reply = Reply(
        tool_calls=(ToolCall(0, "c", "get_weather", "{}"),), finish_reason="tool_calls", behind=shown
    )
    monkeypatch.setattr(Context, "raw", lambda *_: alone)
    ctx = asked(lambda _: reply, monkeypatch)
    assert verdict(ctx.judged(WEATHER, lambda answer: judge_call(answer, WEATHER))) == expected


@pytest.mark.parametrize(("named", "told"), [("a", "Set tool_parser:b in options"), ("b", ""), (None, "")])
def test_a_parser_that_the_proof_refutes_is_told_by_every_engine(named: str | None, told: str) -> None:
    verdicts = (
        ParserVerdict("a", "A", (), {"call": as_reason("no call")}, ("call",)),
        ParserVerdict("b", "B", ("call",), {}, ("call",)),
    )
    proof = Proof("mlx", "1", "", {"tool_parser": verdicts}, {}, inferred={"tool_parser": "b"})
    ctx = Context(Expectations(tool_parser=named), "m", Client("http://127.0.0.1:1"), proof=proof)
    found = settings_read_back.run(ctx)
    assert isinstance(found, Fail) is bool(told)
    if isinstance(found, Fail):
        assert remedy(found).startswith(told)
        assert found.attribution == "configuration"


@pytest.mark.parametrize(
    ("reasoning", "tool", "told"),
    [
        ("x", "a", "Set reasoning_parser:y in options: it reads what the template writes; x does not"),
        ("x", "b", None),
        ("y", "a", None),
        ("x", "c", "Set tool_parser:a in options: it reads what the template writes; c does not (alone)"),
    ],
)
def test_a_partner_beside_which_streams_lose_a_call_is_exchanged(
    reasoning: str, tool: str, told: str | None
) -> None:
    tools, thoughts = (
        tuple(ParserVerdict(name, name, ("one",), {}, ("one",)) for name in names) for names in ("ab", "xy")
    )
    tools += (ParserVerdict("c", "c", ("one",), {}, ("one",), streaming=as_reason("alone")),)
    verdicts = {"tool_parser": tools, "reasoning_parser": thoughts}
    pairs = {"x": {"a": as_reason("other"), "c": as_reason("other")}, "y": {"c": as_reason("other")}}
    proof = Proof("vllm", "1", "", verdicts, {}, pairs=pairs)
    promise = Expectations(tool_parser=tool, reasoning_parser=reasoning)
    ctx = Context(promise, "m", Client("http://127.0.0.1:1"), proof=proof)
    change = proof_check.whole_in_pieces(ctx)
    assert (change is None) is (told is None)
    if change is not None:
        assert render(change).startswith(str(told))
