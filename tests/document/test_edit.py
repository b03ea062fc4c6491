"""Edits of a YAML text that a person wrote: the wanted data, every comment, and nothing else touched."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.document.document_keys import same
from importer.document.yaml_edit.cst import Layout
from importer.document.yaml_edit.patch import rewrite
from importer.document.yaml_edit.source_map import read
from importer.errors import DocumentError
from tests.yaml_texts import edits, texts

COMMENT = re.compile(r"# comment \d+")


# What is edited, the top-level keys that change (``...``: they go), and what comes of it.
TABLE: list[tuple[str, dict[str, Any], str]] = [
    # values keep their place, quotes and comments
    ("a:  1   # mine\nb: 2\n", {"a": 5}, "a:  5   # mine\nb: 2\n"),
    ("a: 'x'\nb: \"y\"", {"a": "it's", "b": 'a "q"'}, "a: 'it''s'\nb: \"a \\\"q\\\"\""),
    ("a: x\n", {"a": "tool_parser:hermes"}, "a: tool_parser:hermes\n"),
    ("a: x\n", {"a": "0.6"}, "a: '0.6'\n"),
    ("a: x\n", {"a": "one\ntwo\u2028"}, 'a: "one\\ntwo\\L"\n'),
    ("a:\nb: ~\n", {"a": 1, "b": 2}, "a: 1\nb: 2\n"),
    ("a: !!str 1\n", {"a": 2}, "a: 2\n"),
    ("a: |  # mine\n  x\n  y\n\n\nb: 1\n", {"a": "z"}, "a: z  # mine\n\n\nb: 1\n"),
    ("a: one\n  two\nb: 1\n", {"a": "z"}, "a: z\nb: 1\n"),
    ("? a\n: 1\n? b\n: 2\n", {"a": 3}, "? a\n: 3\n? b\n: 2\n"),
    # new keys in the style of their neighbours
    ("a: 1\nb: 2", {"c": [1, {"d": None}]}, "a: 1\nb: 2\nc:\n- 1\n- d: null"),
    ("a:\n  b:\n    - 1\n", {"c": {"d": [1]}}, "a:\n  b:\n    - 1\nc:\n  d:\n    - 1\n"),
    ("a:\n    b: 1\n", {"c": {"d": 1}}, "a:\n    b: 1\nc:\n    d: 1\n"),
    ("a: 1\r\n", {"b": {"c": 1}}, "a: 1\r\nb:\r\n  c: 1\r\n"),
    ("---\na: 1\n...\n", {"b": 1}, "---\na: 1\nb: 1\n...\n"),
    ("a: |\n  text", {"b": 1}, "a: |-\n  text\nb: 1"),
    ("{a: 1, b}\n", {"b": 2, "c": ["d", "e"]}, "{a: 1, b: 2, c: [d, e]}\n"),
    ("a: {}\nb: []\n", {"a": {"c": 1}, "b": ["d:e"]}, "a:\n  c: 1\nb:\n- d:e\n"),
    # what goes leaves its person's comment behind
    ("a: 1  # mine\nb: 2\n", {"a": ...}, "# mine\nb: 2\n"),
    ("\ufeffa: 1  # mine\nb: 2\n", {"a": ...}, "\ufeff# mine\nb: 2\n"),
    ("a:\n  x: 1  # mine\n\n  # why\n  y: 2\nb: 1\n", {"a": 5}, "a: 5\n  # mine\n  # why\nb: 1\n"),
    ("a: [\n  1,  # one\n  2  # two\n]  # end\n", {"a": [2]}, "a: [\n    # one\n  2  # two\n]  # end\n"),
    ("a: [\n  1,  # one\n]  # end\nb: 1\n", {"a": 2}, "a: 2  # end\n# one\nb: 1\n"),
    ("a: [1, 2, 3]\n", {"a": [1, 3]}, "a: [1, 3]\n"),
    ("a: [1, 2, 3]\n", {"a": [1, 2]}, "a: [1, 2]\n"),
    ("a: [1, 2,]\n", {"a": [0, 2, 3]}, "a: [0, 2, 3,]\n"),
    # lists, entry by entry
    ("options:\n- a:1  # x\n- b:2\n# end\n", {"options": ["a:2", "c"]}, "options:\n- a:2  # x\n- c\n# end\n"),
    ("options:\n- a:1  # mine\n- b:2\n", {"options": ["c", "b:2"]}, "options:\n- c\n# mine\n- b:2\n"),
    ("a:\n- n: 1  # mine\n  m: 2\n- 3\n", {"a": [{"m": 2}, 3]}, "a:\n- # mine\n  m: 2\n- 3\n"),
    ("a:\n- n: 1\n  m: 2\n- 3\n", {"a": [{"m": 2}, 3]}, "a:\n- m: 2\n- 3\n"),
    ("a:\n  - - 1\n    - 2\n", {"a": [[0, 1, 2]]}, "a:\n  - - 0\n    - 1\n    - 2\n"),
    ("a: ['1', \"2\"]\n", {"a": ["1", "2", "3:4"]}, "a: ['1', \"2\", \"3:4\"]\n"),
    ("a:\n- \"1\"\n", {"a": ["0", "1", 2]}, "a:\n- \"0\"\n- \"1\"\n- 2\n"),
    # anchors, aliases and merge keys: no other place changes
    ("a: &x {b: 1}\nc: *x\n", {"a": {"b": 2}}, "a: &x {b: 2}\nc:\n  b: 1\n"),
    ("a: &x {b: 1}\nc: *x\n", {"a": {"b": 2}, "c": {"b": 2}}, "a: &x {b: 2}\nc: *x\n"),
    ("a: &x {b: 1}\nc: *x  # mine\n", {"c": {"b": 2}}, "a: &x {b: 1}\nc:  # mine\n  b: 2\n"),
    ("a: &x {b: 1}\nc: *x\n", {"a": ...}, "c:\n  b: 1\n"),
    ("a: &x\n  b: 1\nc:\n  <<: *x\n  d: 1\n", {"a": {"b": 2}}, "a: &x\n  b: 2\nc:\n  d: 1\n  b: 1\n"),
    ("a: &x {b: 1}\nc:\n  <<: *x\n  d: 1\n", {"c": {"b": 3, "d": 1}},
     "a: &x {b: 1}\nc:\n  <<: *x\n  d: 1\n  b: 3\n"),
    ("a: &x {b: 1}\nc:\n  <<: *x  # mine\n  d: 1\n", {"c": {"d": 1}}, "a: &x {b: 1}\nc:\n  # mine\n  d: 1\n"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "changes", "result"), TABLE, ids=[repr(t[0]) for t in TABLE])
def test_an_edit(text: str, changes: dict[str, Any], result: str) -> None:
    wanted = {k: v for k, v in (read(text, "x") | changes).items() if v is not ...}
    assert rewrite(text, wanted) == result


def test_a_new_key_stands_behind_the_key_it_follows() -> None:
    text = "a: 1\np:\n  # first\n  x: 1\n  # last\n\n# of c\nc: 1\n"
    done = rewrite(text, {"a": 1, "n": 0, "p": {"w": 0, "x": 1, "y": 2}, "q": 0, "c": 1})
    assert done == "a: 1\nn: 0\np:\n  # first\n  x: 1\n  w: 0\n  y: 2\n  # last\nq: 0\n\n# of c\nc: 1\n"


def test_notes_are_written_renewed_and_taken_away() -> None:
    text = "a: 1  # old\nb: 2   # old\nc: 3\nd: 4  # old\ne: [1]  # mine\n"
    notes = {
        ("a",): "new", ("b",): None, ("c",): "new\x1b\n", ("d",): None, ("f", "g"): "new", ("no",): "where",
    }  # fmt: skip
    done = rewrite(text, {"a": 1, "b": 5, "c": 3, "e": [1], "f": {"g": 0}}, notes)
    assert done == "a: 1  # new\nb: 5\nc: 3  # new  \ne: [1]  # mine\nf:\n  g: 0  # new\n"


@pytest.mark.parametrize("text", ["a: 1\n", "{a: 1}\n"])
def test_an_edit_that_cannot_be_made_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match="cannot be edited") as error:
        rewrite(text, {}, path="x.yaml")
    assert error.value.kind == "cannot-edit"


@pytest.mark.slow
@given(st.data())
def test_a_random_edit_of_a_random_text(data: st.DataObject) -> None:
    """Every comment stays, and so does the text of what does not change; refused only where nothing stays."""
    text = data.draw(texts())
    have = read(text, "x")
    wanted = data.draw(edits(have))
    if not wanted or (Layout(text).root.flow_style and not have.keys() & wanted.keys()):  # type: ignore[attr-defined]
        return
    done = rewrite(text, wanted)
    assert same(read(done, "x"), wanted)
    assert sorted(COMMENT.findall(done)) == sorted(COMMENT.findall(text))
    for key, source in entries(text).items():
        if key in wanted and same(have[key], wanted[key]) and not re.search(r"[*]n\d|<<", source):
            assert source in done


def entries(text: str) -> dict[str, str]:
    """The text of each top-level entry."""
    layout = Layout(text)
    return {str(s.step): text[s.start : layout.content_end(s.node)] for s in layout.slots(layout.root)}


@pytest.mark.slow
@given(texts())
def test_a_text_whose_data_stay_stays(text: str) -> None:
    assert rewrite(text, read(text, "x")) == text
