"""Reading answers: whole or streamed, in any cut, well-formed or not."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from importer.validation.errors import ReplyError
from importer.validation.probes.chat import stream_form
from importer.validation.reply import (
    Delta,
    Reply,
    ToolCall,
    Usage,
    assemble,
    event_texts,
    from_completion,
    from_stream,
    from_whole,
)
from tests.tiers import one_of_each


def chunk(**delta: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def call_part(index: int = 0, **function: str) -> dict[str, object]:
    head = {"id": function.pop("id")} if "id" in function else {}
    return {"index": index, **head, "function": function}


def stream(*objects: object, end: str = "\n\n", done: bool = True) -> bytes:
    events = [f"data: {json.dumps(o)}" for o in objects] + (["data: [DONE]"] if done else [])
    return (end.join(events) + end).encode()


UNTIMED = settings(deadline=None)  # a loaded machine is no failure
FINISH = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
USAGE = {
    "choices": [],
    "usage": {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 8}},
}
CALL = (
    chunk(role="assistant", content=""),
    chunk(reasoning="Ich brauche "),
    chunk(reasoning_content="das Wetter ☔."),
    chunk(tool_calls=[call_part(id="a1", name="get_weather", arguments="")]),
    chunk(tool_calls=[call_part(arguments='{"location":')]),
    chunk(tool_calls=[call_part(arguments=' "Zürich"}')]),
    FINISH,
    USAGE,
)
EXPECTED = Reply(
    reasoning="Ich brauche das Wetter ☔.",
    tool_calls=(ToolCall(0, "a1", "get_weather", '{"location": "Zürich"}'),),
    finish_reason="tool_calls",
    usage=Usage(9, 4, 8),
)


def cut(body: bytes, places: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(p % (len(body) + 1) for p in places), len(body)]  # a piece may be empty
    return [body[a:b] for a, b in pairwise(edges)]


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"])
@UNTIMED
@given(places=st.lists(st.integers(min_value=0)))
def test_cuts_do_not_matter(end: str, places: list[int]) -> None:
    body = b"\xef\xbb\xbf: keepalive 1/2" + end.encode() + stream(*CALL, end=end)
    assert from_stream(cut(body, places)) == EXPECTED


def test_a_whole_answer_is_the_same_reply() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "reasoning": EXPECTED.reasoning,
        "tool_calls": [{"id": "a1", "type": "function",
                        "function": {"name": "get_weather", "arguments": '{"location": "Zürich"}'}}],
    }  # fmt: skip
    body = {"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": USAGE["usage"]}
    assert from_whole(json.dumps(body).encode()) == EXPECTED


def test_both_names_of_reasoning_are_one_reasoning() -> None:
    message = {"content": "4", "reasoning": "Add.", "reasoning_content": "Add."}
    body = {"choices": [{"message": message, "finish_reason": "stop"}]}
    assert from_whole(json.dumps(body).encode()).reasoning == "Add."


def test_parallel_calls_are_kept_apart_by_index() -> None:
    parts = [
        chunk(tool_calls=[call_part(1, id="b", name="f", arguments='{"x"'), call_part(0, id="a", name="g")]),
        chunk(tool_calls=[call_part(0, arguments="{}")]),
        chunk(tool_calls=[call_part(1, arguments=": 1}")]),
    ]
    reply = from_stream([stream(*parts)])
    assert reply.tool_calls == (ToolCall(0, "a", "g", "{}"), ToolCall(1, "b", "f", '{"x": 1}'))


def test_data_on_several_lines_is_one_event() -> None:
    assert [*event_texts([b"event: x\ndata: {\ndata\ndata:  1}\nid: 3\n\n"])] == ["{\n\n 1}"]


def test_an_event_without_its_blank_line_counts_at_the_end() -> None:
    body = stream(*CALL).removesuffix(b"\n\n")
    assert from_stream([body]) == EXPECTED


short = st.text(max_size=5)
parts = st.builds(ToolCall, st.integers(0, 2), id=st.just(""), name=short, arguments=short)
deltas = st.builds(
    Delta,
    content=short,
    reasoning=short,
    tool_calls=st.lists(parts, max_size=3).map(tuple),
    logprobs=st.lists(st.integers(), max_size=2).map(tuple),
)


@UNTIMED
@given(st.lists(deltas, max_size=8), st.integers(0, 8))
def test_assembling_in_two_steps_is_assembling_once(parts: list[Delta], at: int) -> None:
    first, second = assemble(parts[:at]), assemble(parts[at:])
    joined = assemble(
        Delta(r.content, r.reasoning, r.tool_calls, logprobs=r.logprobs) for r in (first, second)
    )
    assert joined == assemble(parts)


KEYS = [
    "choices", "delta", "message", "tool_calls", "function", "content", "usage", "index", "error", "logprobs",
]  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@UNTIMED
@given(st.binary(max_size=200) | json_values.map(lambda v: json.dumps(v).encode()))
def test_garbage_is_a_typed_error_or_a_reply_whole(body: bytes) -> None:
    with suppress(ReplyError):
        assert isinstance(from_whole(body), Reply)


@UNTIMED
@given(
    st.lists(json_values, max_size=4), st.binary(max_size=60), st.lists(st.integers(min_value=0), max_size=5)
)
def test_garbage_is_a_typed_error_or_a_reply_streamed(
    values: list[object], tail: bytes, places: list[int]
) -> None:
    with suppress(ReplyError):
        assert isinstance(from_stream(cut(stream(*values, done=False) + tail, places)), Reply)


def test_deep_nesting_is_a_typed_error() -> None:
    with pytest.raises(ReplyError, match="not JSON"):
        from_whole(b"[" * 100_000)


CHOICE = {"delta": {"content": "x"}, "finish_reason": "stop"}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (stream(chunk(content="Hel"), done=False), "cut before its end"),
        (stream() + stream(CHOICE), "goes on after"),
        (b"data: \xff\xfe\n\n", "not UTF-8"),
        (b"data: Internal Server Error\n\n", "not JSON: 'Internal Server Error'"),
        (stream({"error": {"message": "out of memory", "code": 500}}), "reports an error: out of memory"),
        (stream({"object": "chunk"}), "no list of choices"),
        (stream(chunk(tool_calls=[{"function": {"name": "f"}}])), "no index"),
        (stream(chunk(tool_calls=[call_part() | {"index": 1}])), "have the indexes 1, and none is 0"),
        (
            stream(chunk(tool_calls=[call_part() | {"function": {"name": "f", "arguments": {}}}])),
            "`arguments` is not text",
        ),
        (stream(chunk(content=["Hello"])), "`content` is not text"),
        (stream(chunk(tool_calls={"name": "f"})), "`tool_calls` is not a list"),
        (stream({"choices": [CHOICE | {"logprobs": {"content": 3}}]}), "not a list"),
        (stream({"choices": [], "usage": {"prompt_tokens": "9"}}), "not a number of tokens"),
    ],
)
def test_what_a_stream_may_not_be(body: bytes, says: str) -> None:
    with pytest.raises(ReplyError, match=says):
        from_stream([body])


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not JSON"),
        (b"[]", "not an object"),
        (b'{"choices": []}', "no choice"),
        (b'{"detail": "Not Found"}', "no list of choices"),
        (b'{"error": "bad request"}', "reports an error: bad request"),
    ],
)
def test_what_a_whole_answer_may_not_be(body: bytes, says: str) -> None:
    with pytest.raises(ReplyError, match=says):
        from_whole(body)


# Recorded by ``python -m tests.record_streams`` from the engines named, which served the demo model.
RECORDED = sorted((Path(__file__).parents[1] / "fixtures" / "streams").iterdir())
ENGINES = ["mlx-lm-0.32.2", "mlx-vlm-0.7.10", "vllm-0.32.0", "vllm-mlx-0.6.0"]
CASES = {
    "greeting": ("This is a greeting.", "Hello! How can I help you today?", [], "stop"),
    "weather": ("I need the tool.", "", ["Paris"], "tool_calls"),
    "two-cities": ("I need the tool.", "", ["Paris", "Rome"], "tool_calls"),
    "sum-with-tokens": ("This is a sum.", "Two plus two is four.", [], "stop"),
    "thought-cut": ("This is", "", [], "length"),
}
TOKENLESS = ["vllm-mlx-0.6.0"]  # it has no log-probabilities
# (engine, case): a whole answer that its parsers read otherwise than the stream.
UNSPLIT = {("vllm-mlx-0.6.0", "thought-cut"): "<think>\nThis is"}
# (engine, case): the stream as it stands differs from the whole, or ends in an error.
BROKEN = {("mlx-vlm-0.7.10", "call-cut"): "Generation ended with an incomplete tool call"}


def test_every_engine_is_recorded() -> None:
    assert [folder.name for folder in RECORDED] == ENGINES
    for folder in RECORDED:
        assert {p.stem for p in folder.iterdir()} == {*CASES, "call-cut"}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("folder", one_of_each(RECORDED, tier="slow"), ids=lambda folder: folder.name)
@given(places=st.lists(st.integers(min_value=0), max_size=6))
def test_recorded_streams_give_the_recorded_whole(folder: Path, case: str, places: list[int]) -> None:
    whole = from_whole((folder / f"{case}.json").read_bytes())
    body = (folder / f"{case}.sse").read_bytes()
    streamed = from_stream(cut(body, places))
    unsplit = UNSPLIT.get((folder.name, case))
    assert (
        stream_form(streamed) == stream_form(whole)
        if unsplit is None
        else (whole.reasoning, whole.content) == ("", unsplit)
    )
    assert streamed == from_stream([body])
    reasoning, content, cities, finish = CASES[case]
    assert (streamed.reasoning.strip(), streamed.content.strip()) == (reasoning, content)
    assert [json.loads(c.arguments) for c in streamed.tool_calls] == [{"location": c} for c in cities]
    assert [(c.index, c.name) for c in streamed.tool_calls] == [
        (n, "get_weather") for n in range(len(cities))
    ]
    assert len({c.id for c in streamed.tool_calls} - {""}) == len(cities)
    assert streamed.finish_reason == finish
    assert streamed.usage.prompt == whole.usage.prompt


@pytest.mark.parametrize("folder", RECORDED, ids=lambda folder: folder.name)
def test_recorded_streams_in_other_lines(folder: Path) -> None:
    """As a proxy might pass them on: CRLF, comments in between, the last word missing."""
    for case in CASES:
        body = (folder / f"{case}.sse").read_bytes()
        passed_on = b": ping\r\n\r\n" + body.replace(b"\n", b"\r\n").replace(b"data: [DONE]", b": bye")
        assert from_stream([passed_on]) == from_stream([body])


@pytest.mark.parametrize(
    "folder", [f for f in RECORDED if f.name not in TOKENLESS], ids=lambda folder: folder.name
)
def test_recorded_tokens_are_what_was_written(folder: Path) -> None:
    replies = [from_whole((folder / "sum-with-tokens.json").read_bytes())]
    if folder.name.split("-")[0] != "mlx" or "vlm" in folder.name:  # mlx-lm streams none
        replies.append(from_stream([(folder / "sum-with-tokens.sse").read_bytes()]))
    for reply in replies:
        written = reply.written.removesuffix("<|im_end|>")
        assert written == "<think>\nThis is a sum.\n</think>\n\nTwo plus two is four."


@pytest.mark.parametrize("folder", RECORDED, ids=lambda folder: folder.name)
def test_a_recorded_call_that_was_cut(folder: Path) -> None:
    whole = from_whole((folder / "call-cut.json").read_bytes())
    assert whole.finish_reason == "length"
    streamed = (folder / "call-cut.sse").read_bytes()
    if (says := BROKEN.get((folder.name, "call-cut"))) is not None:
        with pytest.raises(ReplyError, match=says):
            from_stream([streamed])
    else:
        assert from_stream([streamed]).finish_reason == "length"


def test_cached_tokens_are_read_where_an_engine_counts_them() -> None:
    cached = {
        folder.name: from_whole((folder / "weather.json").read_bytes()).usage.cached is not None
        for folder in RECORDED
    }
    assert cached == {
        "mlx-lm-0.32.2": True,
        "mlx-vlm-0.7.10": True,
        "vllm-0.32.0": False,
        "vllm-mlx-0.6.0": False,
    }


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"choices": []}', b'{"choices": [{"text": 3}]}', b'{"error": "no"}']
)
def test_a_plain_completion_is_text_or_a_typed_error(body: bytes) -> None:
    assert (
        from_completion(b'{"choices": [{"text": " Paris.", "finish_reason": "stop"}]}').content == " Paris."
    )
    with pytest.raises(ReplyError):
        from_completion(body)


def test_a_name_in_pieces_and_another_role_are_none_of_the_format() -> None:
    pieces = (chunk(tool_calls=[call_part(id="a1", name=part, arguments="")]) for part in ("get_", "weather"))
    with pytest.raises(ReplyError, match="in 2 pieces"):
        from_stream([stream(*pieces, FINISH)])
    with pytest.raises(ReplyError, match="role of an answer"):
        from_stream([stream(chunk(role="user", content="Hi"), FINISH)])
