"""What a server makes of an answer is told exactly: which part, and how it differs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.reasons import Reason
from importer.sentences import render
from importer.validation import failures
from importer.validation.client import Client, Exchange
from importer.validation.context import Context
from importer.validation.errors import ReplyError, StreamCut
from importer.validation.expectations import Expectations
from importer.validation.mutations import Alteration, AnswerChange, told
from importer.validation.remedy import WHOLE_ANSWERS, Remedy
from importer.validation.reply import Reply, ReplyReason, ToolCall, from_stream
from tests.validation.test_validation_client import http, server

CALL = ToolCall(0, "a", "get_weather", '{"location": "Paris"}')
OWN = Reply("It is “sunny” in Zürich & so.", "I look it up first.", (CALL,), "tool_calls")


def changed(**parts: Any) -> Reply:
    """The answer with other parts."""
    held = {"content": OWN.content, "reasoning": OWN.reasoning, "tool_calls": OWN.tool_calls}
    return Reply(**{**held, "finish_reason": OWN.finish_reason, **parts})


@pytest.mark.parametrize(
    ("came", "kind"),
    [
        (changed(reasoning=""), AnswerChange.THOUGHTS_LEFT_OUT),
        (changed(reasoning="", content=f"<think>{OWN.reasoning}</think>{OWN.content}"),
         AnswerChange.THOUGHTS_IN_TEXT),
        (changed(content="", reasoning=OWN.reasoning + OWN.content), AnswerChange.TEXT_IN_THOUGHTS),
        (changed(tool_calls=()), AnswerChange.CALLS_LEFT_OUT),
        (changed(tool_calls=(), content=OWN.content + ' {"name": "get_weather"}'),
         AnswerChange.CALLS_IN_TEXT),
        (changed(tool_calls=(CALL, CALL)), AnswerChange.CALLS_ADDED),
        (changed(tool_calls=(ToolCall(0, "a", "mcp_get_weather", CALL.arguments),)), AnswerChange.OTHER_NAME),
        (changed(tool_calls=(ToolCall(0, "a", CALL.name, ""),)), AnswerChange.OTHER_ARGUMENTS),
        (changed(finish_reason="stop"), AnswerChange.OTHER_END),
        (changed(content=""), AnswerChange.PART_LEFT_OUT),
        (changed(content=OWN.content * 2), AnswerChange.REPEATED),
        (changed(content=OWN.content[:9] + OWN.content), AnswerChange.BEGUN_AGAIN),
        (changed(content="It is is “sunny” in  Zürich & so.."), AnswerChange.PIECES_REPEATED),
        (changed(content=OWN.content[:-5]), AnswerChange.END_LOST),
        (changed(content=OWN.content[5:]), AnswerChange.BEGINNING_LOST),
        (changed(content=OWN.content.replace("ü", "\ufffd\ufffd")), AnswerChange.LETTERS_BROKEN),
        (changed(content=OWN.content.encode("ascii", "ignore").decode()), Alteration.NON_ASCII_DROPPED),
        (changed(content=OWN.content.encode().decode("latin-1")), Alteration.LATIN_1),
        (changed(content=OWN.content.replace("&", "&amp;")), Alteration.HTML_ESCAPED),
        (changed(content=json.dumps(OWN.content)[1:-1]), AnswerChange.ESCAPED),
        (changed(content=OWN.content.replace(" ", "")), AnswerChange.SPACES_CHANGED),
        (changed(content="[ad] " + OWN.content), AnswerChange.TEXT_ADDED),
        (changed(content=OWN.content.replace("sunny", "rainy")), AnswerChange.WORDS_CHANGED),
    ],
)  # fmt: skip
def test_each_change_of_an_answer_has_its_name(came: Reply, kind: AnswerChange) -> None:
    change = told(OWN, came)
    assert change is not None
    assert change.kind is kind
    assert render(Reason(Remedy.ANSWERS_UNALTERED, change=change))


@pytest.mark.parametrize(
    ("own", "came", "change"),
    [
        ("tail<end>", "tail", "the end of the content is lost"),
        ("<b>tail", "tail", "the beginning of the content is lost"),
        ("<b>tail</b> it", "tail it", "markup in the content is left out"),
    ],
)
def test_an_edge_that_is_lost_is_no_markup_that_is_left_out(own: str, came: str, change: str) -> None:
    told_of = told(Reply(own), Reply(came))
    assert told_of is not None
    assert render(told_of) == change


@given(st.text(), st.text(), st.sampled_from(["stop", "length", None]))
def test_an_answer_differs_from_itself_in_nothing_but_edges(text: str, thought: str, end: str | None) -> None:
    own = Reply(text, thought, (CALL,), end)
    assert (
        told(own, Reply(f" {text}\n", thought, (ToolCall(0, "b", CALL.name, CALL.arguments),), end)) is None
    )
    if text.strip():
        change = told(own, Reply("", thought, (CALL,), end))
        assert change is not None
        assert change.kind in (AnswerChange.PART_LEFT_OUT, AnswerChange.TEXT_IN_THOUGHTS)


def events(*chunks: str) -> list[bytes]:
    return [f"data: {chunk}\n\n".encode() for chunk in chunks]


def test_a_null_in_a_piece_of_a_call_is_no_text() -> None:
    first = '{"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f"}}]}}]}'
    later = '{"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": null}}]}}]}'
    with pytest.raises(ReplyError) as nulled:
        from_stream(events(first, later))
    assert nulled.value.reason == Reason(ReplyReason.CALL_NULLED, key="name")


def test_events_without_empty_lines_between_them_are_told_from_broken_ones() -> None:
    one = '{"choices": [{"delta": {"content": "a"}}]}'
    with pytest.raises(ReplyError) as joined:
        from_stream([f"data: {one}\ndata: {one}\n\n".encode()])
    assert joined.value.reason.kind is ReplyReason.EVENTS_JOINED
    with pytest.raises(ReplyError) as broken:
        from_stream(events(one[:-3]))
    assert broken.value.reason.kind is ReplyReason.NOT_JSON


LONG = b'data: {"choices": [{"delta": {"content": "one two"}}]}\n\n'
END = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ([LONG, LONG, LONG + END], Remedy.LONGER_STREAMS),  # twice again cut, and a short one whole
        ([LONG, LONG, LONG], Remedy.WHOLE_ANSWERS),
        ([LONG + END], Remedy.WHOLE_ANSWERS),
    ],
)
def test_a_stream_that_is_cut_each_time_has_a_limit(answers: list[bytes], kind: Remedy) -> None:
    left = iter(answers)
    with server(lambda connection: connection.sendall(http(next(left)))) as url:
        cut = Exchange(
            "POST", "/v1/chat/completions", {"messages": [], "stream": True}, received=bytearray(LONG)
        )
        ctx = Context(Expectations(), "m", Client(url), log=[cut])
        found = failures.broken(StreamCut(Reason(ReplyReason.CUT)), ctx)
    assert found is not None
    assert found.kind is kind
    assert kind is Remedy.WHOLE_ANSWERS or found.fields["size"] == len(LONG)
    assert found == WHOLE_ANSWERS or render(found)


def test_a_whole_answer_in_place_of_a_stream_is_an_option_that_was_ignored() -> None:
    whole = b'{"choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}]}'
    log = [Exchange("POST", "/v1/chat/completions", {"stream": True}, received=bytearray(whole))]
    ctx = Context(Expectations(), "m", Client("http://127.0.0.1:1"), log=log)
    assert failures.broken(StreamCut(Reason(ReplyReason.CUT)), ctx) == Reason(
        Remedy.HEED_OPTIONS, option="stream"
    )


def test_pieces_with_all_that_came_before_are_told_by_the_pieces() -> None:
    texts = ("This", "This is", "This is a greeting.")
    pieces = tuple({"choices": [{"delta": {"content": text}}]} for text in texts)
    came = Reply("".join(texts), finish_reason="stop", raw=pieces)
    change = told(Reply(texts[-1], finish_reason="stop"), came)
    assert change == Reason(AnswerChange.ALL_IN_EACH_PIECE, part="content")
    twice = told(Reply(texts[-1], finish_reason="stop"), Reply(texts[-1] * 2, finish_reason="stop"))
    assert twice is not None
    assert twice.kind is AnswerChange.REPEATED


def test_fields_with_other_names_are_told() -> None:
    renamed = ({"choices": [{"message": {"toolCalls": []}, "finishReason": "stop"}]},)
    change = told(OWN, Reply(raw=renamed))
    assert change == Reason(AnswerChange.FIELD_RENAMED, own="finish_reason", came="finishReason")
    known = ({"choices": [{"message": {"tool_calls": []}, "finish_reason": "stop", "stopReason": None}]},)
    assert told(OWN, Reply(OWN.content, OWN.reasoning, OWN.tool_calls, "tool_calls", raw=known)) is None


def test_what_was_done_to_arguments_is_told() -> None:
    escaped = ToolCall(0, "a", CALL.name, CALL.arguments.replace('"', "&quot;"))
    change = told(OWN, changed(tool_calls=(escaped,)))
    assert change is not None
    assert (change.kind, change.fields["part"]) == (Alteration.HTML_ESCAPED, "JSON of arguments")
