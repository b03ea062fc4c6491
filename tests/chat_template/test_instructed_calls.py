"""Calls that past turns write with less than the instructions ask for."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.chat_template.analyze import analyze
from importer.chat_template.find import Template
from importer.chat_template.instructed_calls import as_instructed
from importer.chat_template.learnt_format import unmarked
from importer.chat_template.render_worker import Local
from importer.chat_template.samples import Sample, SampleCall
from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.vocabulary import Vocabulary

CALL = SampleCall("get_weather", {"city": "Paris"})
JSON = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
BARE = """
{%- if tools %}{{ asked }}{% for t in tools %}{{ t | tojson }}{% endfor %}{% endif %}
{%- for m in messages %}<|{{ m.role }}|>
{%- if m.tool_calls %}[{% for c in m.tool_calls %}{{ c.function.name }}(
{%- for k in c.function.arguments %}{{ k }}={{ c.function.arguments[k] }}
{%- if not loop.last %}, {% endif %}{% endfor %}){% if not loop.last %}, {% endif %}{% endfor %}]
{%- else %}{{ m.content }}{% endif %}<|end|>{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""


def samples(text: str, instructions: str = "") -> TemplateAnalysis:
    return TemplateAnalysis("d", (Sample("one-call", "", text, calls=(CALL,)),), tools_prompt=instructions)


def test_texts_of_python_calls_get_their_quotes() -> None:
    analysis = analyze(Template(BARE, "chat_template.jinja"), Vocabulary(), Local())
    before = {s.case: s for s in analysis.samples}
    after = {s.case: s for s in as_instructed(analysis).samples}
    assert before["one-call"].completion == "[get_weather(city=Paris)]"
    assert after["one-call"].completion == "[get_weather(city='Paris')]"
    for case in ("parallel", "non-ascii", "call-after-result"):
        calls = ast.parse(after[case].completion, mode="eval").body
        assert isinstance(calls, ast.List)
        assert len(calls.elts) == len(after[case].calls)
        for element, call in zip(calls.elts, after[case].calls, strict=True):
            assert isinstance(element, ast.Call)
            read = {k.arg: ast.literal_eval(k.value) for k in element.keywords}
            assert read == call.arguments
    assert after["no-call"] == before["no-call"]


def test_a_list_of_calls_gets_the_word_that_the_instructions_put_before_it() -> None:
    asked = 'answer with anvils[{"name": [function name], "arguments": …}, …]'
    (one,) = as_instructed(samples(JSON, asked)).samples
    assert one.completion == f"anvils[{JSON}]"
    bare = unmarked(one)
    assert bare is not None
    assert bare.completion == f"[{JSON}]"


def test_other_formats_stay_as_they_are() -> None:
    for text, asked in (
        (f"<tool_call>{JSON}</tool_call>", f"within <tool_call>{JSON}</tool_call>"),
        (JSON, 'as {"name": …}'),
        (JSON, f'the tools are "tools":[{JSON}]'),
        ("[get_weather(city='Paris')]", ""),
        (f"functools[{JSON}]", 'functools[{"name": …}]'),
        ("<function=get_weather><parameter=city>Paris</parameter></function>", ""),
    ):
        found = samples(text, asked)
        assert as_instructed(found) == found


@pytest.mark.slow
@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_keeps_its_cases(text: str, instructions: str) -> None:
    found = samples(text, instructions)
    assert [s.case for s in as_instructed(found).samples] == ["one-call"]
