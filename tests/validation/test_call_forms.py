"""Forms of calls, tried on a live model: what is read of its answers, proposed, and kept for imports."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from importer.chat_template.conventions import AS_WRITTEN
from importer.chat_template.override import by_name, respelled
from importer.sentences import render
from importer.signals import observed
from importer.signals.evidence import Evidence, is_warning
from importer.signals.observed import CallForm
from importer.validation import call_forms
from importer.validation.outcome import NotShown, Pass, ProbeRow, Report, Tried
from importer.validation.prompts import WEATHER
from importer.validation.remedy import Remedy
from importer.validation.reply import Reply
from tests.decisions.test_decide import tool
from tests.facts import as_reason, proof, whys

FENCED = '```json\n{"name": "get_weather", "arguments": {"location": "Paris"}}\n```'
SPELLING = (("<tool_call>", "```json"), ("</tool_call>", "```"))
SERVED = CallForm("hermes", 0, 12, digest="own")
WRITTEN = CallForm("hf", 9, 12, AS_WRITTEN, "new", spelling=SPELLING)
REQUIRED = CallForm("hermes", 4, 4, choice="required")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FENCED, ("```json", "```")),
        (f"Sure, I look it up:\n\n{FENCED}\nDone.", ("```json", "```")),
        ('<tools>{"a": 1}</tools> <x>{"name": "get_weather"}</x>', ("<x>", "</x>")),
        ('{"name": "get_weather", "arguments": {}}', None),  # no marks at all
        ('```json\n{"name": "another_tool"}\n```', None),
        ("```json\n{broken", None),
        ("x" * 60 + '{"name": "get_weather"} ' + "y" * 60, None),
        ("{" * 5000, None),
        ('{{x}} {"name": "get_weather"} \'}}', None),
    ],
)
def test_the_marks_that_a_model_writes_around_a_call(text: str, expected: object) -> None:
    assert call_forms.written([(WEATHER, Reply(text))]) == expected


def test_most_answers_decide_on_the_marks() -> None:
    texts = [FENCED, FENCED, FENCED.replace("```json", "<a>"), "It is sunny."]
    assert call_forms.written([(WEATHER, Reply(text)) for text in texts]) == ("```json", "```")


@pytest.mark.parametrize(
    ("forms", "kind"),
    [
        ((SERVED, WRITTEN, REQUIRED), Remedy.SERVE_TEMPLATE),
        ((SERVED, replace(WRITTEN, right=3), REQUIRED), Remedy.REQUIRE_CALLS),
        ((SERVED, replace(WRITTEN, right=3), replace(REQUIRED, right=0)), Remedy.SERVE_TEMPLATE),
        ((replace(SERVED, parser="xlam", right=7), REQUIRED), Remedy.SET_PARSER),
        ((SERVED, replace(WRITTEN, right=0)), Remedy.OFFER_NO_TOOLS),
    ],
)
def test_the_form_that_is_proposed(forms: tuple[CallForm, ...], kind: Remedy) -> None:
    missing = ProbeRow("tool-call", "", NotShown(as_reason("no call")), ability="tools")
    other = ProbeRow("tool-result-turn", "", NotShown(as_reason("forgot")), ability="results")
    first, second = call_forms.with_remedy([missing, other], forms, "hermes")
    best = max(forms, key=lambda form: form.right)
    assert first.outcome.remedy is not None
    assert first.outcome.remedy.kind is kind
    assert second == other
    if best.right:
        assert first.outcome.tried is not None
    assert call_forms.with_remedy([missing, other], (), "hermes") == [missing, other]


def test_the_parser_that_is_served_is_no_change() -> None:
    missing = ProbeRow("tool-call", "", NotShown(as_reason("no call")), ability="tools")
    (told,) = call_forms.with_remedy([missing], [replace(SERVED, parser="hermes", right=2)], "hermes")
    assert (told.outcome.remedy, told.outcome.tried) == (None, Tried(2, SERVED.asked))


def test_nothing_is_tried_on_a_model_that_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = ProbeRow("tool-call", "", Pass(as_reason("called")), ability="tools")
    monkeypatch.setattr(call_forms, "_drawn_forms", lambda _: pytest.fail("asked"))
    assert call_forms.observed(None, [passed], print) == ()  # type: ignore[arg-type]


def test_more_answers_make_the_figure_of_an_ability() -> None:
    row = ProbeRow("tool-call", "", NotShown(as_reason("no call"), trials=3), ability="tools")
    figures = Report({}, "", {}, (row,), forms=(SERVED, WRITTEN, REQUIRED)).abilities
    assert (figures["tools"]["shown"], figures["tools"]["asked"]) == (0, 12)
    assert (figures["required"]["shown"], figures["required"]["asked"]) == (4, 4)


def evidence(*forms: CallForm, digest: str) -> list[Evidence]:
    return observed.of_calls([json.loads(json.dumps(form.to_json())) for form in forms], digest)


def test_the_model_s_own_calls_count_more_than_the_form_of_its_template() -> None:
    read = proof(["hermes"], {"xml": "reads nothing"})
    [seen] = evidence(replace(SERVED, parser="xml", right=11), digest="own")
    chosen = tool(seen, read)
    assert (chosen.value, chosen.status) == ("xml", "observed")
    assert [lost.value for lost in chosen.overruled] == ["hermes"]
    [agrees] = evidence(replace(SERVED, right=11), digest="own")
    assert (tool(agrees, read).value, tool(agrees, read).status) == ("hermes", "observed")
    assert tool(agrees, read, prefer={"tool_parser": "xml"}).status == "user"
    [foreign] = evidence(replace(SERVED, parser="not-of-this-engine", right=11), digest="own")
    assert tool(foreign, read).value == "hermes"


def test_calls_that_nothing_reads_are_a_warning_with_the_form_in_which_they_arrive() -> None:
    [seen] = evidence(SERVED, WRITTEN, REQUIRED, digest="own")
    chosen = tool(seen, proof(["hermes"]))
    assert (chosen.value, chosen.status) == ("hermes", "proved")
    assert is_warning(chosen.why[0])
    assert "of 12 answers of the model itself 0" in whys(chosen)[0]
    [of_new] = evidence(SERVED, WRITTEN, REQUIRED, digest="new")
    assert of_new.value == "hf"
    assert evidence(SERVED, WRITTEN, REQUIRED, digest="another template") == []
    [few] = evidence(SERVED, replace(WRITTEN, right=3), REQUIRED, digest="own")
    assert render(few.reason).endswith("with tool_choice required 4 of 4 arrive"), "as the report proposes"
    [alone] = evidence(SERVED, digest="own")
    assert render(alone.reason).endswith("and no form tried did better")


def test_a_template_in_the_model_s_own_spelling() -> None:
    assert respelled("within <tool_call></tool_call> tags", SPELLING) == "within ```json``` tags"
    given = by_name(AS_WRITTEN).spelled([SERVED.to_json(), WRITTEN.to_json()])
    assert given.spelling == SPELLING
    assert by_name("json").spelled([WRITTEN.to_json()]) == by_name("json")
