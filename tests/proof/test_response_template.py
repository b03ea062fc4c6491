"""Response templates for calls in a model's own marks."""

from __future__ import annotations

import re
from typing import Any

import pytest

from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.vocabulary import Vocabulary
from importer.proof.response_template import derive
from tests import template_texts as texts
from tests.analysing import analysed as with_words

FENCED = texts.CHATML_JSON.replace("<tool_call>", "```json").replace("</tool_call>", "```")
# No mark, a name outside of the JSON, tags around each argument.
OTHER = {
    "bare": """{{- '{"name": "' + c.function.name + '", "arguments": ' }}
{{- (c.function.arguments | tojson) + '}' }}""",
    "named": """{{- '<call>' + c.function.name + (c.function.arguments | tojson) + '</call>' }}""",
    "tagged": """{{- '<do what="' + c.function.name + '">' }}
{%- for k, v in c.function.arguments | items %}{{- '<with key="' + k + '">' + v | string + '</with>' }}
{%- endfor %}{{- '</do>' }}""",
}


def analysed(text: str) -> TemplateAnalysis:
    return with_words(text, Vocabulary(()))


def derived(text: str) -> dict[str, Any]:
    template = derive(analysed(text), ())
    assert template is not None
    return template


def test_the_turn_of_the_model_begins_the_text_and_its_end_ends_it() -> None:
    template = derived(FENCED)
    assert template["start_anchor"] == "<|im_start|>assistant\n"
    assert template["fields"]["content"] == {"close": "<|im_end|>"}


@pytest.mark.parametrize(
    ("text", "call"),
    [
        (FENCED, '```json\n{"name": "a", "arguments": {}}\n```'),
        (texts.CHATML_JSON, '<tool_call>\n{"name": "a", "arguments": {}}\n</tool_call>'),
    ],
)
def test_marks_around_a_json_object(text: str, call: str) -> None:
    calls = derived(text)["fields"]["tool_calls"]
    opened = re.match(calls["open_pattern"], call)
    assert opened is not None
    body = call[opened.end() :]
    closed = re.search(calls["close_pattern"], body)
    assert closed is not None
    assert body[: closed.start()].strip() == '{"name": "a", "arguments": {}}'
    assert calls["transform"]["function"] == {"name": "{content.name}", "arguments": "{content.arguments}"}
    for pattern in (calls["open_pattern"], calls["close_pattern"]):
        assert not re.search(r"\(\?<?[=!]|^[\\\[.(]", pattern), "no pattern for vLLM's frontend in Rust"


def test_thoughts_have_a_field_of_their_own() -> None:
    thought = "('<ponder>' + m.reasoning_content + '</ponder>' if m.reasoning_content else '')"
    thinks = FENCED.replace("m.role + '\\n' + m.content", f"m.role + '\\n' + {thought} + m.content")
    assert derived(thinks)["fields"]["thinking"] == {"open": "<ponder>", "close": "</ponder>"}


@pytest.mark.parametrize("call", OTHER.values(), ids=[*OTHER])
def test_another_form_of_calls_has_none(call: str) -> None:
    assert derive(analysed((texts.OFFER + texts.TURNS).replace("CALL", call)), ()) is None


def test_a_template_without_calls_has_none() -> None:
    plain = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    assert derive(analysed(plain), ()) is None
