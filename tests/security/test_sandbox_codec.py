"""What crosses to the sandbox and back is what it was; what is not of the declared type is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.errors import HubError, UsageError
from importer.reasons import Reason
from importer.sandbox import SandboxReason
from importer.sandbox.codec import CodecError, codec_of, decode_error, encode_error


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Leaf:
    name: str


@dataclass(frozen=True)
class Tree:
    leaf: Leaf | None = None
    either: Leaf | Path = Path("x")
    pair: tuple[int, str] = (1, "a")
    many: tuple[Leaf, ...] = ()
    named: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    words: frozenset[str] = frozenset()
    colour: Colour = Colour.RED
    side: Literal["left", "right"] = "left"
    why: Reason | None = None
    value: Any = None
    numbers: Mapping[int, float] = field(default_factory=dict)


def passed(kind: Any, value: Any) -> Any:
    form = codec_of(kind)
    return form.decode(json.loads(json.dumps(form.encode(value))))


REASON = Reason(
    SandboxReason.TIME, seconds=1.5, inner=Reason(SandboxReason.DEPTH), names=("a", "b"), place=Path("/x")
)


@pytest.mark.parametrize(
    "tree",
    [
        Tree(),
        Tree(Leaf("a"), Leaf("b"), many=(Leaf("c"), Leaf("d")), words=frozenset("xy"), side="right"),
        Tree(why=REASON, value={"a": [1, None, {"$": "x"}, REASON]}, numbers={1: 0.5}),
        Tree(value={1: "a", ("b", 2): "c"}, named={"a": ["\ud800", 1e400]}),
    ],
    ids=["empty", "nested", "reasons", "odd"],
)
def test_what_crosses_is_what_it_was(tree: Tree) -> None:
    assert passed(Tree, tree) == tree


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["$", "of", "a"]), inner),
    max_leaves=10,
)


@given(JSON)
def test_any_json_crosses(value: Any) -> None:
    assert passed(Any, value) == value


@given(JSON)
def test_whatever_a_child_says_is_a_tree_or_refused(raw: Any) -> None:
    try:
        found = codec_of(Tree).decode(raw)
    except (CodecError, TypeError, ValueError, KeyError, IndexError):
        return
    assert isinstance(found, Tree)


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        (int, "1"), (tuple[str, ...], "abc"), (Literal["a"], "b"), (Reason, ["os:environ.x", {}]),
        (Reason, ["importer.sandbox.task:SandboxReason.NONE", {}]),
        (Reason, ["importer.sandbox.task:TASKS.count", {}]),
        (Any, {"$": "enum", "of": "signal:Signals.SIGKILL"}),
    ],
)  # fmt: skip
def test_what_is_not_of_the_type_is_refused(kind: Any, raw: Any) -> None:
    with pytest.raises((CodecError, ValueError)):
        codec_of(kind).decode(raw)


def test_errors_cross() -> None:
    for error in (
        UsageError("bad-option", option="--x", problem="no"),
        HubError("gated", repo="a", url="b", said=""),
    ):
        back = decode_error(json.loads(json.dumps(encode_error(error))))
        assert (type(back), back.kind, back.details, str(back)) == (
            type(error), error.kind, error.details, str(error)
        )  # fmt: skip
