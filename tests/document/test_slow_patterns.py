"""A pattern of a response template that a text can hold up is refused where it is accepted, at any place."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from importer.document import schema, template_file
from importer.document.slow_patterns import PatternReason, near_misses, refused
from importer.errors import DocumentError

HERE = (
    "(a+)+$", "(?:(?:(?:a{1,8}){1,8}){1,8}){1,8}b", "(a|a)*b",
    "(a|aa)+$", r"(\w|\d)+$", r"(\w+\s?)+$", "([a-m]|[h-z])+$", r"(.|\n)*x",
    "(ab|cd|abcd)+$", "(ab|cde|abc|de)+$", "a*a*b", "^a*a*a*b", "(.*a){20}", "(?=(a+)+$)x", "(?!(a+)+$)",
    r"(a+)\1+(a+)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(x+x+)+y", r"<tool>(\s*\S+\s*)*</tool>",
    r"(?P<k>(\d+)*)=", "(?i)(a|A)+$", "(?:(?:a*)*)*b", r"(([a-z])+.)+\d", r"(é|\w)+$",
    "((a{1,20}){1,20}){1,20}$", "(?:a?){40}a{40}b", "(?:x|(?:y|y))*z", "a{0,500}a{0,500}a{0,500}b",
    "(?x) ( a + ) + $", "(?s:.*)*y", r"(?:\s*,\s*)*\}", "(?(1)a|(b+)+)+c", r"([\s\S]*?,)*\]",
    "(" * 50 + "a+" + ")+" * 50 + "$", "(?:(a)|(b)|ab)*c$", "([^a]|b)+!$", r"\s*\s*\s*x",
    r"(?:\D|[^0])+$", "(?:(?=a)a|a)+$", "(a*?)*?b", "(?:a+|b+|c+)*d", "(ab?|ba?)+$", "(?:ab|a|ba|b)*!x",
)  # fmt: skip
UNREAD = (
    "(", "[", "*a", "(?P<a>x)(?P<a>y)", r"\p{L}", "a{2,1}", "(?<x)",
)  # fmt: skip
FINE = (
    r"<a>(?P<name>[\w.\-]+)", r"\s+$", r"[^<]*<", "", "^", r"\d{1,3}(,\d{3})*", "a++b", "(?>a+)+b",
    "(?:ab)*c", r'"(?:[^"\\]|\\.)*"', "x" * 60_000, "a{60000}",
    r"<with ?key=\"(?P<key>[^\s<>\"']+?)\">(?P<value>.*?)</with>",
)  # fmt: skip


def template(key: str, pattern: Any) -> dict[str, Any]:
    """One pattern at the place of a key; those of readers are inside of others."""
    call = {"open": "<a>", "close": "</a>", "content": "xml-inline", "transform": "{content}"}
    if key == "start_anchor_pattern":
        return {key: pattern, "fields": {"tool_calls": call}}
    if key == "tag_pattern":
        call |= {"content_args": {"value_parser": {"name": "xml-inline", "args": {key: pattern}}}}
    else:
        call |= {key: pattern}
    return {"start_anchor": "<s>", "fields": {"tool_calls": call}}


def document(value: Any) -> dict[str, Any]:
    block = {
        "schema": 1, "reference": "a/b", "engine": {"name": "vllm", "version": "0.32.0"},
        "response_template": value,
    }  # fmt: skip
    return {"name": "m", "backend": "vllm", "parameters": {"model": "a/b"}, "importer": block}


@pytest.mark.parametrize("pattern", [*HERE[:3], *[pytest.param(p, marks=pytest.mark.slow) for p in HERE[3:]]])
def test_a_pattern_that_a_text_holds_up_is_refused(pattern: str) -> None:
    found = refused((r"</a>\s*", pattern))
    assert found is not None
    assert (found[0], found[1].kind) == (1, PatternReason.SLOW)


def test_a_pattern_that_nobody_reads_is_refused() -> None:
    for pattern in UNREAD:
        found = refused((pattern,))
        assert found is not None, pattern
        assert found[1].kind is PatternReason.UNREAD


def test_a_quick_pattern_is_taken() -> None:
    assert refused(FINE) is None


@pytest.mark.parametrize("key", ["start_anchor_pattern", "open_pattern", "close_pattern", "tag_pattern"])
def test_by_every_request_coverageto_a_document(key: str) -> None:
    """An edit and a file by hand have the place; an import ends with it."""
    for value in ("(a+)+$", ["(a+)+$"], {"deeper": [{"still": "(a+)+$"}]}):
        data = document(template(key, value))
        text = yaml.safe_dump(data)
        [fault] = schema.faults("document", data)
        assert fault.path[:2] == ("importer", template_file.RESPONSE_TEMPLATE_KEY)
        assert key in fault.path
        with pytest.raises(DocumentError) as by_hand:
            schema.checked(text, "m.yaml")
        assert (by_hand.value.kind, "line" in str(by_hand.value)) == ("invalid", True)
        with pytest.raises(DocumentError) as imported:
            schema.check("document", data, "m.yaml")
        assert imported.value.kind == "invalid"
    assert list(schema.faults("document", document(template(key, "</?a>")))) == []
    odd = json.loads(json.dumps(template(key, "\u0000" + "(a+)+$")))
    assert len(list(schema.faults("document", document(odd)))) == 1


@pytest.mark.filterwarnings("ignore:Possible:FutureWarning")  # of "[[", as re has it
@given(st.from_regex(r"[ab(|)*+?\[\]\\dws.{}0-9,^$]{0,20}", fullmatch=True))
def test_near_misses_are_made_of_any_pattern(text: str) -> None:
    try:
        re.compile(text)
    except (re.error, OverflowError):
        return
    assert all(isinstance(one, str) for one in near_misses(text, 50))
