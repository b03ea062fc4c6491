"""What is wrong with a document's text is said with its line, all of it at once, whatever the text is."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from importer.document.schema import checked, problems
from importer.document.yaml_edit.source_map import SourceMap
from importer.errors import DocumentError

GOOD = """\
# a comment
name: tiny
backend: vllm

parameters:
  model: acme/Tiny
  temperature: 0.5
options:
- tool_parser:hermes
"""
MODEL = "parameters: {model: acme/Tiny}\n"
SINGLE = [
    (
        "temperature: 0.5", "temperature: 7", 7, 3,
        "parameters.temperature: 7 is greater than the maximum of 5",
    ),
    ("backend: vllm", "backend: tpu", 3, 1, "backend: 'tpu' is not one of"),
    ("  temperature", "temperature", 7, 1, "temperature: it belongs under parameters"),
    ("backend: vllm", "bakcend: vllm", 1, 1, "'backend' is a required property"),
    ("- tool_parser:hermes", "- a:b\n- ''", 10, 3, "options.1: '' does not match"),
    ("- tool_parser:hermes", "  - [1]", 9, 5, "options.0: [1] is not of type 'string'"),
    ("model: acme/Tiny", "temperature: 1", 7, 3, "parameters.temperature: it stands on line 6 already"),
    ("temperature: 0.5", "temperature: 2024-01-01", 7, 3, "temperature: 2024-01-01 is a date"),
    ("temperature: 0.5", "temperature: .inf", 7, 3, "temperature: inf is not a number that JSON has"),
    ("temperature: 0.5", "7: x", 7, 3, "the key 7 is not text; quote it"),
    ("temperature: 0.5", "2024-01-01: x", 7, 3, "the key 2024-01-01 is not text; quote it"),
    ("temperature: 0.5", "temperature: '0.5", 9, 21, "while scanning a quoted scalar that begins on line 7"),
    ("temperature: 0.5", "\ttemperature: 0.5", 7, 3, "found a tab character"),
    ("temperature: 0.5", "temperature: \x07", 7, 16, "the character U+0007 is not allowed"),
    ("temperature: 0.5", "temperature: *gone", 7, 16, "found undefined alias 'gone'"),
    ("parameters:", "parameters: !!python/name:os.system", 5, 13, "could not determine a constructor"),
    (GOOD, "", 1, 1, "not a map"),
    (GOOD, "- a\n", 1, 1, "not a map"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "column", "says"), SINGLE, ids=[s[1] for s in SINGLE])
def test_a_problem_has_its_line(old: str, new: str, line: int, column: int, says: str) -> None:
    assert old in GOOD
    found = problems(GOOD.replace(old, new))
    told = [p for p in found if says in str(p)]
    assert [(p.line, p.column) for p in told] == [(line, column)], found


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("importer: {schema: 1, reference: a/b, engine: {name: mlx}}", "importer.engine.name"),
        ("importer: {schema: 1, reference: a/b, engine: {name: vllm}}", None),
        ("max_model_len: 999999999", "max_model_len"), ("max_model_len: 10000000", None),
        ("limit_mm_per_prompt: {image: 387420489}", "limit_mm_per_prompt.image"),
        ("limit_mm_per_prompt: {image: {count: 387420489}}", "limit_mm_per_prompt.image.count"),
        ("limit_mm_per_prompt: {image: 0, video: {count: 1, width: 4096}}", None),
        ("parameters: {model: acme/Tiny, n: 100000}", "parameters.n"),
        ("parameters: {model: acme/Tiny, n: 2}", None),
    ],
)  # fmt: skip
def test_values_that_contradict_or_have_no_measure_are_refused(line: str, told: str | None) -> None:
    text = f"name: tiny\nbackend: vllm\n{MODEL if 'Tiny' not in line else ''}{line}\n"
    found = [str(p) for p in problems(text)]
    assert len(found) == (told is not None), found
    assert told is None or told in found[0]


def test_all_are_told_in_the_order_of_the_lines() -> None:
    text = GOOD.replace("vllm", "tpu").replace("0.5", "7").replace("tool_parser:hermes", "''")
    assert [p.line for p in problems(text)] == [3, 7, 9]
    with pytest.raises(DocumentError, match=r"x\.yaml .* line 3: backend: .*; line 7: .*; line 9: options"):
        checked(text, "x.yaml")
    assert problems(GOOD) == []
    assert checked(GOOD, "x")["name"] == "tiny"


def test_more_than_a_sentence_can_hold_are_counted() -> None:
    text = GOOD + "stopwords:\n" + "- 5\n" * 50
    with pytest.raises(DocumentError, match=r"; and \d\d more\.$"):
        checked(text, "x.yaml")


def test_what_came_in_by_an_alias_is_told_where_it_is_used() -> None:
    text = GOOD.replace("model: acme/Tiny", "<<: &hot {temperature: 7}\n  model: m").replace("0.5", "5")
    assert problems(text) == []
    merged = GOOD.replace("  temperature: 0.5", "  <<: {temperature: 7}")
    assert [p.line for p in problems(merged)] == [7]


@given(st.text(alphabet=st.sampled_from(list("ab:-[]{}&*!|>'\"#\n\t ,?0.\x07\x85\ud800")), max_size=60))
def test_whatever_the_text_is_each_problem_has_a_place_in_it(text: str) -> None:
    found = problems(text)
    assert found  # none of these letters spell a document
    for problem in found:
        assert 1 <= problem.line <= len(text.splitlines()) + 1
        assert problem.message


LEAVES = st.integers() | st.text(max_size=5)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
)


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=4), TREES, min_size=1, max_size=4), st.data())
def test_the_place_of_any_path_is_its_keys_line(tree: dict[str, Any], data: st.DataObject) -> None:
    path: tuple[str | int, ...] = ()
    inner: Any = tree
    while isinstance(inner, dict | list) and inner:
        step = data.draw(st.sampled_from(list(inner) if isinstance(inner, dict) else range(len(inner))))
        path, inner = (*path, step), inner[step]
    text = yaml.safe_dump(tree, default_flow_style=False, sort_keys=False)
    place = SourceMap(text).problem(path, "here")
    rest = text.splitlines()[place.line - 1][place.column - 1 :]
    if isinstance(path[-1], str) and path[-1].isascii() and path[-1].isalpha():
        assert rest.strip("'\"? ").startswith(path[-1])
