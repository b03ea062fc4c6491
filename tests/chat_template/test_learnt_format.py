"""Formats learnt from renderings: markers, place of the name, encoding; of formats that no list has too."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.chat_template.analyze import analyze
from importer.chat_template.find import Template
from importer.chat_template.learnt_format import learn_format, unmarked
from importer.chat_template.render_worker import Local
from importer.chat_template.samples import Sample
from importer.chat_template.vocabulary import Vocabulary
from tests import template_texts as texts

JSON = '{"name": "get_weather", "arguments": {"city": "Paris"}}'


def sample(text: str, case: str = "one-call") -> Sample:
    return Sample(case, "", text)


@pytest.mark.parametrize(
    ("text", "markers", "encoding"),
    [
        (f"<tool_call>\n{JSON}\n</tool_call>", ("<tool_call>", "</tool_call>"), "json"),
        (f"<anvil|call>{JSON}<call|anvil>", ("<anvil|call>", "<call|anvil>"), "json"),
        (
            "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>",
            ("<function=", "<parameter=", "<tool_call>", "</function>", "</parameter>"),
            "tags",
        ),
        ('<do name="get_weather"><arg key="city">Paris</arg></do>',
         ("</arg>", "</do>", "<arg key=", "<do name="), "tags"),
        ('<|calls|>[get_weather(city="Paris")]<|end|>', ("<|calls|>", "<|end|>"), "text"),
        ('[get_weather(city="Paris")]', (), "pythonic"),
        (JSON, (), "json"),
        ("[TOOL_CALLS]get_weather[ARGS]" + '{"city": "Paris"}', ("[ARGS]", "[TOOL_CALLS]"), "json"),
    ],
)  # fmt: skip
def test_what_a_call_shows(text: str, markers: tuple[str, ...], encoding: str) -> None:
    found = learn_format([sample(text)])
    assert found is not None
    assert (tuple(sorted(found.markers)), found.encoding) == (tuple(sorted(markers)), encoding)


def test_a_call_without_its_markers() -> None:
    bare = unmarked(sample(f"<tool_call>\n{JSON}\n</tool_call>"))
    assert bare is not None
    assert json.loads(bare.completion)["name"] == "get_weather"
    assert unmarked(sample(JSON)) is None


@pytest.mark.parametrize("text", [texts.CHATML_JSON, texts.XML_PARAMETERS, texts.INST, texts.HEADERS])
def test_every_template_with_calls_has_a_format(text: str) -> None:
    analysis = analyze(Template(text, "chat_template.jinja"), Vocabulary(), Local())
    found = learn_format(analysis.samples)
    assert found is not None
    assert all(marker in "".join(s.completion for s in analysis.samples) for marker in found.markers)


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_gives_markers_of_its_own(before: str, behind: str) -> None:
    text = f"{before}get_weather{behind}city Paris"
    found = learn_format([sample(text)])
    assert found is not None
    assert all(marker in text for marker in found.markers)
    bare = unmarked(sample(text))
    assert bare is None or "get_weather" in bare.completion
