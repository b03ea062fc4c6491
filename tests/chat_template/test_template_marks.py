"""Cuts never fall inside a marker, whatever the texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.chat_template.markers import ENDS, SHAPE, Marks, common_prefix, mirror

MARKERS = [
    "<|im_start|>", "<tool_call>", "</tool_call>", "<think>", "</seed:think>", "[TOOL_CALLS]", "[/THINK]",
    "<｜tool▁calls▁begin｜>", "<|channel>", "<tool_call|>", "<|open|>think<|sep|>", "<function=get_weather>",
]  # fmt: skip
DECLARED = ["]<]minimax[>[", "]~b]ai", "thinking", "<|im_start|>"]
pieces = st.lists(
    st.one_of(st.sampled_from(MARKERS + DECLARED), st.text(alphabet="ab {\n<>", max_size=4)), max_size=8
)
texts = pieces.map("".join)
marks = Marks(DECLARED)


def inside(text: str, index: int) -> bool:
    spans = [(m.start(), m.end()) for m in SHAPE.finditer(text)]
    spans += [(i, i + len(d)) for d in DECLARED[:2] for i in range(len(text)) if text.startswith(d, i)]
    return any(s < index < e for s, e in spans)


@given(texts, st.integers(0, 200))
def test_a_boundary_is_outside_every_marker(text: str, index: int) -> None:
    index = min(index, len(text))
    found = marks.boundary(text, index)
    assert found <= index
    assert not inside(text, found)
    assert inside(text, index) or found == index


@given(texts, texts, texts)
def test_a_shared_start_ends_at_a_boundary_of_both(head: str, left: str, right: str) -> None:
    one, other = head + left, head + right
    length = marks.prefix(one, other)
    assert one[:length] == other[:length]
    assert not inside(one, length)
    assert not inside(other, length)


@given(texts, texts, texts)
def test_a_shared_end_begins_at_a_boundary_of_both(left: str, right: str, tail: str) -> None:
    one, other = left + tail, right + tail
    shared = marks.suffix(one, other)
    assert one.endswith(shared)
    assert other.endswith(shared)
    assert not inside(one, len(one) - len(shared))
    assert not inside(other, len(other) - len(shared))


@given(st.text(max_size=30), st.text(max_size=30))
def test_common_prefix(left: str, right: str) -> None:
    length = common_prefix(left, right)
    assert left[:length] == right[:length]
    assert length == min(len(left), len(right)) or left[length] != right[length]


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("<think>", "</think>"),
        ("<think:open>", "</think:open>"),
        ("<mm:think>", "</mm:think>"),
        ("[THINK]", "[/THINK]"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<|x:begin_think:x|>", "<|x:end_think:x|>"),
        ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    ],
)
def test_mirrors(opening: str, closing: str) -> None:
    assert mirror(opening) == closing
    assert mirror(closing) == opening


ENDINGS = [
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "</s>", "<|call|>", "<|return|>", "<end_of_turn>", "<turn|>",
]  # fmt: skip
ENDINGS += ["<seed:eos>", "<｜end▁of▁sentence｜>", "<|END_OF_TURN_TOKEN|>"]
CLOSINGS = [
    "</tool_call>", "<tool_call|>", "<|tool_call_end|>", "<｜tool▁calls▁end｜>", "<|END_ACTION|>", "</think>",
]  # fmt: skip
CLOSINGS += ["<|tool_calls_section_end|>", "<|im_end|>."]


@pytest.mark.parametrize("end", ENDINGS)
def test_ends_of_turns(end: str) -> None:
    assert ENDS.search("text" + end)


@pytest.mark.parametrize("closing", CLOSINGS)
def test_closing_markers_of_calls_end_no_turn(closing: str) -> None:
    assert not ENDS.search("text" + closing)
