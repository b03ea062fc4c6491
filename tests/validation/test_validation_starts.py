"""Judging what a start, several servers or a lost connection do to requests and answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from importer.validation import failures
from importer.validation.calls import judge_call
from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.errors import AnswerFailure, ReplyError, RequestRefused, ServerUnreachable
from importer.validation.expectations import Expectations
from importer.validation.outcome import Stage
from importer.validation.probes.server import LONG
from importer.validation.probes.server import counted as counts
from importer.validation.prompts import GREETING, WEATHER
from importer.validation.remedy import Remedy
from importer.validation.reply import Reply, Usage, from_stream, from_whole
from tests.scripted import Request, serve

HELLO = ({"content": "hello"}, "stop")
CALL = {"name": "get_weather", "arguments": '{"location": "Paris"}'}


@pytest.fixture
def ctx() -> Context:
    return Context(Expectations(), "m", Client("http://127.0.0.1:1"))


@pytest.mark.parametrize(
    ("lost", "expected"), [(1, Remedy.SHORTER_KEEP_ALIVE), (2, Remedy.SHORTER_KEEP_ALIVE), (9, None)]
)
def test_a_request_that_is_answered_when_sent_again(
    lost: int, expected: Remedy | None, ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(range(lost))

    def say(_request: Request) -> tuple[Mapping[str, Any], str]:
        if next(times, None) is not None:
            raise ConnectionResetError("closed")
        return HELLO

    serve(monkeypatch, say)
    with pytest.raises(ServerUnreachable) as caught:
        ctx.ask(GREETING)
    told = failures.failed(caught.value, ctx)
    assert (told.attribution, told.remedy.kind if told.remedy else None) == ("engine", expected)
    assert told.gives(AnswerFailure.ANSWERED_AGAIN) is (expected is not None)


@pytest.mark.parametrize(
    ("status", "right", "expected"),
    [
        (404, 3, ("engine", Remedy.SERVERS_ALIKE)),  # each third one has no such model
        (502, 3, ("engine", Remedy.SERVERS_ALIKE)),
        (404, 0, ("configuration", None)),
        (502, 0, ("engine", None)),
    ],
)
def test_servers_that_take_turns_are_told_from_a_fault_of_all(
    status: int,
    right: int,
    expected: tuple[str, Remedy | None],
    ctx: Context,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = iter(range(100))

    def say(_request: Request) -> tuple[Mapping[str, Any], str]:
        if not right or next(numbers) % right == 0:
            raise RequestRefused(status, "The model does not exist")
        return HELLO

    serve(monkeypatch, say)
    with pytest.raises(RequestRefused) as caught:
        ctx.ask(GREETING)
    told = failures.failed(caught.value, ctx)
    assert (told.attribution, told.remedy.kind if told.remedy else None) == expected


@pytest.mark.parametrize("every", [2, 3, 0])
def test_servers_behind_one_address_are_alike(
    every: int, ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = iter(range(100))

    def say(request: Request) -> tuple[Mapping[str, Any], str]:
        if every and next(numbers) % every == 0:
            assert isinstance(request, dict)
            request.pop("tools")
        return HELLO

    serve(monkeypatch, say)
    found = failures.of_repetition(ctx, WEATHER, None)
    if not every:
        assert found is None
    else:
        assert found is not None
        assert (found.stage, found.attribution) == (Stage.GATEWAY, "engine")


@pytest.mark.parametrize(("first", "stage"), [(1, Stage.PROMPT), (999, None), (None, None)])
def test_a_repeated_request_with_more_tokens_is_read_twice(
    first: int | None, stage: Stage | None, ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer are those that a cache has of it, where a server does not count these."""
    serve(monkeypatch, lambda _: HELLO)
    found = failures.of_repetition(ctx, WEATHER, first)
    assert (found.stage if found else None) is stage


@pytest.mark.parametrize(
    ("chats", "texts", "expected"), [((3, 9), (2, 5), True), ((7, 7), (2, 5), True), ((7, 7), (7, 7), False)]
)
def test_counts_that_are_one_for_all_prompts_are_none(
    chats: tuple[int, int],
    texts: tuple[int, int],
    expected: bool,
    ctx: Context,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A template may leave out what is longer; no server counts a plain text by its template."""

    def usage(request: Any) -> int:
        counts, text = (texts, request["prompt"]) if "prompt" in request else (chats, str(request))
        return counts["Count" in text or text == LONG]

    monkeypatch.setattr(Client, "chat", lambda _, body, __: Reply("x", usage=Usage.of(usage(body), 1, None)))
    monkeypatch.setattr(Client, "completion", Client.chat)
    assert counts(ctx) is expected
    told = replace(ctx, promise=replace(ctx.promise, counted=expected)).first(GREETING).usage.prompt
    assert (told is not None) is expected


def test_a_prompt_of_no_token_is_not_counted_and_an_answer_of_nothing_is_a_failure(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = Usage.of(0, 0, None)
    assert (none.prompt, none.uncounted) == (None, True)
    monkeypatch.setattr(Client, "chat", lambda *_: Reply(usage=none))
    assert ctx.ask(GREETING).nothing
    counting = replace(ctx, promise=replace(ctx.promise, counted=True))
    assert counting.ask(GREETING, stream=True).nothing
    with pytest.raises(ReplyError) as caught:
        counting.ask(GREETING)
    assert caught.value.reason.kind is AnswerFailure.NOTHING


@pytest.mark.parametrize("streamed", [False, True])
def test_a_call_in_the_field_from_before_there_were_several(streamed: bool) -> None:
    part = {"role": "assistant", "content": None, "function_call": CALL}
    body = {"choices": [{"delta" if streamed else "message": part, "finish_reason": "tool_calls"}]}
    text = json.dumps(body)
    reply = from_stream([f"data: {text}\n\n".encode()]) if streamed else from_whole(text.encode())
    told = judge_call(reply, WEATHER)
    assert (told.attribution, told.remedy) == ("engine", None)
    assert Reply().old_field is None
