"""Response templates derived from chat templates of this test: formats that no engine knows."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from importer.chat_template.markers import Marks
from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.vocabulary import Vocabulary
from importer.proof.response_template import derive, escaped, flexible, frame, general, json_value
from importer.proof.template_proof import BRACKETS, RENAMED, variants
from tests import template_texts as texts
from tests.analysing import analysed as with_words

HEAD = texts.OFFER + texts.TURNS
UNKNOWN = {
    # A name between marks, JSON behind it, a section around all calls.
    "braided": """{{- '<~braid~><|strand|>' + c.function.name + '<|knot|>' }}
{{- (c.function.arguments | tojson) + '<|loose|>' }}""",
    # Tags of two words around each argument.
    "tagged": """{{- '<do what="' + c.function.name + '">' }}
{%- for k, v in c.function.arguments | items %}
{{- '<with key="' + k + '">' + (v if v is string else v | tojson) + '</with>' }}
{%- endfor %}{{- '</do>' }}""",
    # Nothing closes a call but the next one.
    "open-ended": """{{- '[[PLEASE]]' + c.function.name + '[[WITH]]' + (c.function.arguments | tojson) }}""",
    # JSON without any mark, calls on lines of their own.
    "bare": """{{- '{"fn": "' + c.function.name + '", "with": ' + (c.function.arguments | tojson) + '}' }}""",
}


def analysed(text: str) -> TemplateAnalysis:
    return with_words(text, Vocabulary(()))


def first(call: str) -> dict[str, Any]:
    analysis = analysed(HEAD.replace("CALL", call))
    return json.loads(json.dumps(next(derive(analysis, ()))))


def test_the_turn_of_the_model_begins_the_text() -> None:
    template = first(UNKNOWN["braided"])
    assert template["start_anchor"] == "<|im_start|>assistant\n"
    assert template["fields"]["content"] == {"close": "<|im_end|>"}


def test_marks_around_a_name_and_its_json() -> None:
    calls = first(UNKNOWN["braided"])["fields"]["tool_calls"]
    opened = re.search(calls["open_pattern"], '<~braid~><|strand|>fly_kite<|knot|>{"a": 1}<|loose|>')
    assert opened is not None
    assert opened["name"] == "fly_kite"
    assert calls["content"] == "json"
    assert re.match(calls["close_pattern"], "<|loose|>")


def test_tags_around_each_argument() -> None:
    calls = first(UNKNOWN["tagged"])["fields"]["tool_calls"]
    body = '<with key="a">1</with><with key="b-c">x\ny</with>'
    found = re.finditer(calls["content_args"]["tag_pattern"], body, re.DOTALL)
    assert [(m["key"], m["value"]) for m in found] == [("a", "1"), ("b-c", "x\ny")]


def test_a_mark_that_only_opens_is_cut_in_two() -> None:
    calls = first(UNKNOWN["open-ended"])["fields"]["tool_calls"]
    end = calls["close"][0]
    text = "[[PLEASE]]one[[WITH]]{}[[PLEASE]]two[[WITH]]{}"
    opened = re.match(calls["open_pattern"], text)
    assert opened is not None
    assert opened["name"] == "one"
    at = text.index(end, opened.end())
    again = re.match(calls["open_pattern"], text[at + len(end) :])
    assert again is not None
    assert again["name"] == "two"


@pytest.mark.parametrize("call", [*UNKNOWN])
def test_no_pattern_looks_around_or_begins_with_a_class(call: str) -> None:
    """Both are outside the syntax that vLLM's Rust frontend compiles."""
    for template in derive(analysed(HEAD.replace("CALL", UNKNOWN[call])), ()):
        calls = template["fields"]["tool_calls"]
        for pattern in (calls["open_pattern"], calls.get("close_pattern", "x")):
            assert not re.search(r"\(\?<?[=!]", pattern)
            assert not pattern.startswith(("\\s", "\\w", "\\d", "[", ".", "(?P<name>"))


def test_a_template_without_calls_or_reasoning_gives_none() -> None:
    plain = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    assert [*derive(analysed(plain), ())] == []


def test_variants_have_another_name_and_brackets() -> None:
    analysis = analysed(HEAD.replace("CALL", UNKNOWN["tagged"]))
    made = {s.case: s for s in variants([s for s in analysis.samples if s.tools])}
    assert made["renamed"].calls[0].name == RENAMED
    assert RENAMED in made["renamed"].completion
    assert made["one-call-brackets"].calls[0].arguments["city"] == BRACKETS
    assert made["code"].content in made["code"].completion


def test_a_frame_is_what_two_parts_share() -> None:
    found = frame("<all><one>", "</one>, <one>", "</one></all>", Marks())
    assert (found.outer_open, found.open, found.close, found.separator, found.outer_close) == (
        "<all>", "<one>", "</one>", ", ", "</all>",
    )  # fmt: skip


def test_ids_counts_and_names_are_general() -> None:
    assert flexible(general('id="c4ll00000" index="1" to=get', "get")) == (
        r'id="[\w.\-]+"\s*index="\d+"\s*to=[\w.\-]+'
    )
    assert flexible(general("<|token_249|>")) == r"<\|token_249\|>"


def test_text_is_escaped_for_both_engines() -> None:
    assert escaped("<a|b>(x)\n") == r"<a\|b>\(x\)\n"


@pytest.mark.parametrize("value", ["1", "-0.5", '"a \\" }"', '{"a": [1, {"b": "]"}]}', "[]", "true"])
def test_a_json_value_is_one_match(value: str) -> None:
    found = re.match(json_value(), value + ", more")
    assert found is not None
    assert found[0] == value
