"""Our tool parser's reader: calls as Python writes them, whole or in pieces, never evaluated."""

from __future__ import annotations

import ast
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from importer.engines import parser_plugin
from importer.engines.parser_plugin.arguments import UnreadableError, parameters, read_arguments, read_words
from importer.engines.parser_plugin.reader import Call, Piece, Reader

TOOLS: dict[str, dict[str, Any]] = {
    "get_weather": {
        "properties": {"unit": {"type": "string"}, "city": {"type": "string"}},
        "required": ["city"],
    },
    "find_hotel": {"properties": {"area": {}, "stars": {"type": "integer"}, "user-id": {}, "from": {}}},
    "cat": {"properties": {"path": {"type": "string"}, "lines": {"type": "integer"}}},
    "list_alarms": {},
    "mcp-files.read": {"properties": {"path": {}}},
}
Read = tuple[str, list[tuple[str, dict[str, Any]]]]


def joined(pieces: Sequence[Piece]) -> Read:
    text = "".join(p for p in pieces if isinstance(p, str))
    return text, [(p.name, p.arguments) for p in pieces if isinstance(p, Call)]


def read(text: str) -> Read:
    reader = Reader(TOOLS)
    return joined([*reader.feed(text), *reader.finish()])


PARIS = ("get_weather", {"city": "Paris"})
HOTEL = ("find_hotel", {"area": "harbour", "stars": 4})
WRITTEN: dict[str, Read] = {
    '[get_weather(city="Paris")]': ("", [PARIS]),
    '[get_weather(city="Paris"), find_hotel(area="harbour", stars=4)]': ("", [PARIS, HOTEL]),
    ' [ get_weather ( city = "Paris" ) ,\n find_hotel("harbour", 4), ] ': ("  ", [PARIS, HOTEL]),
    'Let me see. [get_weather(city="Paris")] Done.': ("Let me see.  Done.", [PARIS]),
    'get_weather(city="Paris")': ("", [PARIS]),
    'So:\n  get_weather("Paris")\nfind_hotel(stars=4, area="harbour"); list_alarms()\n': (
        "So:\n  \n\n", [PARIS, HOTEL, ("list_alarms", {})],
    ),
    "[list_alarms(), list_alarms()]": ("", [("list_alarms", {})] * 2),
    '```tool_code\nget_weather(city="Paris")\nfind_hotel("harbour", 4)\n```\nDone.': (
        "\n\n\nDone.", [PARIS, HOTEL],
    ),
    '```python\n[get_weather(city="Paris")]\n```': ("\n", [PARIS]),
    "```tool_code\ncat some/path\ncat 'a b' lines=3\nlist_alarms\n```": (
        "\n\n\n", [("cat", {"path": "some/path"}), ("cat", {"path": "a b", "lines": 3}), ("list_alarms", {})],
    ),
    '[mcp-files.read(path={"a": [1, -2.5, true, None]})]': (
        "", [("mcp-files.read", {"path": {"a": [1, -2.5, True, None]}})],
    ),
    '[find_hotel(from="x", user-id=1, **{"area": "y"})]': (
        "", [("find_hotel", {"from": "x", "user-id": 1, "area": "y"})],
    ),
    '[get_weather(city="(]\\")", unit=\'"\')]': ("", [("get_weather", {"city": '(]")', "unit": '"'})]),
    '[get_weather(city="two\nlines")]': ("", [("get_weather", {"city": "two\nlines"})]),
    '[get_weather(city="""Say "no", twice""")]': ("", [("get_weather", {"city": 'Say "no", twice'})]),
    'get_weather({"city": "Paris"})': ("", [PARIS]),
    # no calls
    "": ("", []),
    "Just [1, 2] words, [get it]? get_weather, too.": ("Just [1, 2] words, [get it]? get_weather, too.", []),
    'get_weather(city="Paris") tells the weather.': ('get_weather(city="Paris") tells the weather.', []),
    'Write `[get_weather(city="Paris")]`.': ('Write `[get_weather(city="Paris")]`.', []),
    '[another(city="Paris")]': ('[another(city="Paris")]', []),
    "cat some/path": ("cat some/path", []),
    "```python\nprint(1)\n```": ("```python\nprint(1)\n```", []),
    "[get_weather": ("[get_weather", []),
    '[get_weather(city="Par': ('[get_weather(city="Par', []),
    "```tool_code\n": ("```tool_code\n", []),
    # one that cannot be read, and the others kept
    '[get_weather(city="Paris, find_hotel(area="harbour", stars=4)]': ('[get_weather(city="Paris', [HOTEL]),
    '[get_weather(city=open("x")), find_hotel("harbour", 4)]': ('[get_weather(city=open("x")), ', [HOTEL]),
    '[get_weather(city=]), find_hotel("harbour", 4)]': ("[get_weather(city=])", [HOTEL]),
    '[find_hotel("harbour", 4), get_weather("a", "b", "c")]': ('get_weather("a", "b", "c")]', [HOTEL]),
    "get_weather(city=1 + 1)\nlist_alarms()": ("get_weather(city=1 + 1)\n", [("list_alarms", {})]),
}  # fmt: skip


@pytest.mark.parametrize("text", WRITTEN)
def test_what_is_read_whole_cut_in_two_and_letter_by_letter(text: str) -> None:
    for cuts in [*([at] for at in range(len(text) + 1)), list(range(len(text)))]:
        reader, pieces = Reader(TOOLS), []
        for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True):
            pieces += reader.feed(text[start:stop])
        assert joined([*pieces, *reader.finish()]) == WRITTEN[text], cuts


PARTS = st.lists(
    st.sampled_from(
        ["[", "]", "(", ")", "get_weather", "cat", "list_alarms()", ", ", '"', "'", '"""', "\\", "\n", " ",
         "```", "tool_code", "city=", "a", "1", "{", "}", ":", "`", ";", "="]
    ),
    max_size=25,
)  # fmt: skip


@given(PARTS, st.lists(st.integers(0, 120), max_size=6))
@example(["```", "tool_code", "\n", "cat", " ", "a", "\n", "```"], [3, 4, 14])
def test_any_text_in_any_pieces_gives_the_same_and_loses_nothing(parts: list[str], places: list[int]) -> None:
    text = "".join(parts)
    cuts = sorted(p for p in places if p <= len(text))
    reader, pieces = Reader(TOOLS), []
    for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True):
        pieces += reader.feed(text[start:stop])
    got = joined([*pieces, *reader.finish()])
    assert got == read(text)
    if not got[1]:
        assert got[0] == text
    else:
        json.dumps(got[1], allow_nan=False)


def test_text_is_given_away_as_soon_as_it_is_settled() -> None:
    reader = Reader(TOOLS)
    assert reader.feed("Let me see. [") == ["Let me see. "]
    assert reader.feed("1, 2] or\nget") == ["[1, 2] or\n"]
    assert reader.feed("ting on [get_weather(city=") == ["getting on "]
    assert reader.feed('"Paris"), ') == []
    assert reader.feed("list") == []
    assert reader.feed("_alarms()") == [Call(*PARIS)]
    assert reader.feed("]") == [Call("list_alarms", {})]
    assert reader.finish() == []
    assert reader.problems == []


def test_what_could_not_be_read_is_told() -> None:
    reader = Reader(TOOLS)
    reader.feed('[get_weather(city=f(1)), get_weather(city="a", city="b"), get_weather("a')
    reader.finish()
    assert reader.problems == [
        "get_weather: a Call is no plain value",
        "get_weather: it gives city twice",
        "get_weather: nothing closes its parentheses",
    ]


@pytest.mark.parametrize(
    ("source", "read_back"),
    [
        ("()", {}),
        ('("Paris", unit="C")', {"city": "Paris", "unit": "C"}),
        ("(city='x', unit=None)", {"city": "x", "unit": None}),
        ("(city=-1, unit=+2.5)", {"city": -1, "unit": 2.5}),
        ("(city=[1, (2, 3)], unit={'a': {4}})", {"city": [1, [2, 3]], "unit": {"a": [4]}}),
        ('(city="a" "b", unit=f"c")', {"city": "ab", "unit": "c"}),
        ('(city="\\d \\u00e9 🙂", unit=r"\\d")', {"city": "\\d é 🙂", "unit": "\\d"}),
        ("(city=true, unit=null)", {"city": True, "unit": None}),
        ("(city='\\ud83d\\ude42', unit='\\ud83d')", {"city": "🙂", "unit": "\ufffd"}),
    ],
)
def test_arguments(source: str, read_back: dict[str, Any]) -> None:
    assert read_arguments(source, TOOLS["get_weather"]) == read_back


@pytest.mark.parametrize(
    "source",
    [
        "(city=__import__('os').system('true'))", "(city=open)", "(city=lambda: 1)", "(city=[x for x in ''])",
        "(city=1 + 1)", "(city=not 1)", "(city=b'x')", "(city=...)", "(city=1j)", "(city=1e999)",
        "(city=f'{x}')", "(city={1: 2})", "(city={**{}})", "(*['a'])", "(**['a'])", "(city=(yield))",
        "(city:=1)", "(1, 2, 3)", "('a', city='b')", "(city='a', **{'city': 'b'})", "(city='\\x')",
        "(city=07)", "(city='a\0b' 1)", "(", ")(", "(" * 5000 + ")" * 5000,
        "(city=" + "[" * 3000 + "]" * 3000 + ")", "(city=" + "-" * 9000 + "1)", "(city=" + "1+" * 5000 + "1)",
        "(city=" + "a." * 9000 + "b)", "(city='x'); import os", "()\nimport os",
    ],
)  # fmt: skip
def test_nothing_is_evaluated(source: str) -> None:
    with pytest.raises(UnreadableError):
        read_arguments(source, TOOLS["get_weather"])


@given(st.text(max_size=60))
def test_any_arguments_are_read_or_refused(source: str) -> None:
    for reads in (read_arguments, read_words):
        try:
            json.dumps(reads(f"({source})", TOOLS["cat"]), allow_nan=False)
        except UnreadableError:
            continue


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["city", "unit"]), VALUES), st.booleans())
def test_every_value_comes_back(arguments: dict[str, Any], python: bool) -> None:
    written = repr if python else json.dumps
    source = ", ".join(f"{key}={written(value)}" for key, value in arguments.items())
    assert read(f"[get_weather({source})]") == ("", [("get_weather", arguments)])


@pytest.mark.parametrize(
    ("line", "read_back"),
    [
        ("", {}),
        (" a/b 7", {"path": "a/b", "lines": 7}),
        (" lines=7 a=b", {"lines": 7, "path": "a=b"}),
        (" --x many", {"path": "--x", "lines": "many"}),
    ],
)
def test_words_as_a_shell_has_them(line: str, read_back: dict[str, Any]) -> None:
    assert read_words(line, TOOLS["cat"]) == read_back


def test_required_parameters_come_first_and_odd_schemas_are_none() -> None:
    assert parameters(TOOLS["get_weather"]) == ["city", "unit"]
    assert parameters({"properties": ["a"], "required": 7}) == []
    assert parameters({"properties": {"a": True}, "required": ["b"]}) == ["a"]
    assert Reader({"f": {"properties": None}}).feed("[f(x=1)]") == [Call("f", {"x": 1})]


def test_a_long_argument_takes_time_in_step_with_its_length() -> None:
    def seconds(length: int) -> float:
        reader, started = Reader(TOOLS), time.process_time()
        reader.feed('[get_weather(city="')
        for _ in range(length):
            reader.feed("x) y, ")
        assert reader.feed('")]') == [Call("get_weather", {"city": "x) y, " * length})]
        return time.process_time() - started

    seconds(100)
    assert seconds(8000) < 30 * max(seconds(1000), 0.01)


def test_the_plugin_needs_nothing_of_ours() -> None:
    for path in Path(parser_plugin.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in names:
                assert name.split(".")[0] in {*sys.stdlib_module_names, "vllm"}, f"{path.name} imports {name}"
