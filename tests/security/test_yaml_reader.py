"""YAML of strangers: read as PyYAML reads it where it is sound, refused at once where it is not."""

from __future__ import annotations

import time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from importer import yaml_reader
from importer.sentences import render
from importer.yaml_reader import YamlError, YamlReason, read
from tests.yaml_texts import DOCUMENTS, Writer

MERGES = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 12)
)
SECONDS = 2.0  # of processor time; each takes under 0.5 s, and once took a minute


@pytest.fixture(params=["libyaml", "python"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parsers that events may come from."""
    if request.param == "python":
        monkeypatch.setattr(yaml_reader, "LOADER", yaml.SafeLoader)


def refusal(text: str) -> YamlError:
    with pytest.raises(YamlError) as caught:
        read(text)
    assert render(caught.value.reason)
    return caught.value


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a: " + "[" * 10_000, YamlReason.DEEP), ("{" * 20_000, YamlReason.DEEP),
        ("- " * 20_000, YamlReason.DEEP), ("? " * 20_000, YamlReason.DEEP),
        ("a: 1\n" * 10_000, YamlReason.TWICE), (MERGES, YamlReason.MANY),
        (MERGES.replace("<<: ", "b: "), YamlReason.MANY), ("x" * 1_000_001, YamlReason.LONG),
        ("&a [*a]", YamlReason.ENDLESS), ("*a", YamlReason.ALIAS), ("[&a x, &a y]", YamlReason.ANCHOR),
        ("a\n---\nb", YamlReason.SEVERAL), ("!!bool foo", YamlReason.VALUE),
        ("!!timestamp foo", YamlReason.VALUE), ("2024-13-45", YamlReason.VALUE),
        ('!!int ""', YamlReason.VALUE), ('!!float ""', YamlReason.VALUE),
        ("!!float " + "1:" * 30_000 + ".5", YamlReason.VALUE), ("1:" * 199 + "1.5", None),
        ("!!float " + "9:" * 190 + "9.5", YamlReason.VALUE), ("9" * 401, YamlReason.VALUE),
        ("!!binary 'é'", YamlReason.VALUE), ('"\\UFFFFFFFF"', YamlReason.SYNTAX),
        ("\ud800", YamlReason.CHARACTER), ("a: \x07", YamlReason.CHARACTER),
        (".nan: 1", YamlReason.NUMBER_KEY), ("-.inf: 1", YamlReason.NUMBER_KEY), ("[1]: 2", YamlReason.KEY),
        ("{a: 1}: 2", YamlReason.KEY), ("<<: 5", YamlReason.MERGE), ("!!set {a}", YamlReason.TAG),
        ("!!python/name:os.system", YamlReason.TAG), ("!mine x", YamlReason.TAG),
        ("a: b: c", YamlReason.SYNTAX),
    ],
)  # fmt: skip
def test_what_is_not_read_is_refused_at_once(text: str, kind: YamlReason | None) -> None:
    began = time.process_time()
    try:
        read(text)
        met = None
    except YamlError as error:
        met = error.reason.kind
    assert met in {kind, YamlReason.VALUE if kind is None else kind}
    assert time.process_time() - began < SECONDS


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("a:\n  b: 1\n  b: 2", 3, 3, "a.b: it stands on line 2 already"),
        ("a: 1\nb: *c", 2, 4, "found undefined alias 'c'"),
        ("a: 1\nb: !!bool x", 2, 4, "'x' is not of the type bool"),
        ("a: 1\né: \x07", 2, 4, "the character U+0007 is not allowed"),
    ],
)
def test_a_refusal_has_its_place(text: str, line: int, column: int, says: str) -> None:
    error = refusal(text)
    assert (error.line, error.column) == (line, column)
    assert says in render(error.reason)


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    "text",
    [
        "", "a: {<<: {x: 1, y: 2}, x: 3}", "a: &a {x: 1, z: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b], y: 3}",
        "[1, 0x1f, 0o7, 1_000, 1:30, 1.5, .inf, ~, yes, 2024-01-01, 2024-01-01T10:00:00Z, 'x', !!str 5]",
        "a: !!binary aGVsbG8=", "{1: a, null: b, false: c, 1.5: d}", "a: |\n  x\n  y\nb: >-\n  z\n",
    ],
)  # fmt: skip
def test_what_is_sound_is_read_as_pyyaml_reads_it(text: str) -> None:
    assert read(text) == yaml.safe_load(text)


@given(DOCUMENTS, st.data())
def test_whatever_people_write_is_read_as_pyyaml_reads_it(tree: dict[str, Any], data: st.DataObject) -> None:
    text = Writer(data.draw).text(tree)
    assert read(text) == yaml.safe_load(text)


@given(st.text(alphabet=st.sampled_from(list("ab1:-[]{}&*!|>'\"#\n\t ,?0.<\\U\x07\ud800")), max_size=60))
def test_whatever_the_text_is_it_is_read_or_refused(text: str) -> None:
    line = 1
    try:
        read(text)
    except YamlError as error:
        line = error.line
    assert 1 <= line <= text.count("\n") + 2


def test_an_alias_is_the_object_that_it_stands_for() -> None:
    data = read("a: &a [1]\nb: *a")
    assert data["a"] is data["b"]
