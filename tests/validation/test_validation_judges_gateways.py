"""Judging what lies between client and template: history retold, prompts cut, settings that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from importer.demo import MODEL
from importer.engines.tokenizer import Tokenized
from importer.hub import local
from importer.reasons import Reason
from importer.validation import cause, failures, proof_check, tool_markup
from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.errors import RequestRefused
from importer.validation.expectations import Expectations, promise_of
from importer.validation.explain import explained
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, ProbeRow, Stage
from importer.validation.probes.chat import judge_missed
from importer.validation.probes.ends import answer_ends
from importer.validation.probes.prompt import judge_history
from importer.validation.probes.reasoning import reasoning_apart, switch_dropped
from importer.validation.prompts import GREETING, SUM, WEATHER
from importer.validation.remedy import Remedy
from importer.validation.rendering import PromptRendering
from importer.validation.reply import Reply, Usage
from importer.validation.tokens import OWN, changed_prompt
from tests.facts import as_reason
from tests.judging import remedy, verdict


def context(render: PromptRendering | None = None, promise: Expectations | None = None) -> Context:
    return Context(promise or Expectations(), "m", Client("http://127.0.0.1:1"), render=render)


@pytest.fixture
def render() -> Iterator[PromptRendering]:
    with PromptRendering(local.resolve(str(MODEL), MODEL)) as made:
        yield made


@pytest.mark.parametrize(
    ("short", "longer", "expected"),
    [
        ((60, 60), (260, 260), "pass"),
        ((62, 60), (262, 260), "pass"),  # a date that is another day's is in both
        ((60, 60), (252, 260), "fail engine"),
        ((60, 60), (290, 260), "fail engine"),
        (None, (260, 260), "pass"),
    ],
)
def test_history_takes_as_many_tokens_as_the_template_writes(
    short: tuple[int, int] | None, longer: tuple[int, int] | None, expected: str
) -> None:
    assert verdict(judge_history(short, longer)) == expected


@pytest.mark.parametrize(
    ("said", "mend"),
    [
        ("got multiple values for keyword argument 'add_generation_prompt'", "add_generation_prompt"),
        ("top_p must be in (0, 1], got 0.0.", "top_p"),
        ("repetition_penalty must be greater than zero", "repeat_penalty"),
        ("the model does not exist", ""),
        ("a conversation about temperature is not for us", ""),
    ],
)
def test_a_refusal_that_names_a_setting_of_the_document(said: str, mend: str) -> None:
    promise = promise_of(
        {
            "parameters": {"top_p": 0.0, "temperature": 1.0, "repeat_penalty": -1.0},
            "chat_template_kwargs": {"add_generation_prompt": False},
        }
    )
    told = failures.failed(RequestRefused(400, said), context(promise=promise))
    assert told.attribution == "configuration"
    assert mend in remedy(told) if mend else not remedy(told)


def test_what_is_written_wrong_is_the_documents_where_it_changes_the_numbers() -> None:
    found = judge_missed(3, 3)
    dice = promise_of({"load_format": "dummy"})
    told = cause.altered(found, dice)
    assert (told.attribution, "load_format" in remedy(told)) == ("configuration", True)
    assert cause.altered(found, Expectations()) is found
    lost = Fail(as_reason("the parser lost it"), Stage.WHOLE, Reason(Remedy.OTHER_VERSION_READS, parser="x"))
    assert cause.altered(lost, dice).attribution == "configuration"
    count = Fail(as_reason("counts nothing"), Stage.WHOLE)
    assert cause.altered(count, dice) is count


def test_settings_that_change_the_numbers() -> None:
    plain = {"load_format": "mistral", "quantization": None, "engine_args": {"dtype": "auto"}}
    assert promise_of(plain).altering == {}
    assert promise_of({"engine_args": {"kv_bits": 2}}).altering == {"engine_args.kv_bits": 2}


def test_a_model_that_is_told_not_to_think_by_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Reply("Four.", "", (), "stop", Usage(10, 3))
    monkeypatch.setattr(Client, "chat", lambda _self, _body, _log: answer)
    promise = Expectations(reasoning_parser="x", offers=frozenset())
    with PromptRendering(local.resolve(str(MODEL), MODEL), {"enable_thinking": False}) as silent:
        assert isinstance(reasoning_apart.run(context(silent, promise)), NotApplicable)
    with PromptRendering(local.resolve(str(MODEL), MODEL)) as thinking:
        assert reasoning_apart.run(context(thinking, promise)).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("plain", "silent", "expected"),
    [
        ((20, 20), (20, 24), True),
        ((20, 20), (24, 24), False),  # it arrives, and the model thinks all the same
        ((31, 20), (31, 24), False),  # nothing of what is counted is what is rendered
        (None, (20, 24), False),
    ],
)
def test_a_switch_that_does_not_reach_the_prompt(
    plain: tuple[int, int] | None, silent: tuple[int, int] | None, expected: bool
) -> None:
    assert switch_dropped(plain, silent) is expected


def test_a_call_beside_what_the_model_did_not_write(
    monkeypatch: pytest.MonkeyPatch, render: PromptRendering
) -> None:
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"location": "Paris"}}\n</tool_call>'
    monkeypatch.setattr(Context, "look", lambda _self, _prompt: None)
    monkeypatch.setattr(Context, "raw", lambda _self, _prompt: call)
    assert proof_check.calls_as_proved(context(render))
    monkeypatch.setattr(Context, "raw", lambda _self, _prompt: "get_weather(Paris)")
    assert not proof_check.calls_as_proved(context(render))
    monkeypatch.setattr(Context, "raw", lambda _self, _prompt: None)
    assert not proof_check.calls_as_proved(context(render))


def test_a_stop_word_explains_calls_that_are_cut_in_streams() -> None:
    word = Fail(
        as_reason("it stands between two calls"), Stage.START, Reason(Remedy.TAKE_OUT_STOPWORD, word="x")
    )
    cut = Fail(as_reason("tool calls differ"), Stage.STREAM, Reason(Remedy.WHOLE_ANSWERS))
    told = explained([ProbeRow(answer_ends.name, "", word), ProbeRow("stream-equals-whole", "", cut)])
    assert [row.outcome.attribution for row in told] == ["configuration", "configuration"]


@pytest.mark.parametrize(
    ("written", "ends"),
    [
        ("<think>\nIt greets. It greets. It greets.", False),
        ("<think>\nIt greets.\n</think>\n\n", False),
        ("<think>\nIt greets.\n</think>\n\nHello!", True),
        ("Hello!", True),
    ],
)
def test_a_thought_that_the_model_does_not_end_is_not_the_parsers(
    written: str, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Context, "raw", lambda *_, **__: written)
    assert tool_markup.endless(context(), GREETING) is not ends


def test_what_is_held_to_a_form_begins_behind_a_thought(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = Fail(as_reason("get_time was named, and none came: ''"), Stage.WHOLE)
    thinker = context(promise=Expectations(reasoning_parser="qwen3"))
    thought = "<think>\nHm.\n</think>\n\nHello!"
    monkeypatch.setattr(Context, "raw", lambda _, asked, **__: thought if asked is SUM else '{"name": "Ada"}')
    told = tool_markup.unended(empty, GREETING, thinker)
    assert (told.outcome, told.attribution) == ("inconclusive", "model")
    assert tool_markup.unended(empty, GREETING, context()) == empty
    for written in (thought, "analysis: hm. final: Hello!"):
        monkeypatch.setattr(Context, "raw", lambda *_, written=written, **__: written)
        assert tool_markup.unended(empty, GREETING, thinker) == empty


@pytest.mark.parametrize(
    ("change", "exact", "told"),
    [
        (lambda text: text, True, False),
        (lambda text: text.replace("user", " user"), True, True),
        (lambda text: text.replace("user", " user"), False, False),  # sentencepiece does
        (lambda text: text.replace("\n", ""), True, False),  # special tokens take what is beside them
        (lambda text: text.lower(), False, True),
    ],
)
def test_spaces_that_a_tokenizer_adds(
    change: Callable[[str], str], exact: bool, told: bool, render: PromptRendering
) -> None:
    def ask(texts: tuple[str, ...], /, drawn: object = ()) -> Tokenized:
        return Tokenized(tuple(change(text) for text in texts), 0, 0, exact)

    ctx = replace(context(render), tokens=ask)
    assert (changed_prompt(ctx) is not None) is told
    silent = cause.by_proof(Inconclusive(as_reason("the model answered without a call"), Stage.DRAWN), ctx)
    assert isinstance(silent, Inconclusive)
    assert (silent.attribution, silent.remedy == OWN) == (
        ("configuration", True) if told else ("model", False)
    )


@pytest.mark.parametrize(
    ("written", "misspelt"),
    [
        ('<tool_call>\n{"name": "get_weather", "arguments": {"location": "Par</tool_call>', True),
        ('<tool_call>\n{"name": "get_weather", "arguments": {"location": "Paris"}}\n</tool_call>', False),
        ('<tool_call>\n{"name": "a", "arguments": {}}\n</tool_call>\n<tool_call>\n{"name": ', False),  # cut
        ('<tool_call>\n{"name": "a"}\n</tool_call><|im_end|>\n<tool_call>\n{"na</tool_call>', False),
        ("<tool_call>get_weather\n<arg_key>location</arg_key>", False),  # another format
        ("I cannot look that up.", False),
    ],
)
def test_a_call_that_the_model_misspells_in_its_templates_format(
    written: str, misspelt: bool, render: PromptRendering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Context, "raw", lambda *_, **__: written)
    assert proof_check.misspells(context(render), WEATHER) is misspelt
    assert not proof_check.misspells(context(), WEATHER)
