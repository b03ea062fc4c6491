"""What is learned from templates of every style, written for these tests."""

from __future__ import annotations

import json

import pytest

from importer.chat_template.analyze import analyze
from importer.chat_template.cases import ANSWER, CALLS, NARRATION, ONE, OTHER, REASONING, TOOLS
from importer.chat_template.find import Template
from importer.chat_template.probe import SERVERS
from importer.chat_template.render import RefusalReason, Renderer
from importer.chat_template.samples import Sample, TemplateProblem
from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.vocabulary import Token, Vocabulary
from importer.reasons import Reason
from tests import template_texts as texts
from tests.analysing import VOCABULARY
from tests.analysing import analysed as learn
from tests.tiers import one_of_each


def refused(words: str) -> Reason:
    return Reason(TemplateProblem.REFUSED, words=Reason(RefusalReason.RAISED, words=words))


def samples(found: TemplateAnalysis) -> dict[str, Sample]:
    return {s.case: s for s in found.samples}


def test_json_between_tags() -> None:
    found = learn(texts.CHATML_JSON)
    cases = samples(found)
    assert found.problems == {}
    assert set(CALLS) <= set(cases)
    one = cases["one-call"]
    assert (
        one.completion == '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
    )
    assert one.prompt.endswith("<|im_end|>\n<|im_start|>assistant\n")
    assert (one.calls, one.content, one.reasoning, one.lead, one.text_arguments) == ((ONE,), "", "", 0, False)
    assert cases["parallel"].calls == (ONE, OTHER)
    assert cases["narrated"].completion.startswith(NARRATION + "\n<tool_call>")
    assert cases["narrated"].content == NARRATION
    assert cases["text-after"].content is None
    assert cases["no-call"].completion == cases["plain"].completion == ANSWER
    assert "overcast" in cases["call-after-result"].prompt
    assert found.end_of_turn == "<|im_end|>"
    assert found.tools_rendered
    assert found.calls_rendered
    assert '"list_alarms"' in found.tools_prompt
    assert found.thinking.markers is None


def test_a_broken_call_beside_a_good_one() -> None:
    broken = samples(learn(texts.CHATML_JSON))["broken-beside"]
    assert (broken.calls, broken.at_least) == ((OTHER,), True)
    first, second = broken.completion.split("</tool_call>\n<tool_call>")
    with pytest.raises(json.JSONDecodeError):
        json.loads(first.removeprefix("<tool_call>\n"))
    assert json.loads(second.split("</tool_call>")[0])["name"] == OTHER.name


@pytest.mark.slow
def test_no_broken_case_where_calls_share_one_text() -> None:
    cases = samples(learn(texts.INST))
    assert "parallel" in cases
    assert "broken-beside" not in cases


def test_parameters_in_tags_are_text() -> None:
    cases = samples(learn(texts.XML_PARAMETERS))
    assert all(s.text_arguments for s in cases.values() if s.calls and not s.case.startswith("thinking"))
    assert "<parameter=count>\n-3\n</parameter>" in cases["numbers"].completion
    assert (
        cases["no-arguments"].completion == "<tool_call>\n<function=list_alarms>\n</function>\n</tool_call>"
    )
    assert "</parameter>" not in cases["broken-beside"].completion.split("</function>")[0]


@pytest.mark.slow
def test_arguments_nobody_could_read_back_are_no_samples() -> None:
    printed = texts.XML_PARAMETERS.replace(
        "(value if value is string else value | tojson)", "(value | string)"
    )
    found = learn(printed)
    assert {"nested", "array", "null"} <= set(found.problems)
    assert "True" in samples(found)["booleans"].completion  # a schema can still tell
    pythonic = learn(texts.PYTHONIC)
    assert {"quotes", "newlines"} <= set(pythonic.problems)
    assert samples(pythonic)["array"].completion == "<call>plan_trip(cities=['Rome', 'Bern'])</call>"


@pytest.mark.slow
def test_arguments_as_text_where_the_template_wants_text() -> None:
    found = learn(texts.ARGUMENTS_AS_TEXT)
    assert samples(found)["one-call"].completion == '<call>get_weather {"city": "Paris"}</call>'
    assert not samples(found)["one-call"].text_arguments


@pytest.mark.slow
def test_ids_that_name_the_function() -> None:
    found = learn(texts.KIMI_IDS)
    parallel = samples(found)["parallel"].completion
    assert "functions.get_weather:0" in parallel
    assert "functions.find_hotel:1" in parallel


@pytest.mark.slow
def test_content_that_must_be_null() -> None:
    found = learn(texts.NULL_CONTENT)
    assert samples(found)["one-call"].completion == '<call>get_weather{"city": "Paris"}</call>'
    assert "parallel" in found.problems
    assert "narrated" in found.problems


def test_headers_and_another_end_after_calls() -> None:
    found = learn(texts.HEADERS)
    cases = samples(found)
    assert cases["one-call"].completion == '{"name": "get_weather", "parameters": {"city": "Paris"}}'
    assert cases["one-call"].prompt.startswith("<s>")
    assert found.problems["parallel"] == refused("one call at a time")
    assert "parallel" not in cases
    assert found.end_of_turn == "<|eot_id|>"


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ('[TOOL_CALLS]f[CALL_ID]c4ll00000[ARGS]{"a": 1}', '[TOOL_CALLS]f[ARGS]{"a": 1}'),
        ('[{"name": "f", "arguments": {}, "id": "c4ll00000"}]', '[{"name": "f", "arguments": {}}]'),
        ('{"id": "c4ll00000", "name": "f"}', '{"name": "f"}'),
        ("{'name': 'f', 'id': 'c4ll00001'}", "{'name': 'f'}"),
        ('<call id="c4ll00000" name="f">', '<call name="f">'),
        ("<call><call_id>c4ll00000</call_id><name>f", "<call><name>f"),
        ("<tool_call>c4ll00000\n{}", "<tool_call>\n{}"),
        (
            "<|tool_call_begin|>functions.f:0<|tool_call_end|>",
            "<|tool_call_begin|>functions.f:0<|tool_call_end|>",
        ),
    ],
)
def test_what_a_server_makes_up_is_not_the_models_text(written: str, left: str) -> None:
    assert SERVERS.sub("", written) == left


def test_an_id_of_the_server_is_no_part_of_a_completion() -> None:
    """As Mistral-Small-3.2, whose derived parser required ``[CALL_ID]`` and lost every call."""
    call = "[TOOL_CALLS]{{ c.function.name }}[CALL_ID]{{ c.id }}[ARGS]{{ c.function.arguments | tojson }}"
    text = (
        "{% for m in messages %}[INST]{{ m.content }}[/INST]"
        "{% for c in m.tool_calls or [] %}" + call + "{% endfor %}{% endfor %}"
    )
    cases = samples(learn(text))
    assert cases["one-call"].completion.endswith('[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}')
    assert not any("c4ll" in case.completion for case in cases.values())


@pytest.mark.parametrize(
    ("call", "left"),
    one_of_each([
        ("{{ f.name }}[TIME]{{ strftime_now('%H:%M') }}[ARGS]{{ f.arguments | tojson }}",
         '[CALLS]get_weather[ARGS]{"city": "Paris"}'),
        (('{"name": "{{ f.name }}", "at": "{{ strftime_now(\'%Y-%m-%dT%H:%M:%SZ\') }}", '
         '"arguments": {{ f.arguments | tojson }}}'),
         '[CALLS]{"name": "get_weather", "arguments": {"city": "Paris"}}'),
        (('<f name="{{ f.name }}" time="{{ strftime_now(\'%d %B %Y, %I:%M %p\') }}">'
         "{{ f.arguments | tojson }}</f>"),
         '[CALLS]<f name="get_weather">{"city": "Paris"}</f>'),
    ], tier="slow"),
    ids=["tag", "member", "attribute"],
)  # fmt: skip
def test_what_changes_with_the_clock_is_no_part_of_a_completion(call: str, left: str) -> None:
    text = (
        "{{ strftime_now('%d %b %Y') }}{% for m in messages %}[INST]{{ m.content }}[/INST]"
        "{% for c in m.tool_calls or [] %}{% set f = c.function %}[CALLS]" + call + "{% endfor %}{% endfor %}"
    )
    one = samples(learn(text))["one-call"]
    assert one.completion.endswith(left)
    assert one.prompt.startswith("15 Jan 2026")


def test_nine_characters_and_no_header() -> None:
    cases = samples(learn(texts.INST))
    assert cases["one-call"].completion.startswith('[TOOL_CALLS][{"name": "get_weather"')
    assert cases["one-call"].completion.endswith("}}]")  # the id is the server's
    assert cases["one-call"].prompt.endswith("[/INST]")
    assert "[AVAILABLE_TOOLS]" in cases["one-call"].prompt


def test_channels() -> None:
    found = learn(texts.CHANNELS)
    cases = samples(found)
    assert found.thinking.markers == ("<|channel|>analysis<|message|>", "<|end|>")
    assert (found.thinking.source, found.thinking.opened, found.thinking.default) == ("rendered", False, None)
    assert cases["one-call"].completion == (
        ' to=functions.get_weather<|channel|>commentary<|message|>{"city": "Paris"}'
    )
    assert cases["plain"].completion == f"<|channel|>final<|message|>{ANSWER}"
    assert cases["thinking-whole"].completion == (
        f"<|channel|>analysis<|message|>{REASONING}<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}"
    )
    call = cases["thinking-call"]
    assert call.completion.startswith(f"<|channel|>analysis<|message|>{REASONING}<|end|>")
    assert call.completion[call.lead :].startswith("<|start|>assistant to=functions.get_weather")
    assert "thinking-several" not in cases
    assert "parallel" in found.problems


@pytest.mark.slow
def test_strict_alternation_without_system_or_tools() -> None:
    for text in (texts.ALTERNATING, texts.REFUSES_TOOLS):
        found = learn(text)
        cases = samples(found)
        assert not found.calls_rendered
        assert not found.tools_rendered
        assert cases["plain"].completion == ANSWER
        assert cases["plain"].prompt.endswith("<start_of_turn>model\n")
        assert set(CALLS) <= set(found.problems)
        assert found.end_of_turn == "<end_of_turn>"
    assert found.problems["one-call"] == refused("this model has no tools")


@pytest.mark.slow
def test_history_that_must_end_with_the_user() -> None:
    cases = samples(learn(texts.ENDS_WITH_USER))
    assert cases["plain"].completion == ANSWER


def test_content_in_parts() -> None:
    assert samples(learn(texts.PARTS_ONLY))["plain"].completion == ANSWER


@pytest.mark.slow
def test_a_generation_prompt_that_is_always_there() -> None:
    found = learn(texts.ALWAYS_OPENS)
    assert samples(found)["plain"].completion == ANSWER
    assert found.end_of_turn == "<|im_end|>"


@pytest.mark.slow
def test_the_plain_template_serves_answers() -> None:
    needs_tools = "{% if not tools %}{{ raise_exception('no tools given') }}{% endif %}" + texts.CHATML_JSON
    alone = samples(learn(needs_tools))
    assert alone["plain"].completion == ANSWER
    both = learn(needs_tools, plain=texts.ALTERNATING)
    assert samples(both)["plain"].prompt.endswith("<start_of_turn>model\n")
    assert samples(both)["one-call"].prompt.endswith("<|im_start|>assistant\n")


def test_thinking_with_a_switch() -> None:
    found = learn(texts.SWITCHED)
    thinking, cases = found.thinking, samples(found)
    assert thinking.markers == ("<think>", "</think>")
    assert thinking.block == ("<think>\n", "\n</think>\n\n")
    assert (thinking.source, thinking.opened, thinking.default) == ("rendered", False, True)
    assert (thinking.switch, thinking.on, thinking.off) == (
        "enable_thinking", {"enable_thinking": True}, {"enable_thinking": False},
    )  # fmt: skip
    one = cases["one-call"]
    assert one.kwargs == {"enable_thinking": False}
    assert one.prompt.endswith("</think>\n\n")
    assert one.completion.startswith("<tool_call>")
    whole = cases["thinking-whole"]
    assert whole.completion == f"<think>\n{REASONING}\n</think>\n\n{ANSWER}"
    assert whole.completion[whole.lead :] == ANSWER
    assert (whole.reasoning, whole.content, whole.kwargs) == (REASONING, ANSWER, {})
    assert cases["thinking-off"].completion == ANSWER
    assert cases["thinking-off"].reasoning == ""
    assert cases["thinking-none"].completion == ANSWER
    assert cases["thinking-none"].kwargs == {}
    cut = cases["thinking-cut"]
    assert "</think>" not in cut.completion
    assert (cut.content, REASONING.startswith(cut.reasoning or "?")) == ("", True)
    assert cases["thinking-several"].completion.count("</think>") == 2
    assert (cases["thinking-several"].content, cases["thinking-several"].reasoning) == (None, None)
    assert cases["thinking-call"].completion.startswith(f"<think>\n{REASONING}\n</think>\n\n<tool_call>")


def test_thinking_opened_by_the_prompt() -> None:
    found = learn(texts.OPENED)
    thinking, cases = found.thinking, samples(found)
    assert (thinking.markers, thinking.opened, thinking.default) == (("<think>", "</think>"), True, True)
    assert (thinking.switch, thinking.off) == (None, None)
    assert "thinking-whole" not in cases
    assert "thinking-none" not in cases
    opened = cases["thinking-opened"]
    assert opened.prompt.endswith("<think>\n")
    assert opened.completion == f"{REASONING}\n</think>\n\n{ANSWER}"
    one = cases["one-call"]
    assert one.prompt.endswith("<think>\n")
    assert one.completion[: one.lead] == f"{REASONING}\n</think>\n\n"
    assert one.completion[one.lead :].startswith("<tool_call>")
    assert one.reasoning == REASONING


def test_thinking_on_demand() -> None:
    found = learn(texts.OPENED_ON_DEMAND)
    thinking, cases = found.thinking, samples(found)
    assert (thinking.opened, thinking.default) == (False, False)
    assert thinking.on == {"enable_thinking": True}
    assert cases["one-call"].kwargs == {}
    assert cases["one-call"].completion.startswith("<tool_call>")
    assert cases["thinking-opened"].kwargs == {"enable_thinking": True}


@pytest.mark.slow
def test_a_switch_of_words() -> None:
    thinking = learn(texts.EFFORT).thinking
    assert (thinking.switch, thinking.off) == ("reasoning_effort", {"reasoning_effort": "no_think"})
    assert thinking.on in ({"reasoning_effort": "low"}, {"reasoning_effort": "high"})
    assert thinking.default is False


@pytest.mark.slow
def test_a_switch_of_any_name() -> None:
    thinking = learn(texts.OTHER_NAME).thinking
    assert (thinking.switch, thinking.off) == ("quick_reply", {"quick_reply": True})


def test_stripping_history_is_not_thinking() -> None:
    found = learn(texts.STRIPS)
    assert found.thinking.source == "stripped"
    assert (found.thinking.opened, found.thinking.default) == (False, None)
    assert samples(found)["thinking-whole"].completion == f"<think>\n{REASONING}\n</think>\n\n{ANSWER}"


@pytest.mark.slow
def test_opened_and_stripped_from_history() -> None:
    found = learn(texts.STRIPS_AND_OPENS)
    assert (found.thinking.source, found.thinking.opened) == ("prompt", True)
    assert samples(found)["thinking-opened"].completion == f"{REASONING}\n</think>\n\n{ANSWER}"


@pytest.mark.parametrize(
    "text",
    ["{% if %}", "{{ raise_exception('never') }}",
     pytest.param("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
                  marks=pytest.mark.slow), "", "no variables at all", "{{ messages }}"],
)  # fmt: skip
def test_hopeless_templates_give_reasons(text: str) -> None:
    with Renderer(cpu_seconds=0.2) as renderer:
        found = analyze(Template(text, "chat_template.jinja"), VOCABULARY, renderer)
    assert not found.calls_rendered
    assert found.problems
    assert "one-call" not in samples(found)


@pytest.mark.slow
def test_a_template_that_appends_to_lists() -> None:
    found = learn("{% set l = [] %}{% set _ = l.append(1) %}" + texts.CHATML_JSON)
    assert found.calls_rendered
    assert "unsafe" in str(found.problems["template"].fields["words"])


@pytest.mark.slow
def test_declared_tokens_are_not_cut() -> None:
    template = (
        "{% for m in messages %}{{ '~' + m.role + '~' + m.content + '~end~' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '~assistant~~brief~' }}{% endif %}"
    )
    vocabulary = Vocabulary(tokens=(Token("~brief~", True), Token("~bold~", True)), declared=True)
    assert samples(learn(template, vocabulary))["plain"].completion == ANSWER


def test_tools_are_valid_schemas() -> None:
    import jsonschema

    for tool in TOOLS:
        jsonschema.Draft202012Validator.check_schema(tool["function"]["parameters"])
