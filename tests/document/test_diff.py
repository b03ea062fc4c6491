"""What differs between two documents: paths, both values, one line for each."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.document.document_keys import ABSENT, Change, differences, digest

KEYS = st.sampled_from(["a", "b", "options", "c d", "name"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.floats(-2, 2), st.text("a:-", max_size=3)
)
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(KEYS, v, max_size=3), max_leaves=8
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)
ABSENCE: Any = ABSENT


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": {"b": 0.6, "c": 1}}, {"a": {"c": 1, "b": 0.7}}, ["a.b: 0.6 → 0.7"]),
        ({}, {"a": {"b": 1, "c": None}}, ["a.b: absent → 1", "a.c: absent → null"]),
        ({"a": {"b": {"c": 1}}}, {}, ["a.b.c: 1 → absent"]),
        ({"a": {}}, {}, ["a: {} → absent"]),
        ({"a": 1}, {"a": {"b": 1}}, ['a: 1 → {"b": 1}']),
        ({"a": 1}, {"a": True}, ["a: 1 → true"]),
        ({"a": 1}, {"a": 1.0}, ["a: 1 → 1.0"]),
        ({"a": [1, 2]}, {"a": [1, 3]}, ["a: [1, 2] → [1, 3]"]),
        ({"a b": "x"}, {"a b": "ü"}, ['"a b": "x" → "ü"']),
        ({"options": ["a:1", "b:2"]}, {"options": ["a:1", "b:3:4"]}, ['options.b: "2" → "3:4"']),
        ({"options": ["a:1"]}, {}, ['options.a: "1" → absent']),
        ({"options": ["a"]}, {"options": ["a:"]}, ['options.a: null → ""']),
        ({"options": ["a:1"]}, {"options": ["a:1", "a:2"]}, ['options.a: "1" → ["1", "2"]']),
        ({"options": ["a:1", "b"]}, {"options": ["b", "a:1"]}, ['options: ["a:1", "b"] → ["b", "a:1"]']),
        ({"options": ["a:1"]}, {"options": ["a: 1"]}, ['options: ["a:1"] → ["a: 1"]']),
        ({"options": ["a:1"]}, {"options": 5}, ['options: ["a:1"] → 5']),
        (
            {"a": [{"name": "m", "x": {"y": 1, "z": 2}}]},
            {"a": [{"name": "m", "x": {"y": 3, "z": 2}}, {"name": "n"}]},
            ["a.m.x.y: 1 → 3", 'a.n.name: absent → "n"'],
        ),
        ({"a": [{"name": "m"}]}, {}, ['a: [{"name": "m"}] → absent']),
        ({"a": [{"name": "m"}]}, {"a": [{"x": 1}]}, ['a: [{"name": "m"}] → [{"x": 1}]']),
        ({"a": {"options": ["a:1"]}}, {"a": {"options": []}}, ['a.options: ["a:1"] → []']),
    ],
)  # fmt: skip
def test_differences(before: dict[str, Any], after: dict[str, Any], lines: list[str]) -> None:
    assert [c.line() for c in differences(before, after)] == lines


@given(DOCUMENTS, DOCUMENTS)
def test_there_are_differences_exactly_where_digests_differ(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    changes = differences(one, other)
    assert bool(changes) == (digest(one) != digest(other))
    assert differences(one, one) == ()
    back = {c.path: (c.after, c.before) for c in differences(other, one)}
    assert {c.path: (c.before, c.after) for c in changes} == back
    assert all(c.line().isprintable() for c in changes)


def test_a_long_value_is_cut_in_the_line_only() -> None:
    change = Change(("a",), ABSENCE, "x" * 500)
    assert len(change.line()) < 130
    assert change.line().endswith("…")


def test_a_line_steers_no_terminal() -> None:
    (change,) = differences({}, {"a\x1b[31m\u2028": "\x9b\u202e"})
    assert change.line().isprintable()
