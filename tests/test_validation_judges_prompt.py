"""Judging the prompt, limits, stop words and what spoils answers: each judge fails on its harm alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Template

from importer import demo
from importer.engines import get
from importer.engines.doctor import files
from importer.engines.doctor.case import Case
from importer.engines.doctor.result import Fine, NotApplicable, Result, Trouble
from importer.hub import local
from importer.proof.prove import NO_THINKING
from importer.proof.result import Proof, Verdict
from importer.validation import blame, proved, roots, spoilt
from importer.validation.calls import judge_call
from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.outcome import Attribution, Fail, Inconclusive, Outcome, Pass
from importer.validation.outcome import NotApplicable as Skipped
from importer.validation.probes import (
    calls_kept,
    own_limit,
    prompt_rendered,
    reasoning_off,
    sampling_arrives,
    simple_answers,
    stop_words,
    tool_result_turn,
)
from importer.validation.promise import Promise, promise_of
from importer.validation.prompts import (
    SUM,
    WEATHER,
    WEATHER_ANSWERED,
    WEATHER_CALLED_LONGER,
    WEATHER_TWO_TOOLS,
    Prompt,
)
from importer.validation.rendering import Rendering
from importer.validation.reply import Reply, ToolCall, Usage
from importer.validation.report import Row
from tests.test_validation_judges import WRITTEN

MODEL = Path(demo.__file__).with_name("model")


def verdict(outcome: Outcome) -> str:
    return f"{outcome.outcome} {outcome.attribution or ''}".strip()


def said(content: str, finish: str = "stop", *, reasoning: str = "", wrote: int = 9) -> Reply:
    return Reply(content, reasoning, (), finish, Usage(10, wrote))


CALL = '{"name": "get_weather", "arguments": {"location": "Paris"}}'


@pytest.mark.parametrize(
    ("rendered", "written", "expected"),
    [
        (CALL, CALL, "pass"),
        ('{"name": "get_weather", "arguments": "{\\"location\\": \\"Paris\\"}"}', CALL, "fail configuration"),
        ("{'location': 'Paris'}", CALL, "fail configuration"),
        ("{'location': 'Paris'}", "{'location': 'Paris'}", "pass"),
        ("{'location': 'Paris'}", "", "pass"),
        ("get_weather(location='Paris')", "get_weather(location='Paris')", "pass"),
        ("", CALL, "pass"),
    ],
)
def test_calls_of_earlier_turns(rendered: str, written: str, expected: str) -> None:
    assert verdict(calls_kept.judge(rendered, written)) == expected


def test_the_longer_call_is_longer_only_there() -> None:
    short, longer = WEATHER_ANSWERED.messages, WEATHER_CALLED_LONGER.messages
    assert [a == b for a, b in zip(short, longer, strict=True)] == [True, False, True]


@pytest.mark.parametrize(
    ("text", "bos", "expected"),
    [
        ("<s>[INST]", "<s>", "pass"),
        ("<s><s>[INST]", "<s>", "fail configuration"),
        ("<|im_start|><|im_start|>", "", "pass"),
    ],
)
def test_a_prompt_begins_once(text: str, bos: str, expected: str) -> None:
    assert verdict(prompt_rendered.judge_beginning(text, bos)) == expected


@pytest.mark.parametrize(
    ("asked", "unasked", "answered", "expected"),
    [
        ("u:hi\na:", "u:hi\n", "u:hi\na:", "pass"),
        ("u:hi\n", "u:hi\n", "u:hi\na:", "fail configuration"),
        ("[INST] hi [/INST]", "[INST] hi [/INST]", "[INST] hi [/INST] ", "pass"),
        ("<u>hi<a><think>", "<u>hi", "<u>hi<a>", "pass"),
        ("<u>hi<a>", "<u>hi", "<u>hi<a><channel>final<message>", "pass"),  # an answer chooses its channel
        ("<u>hi<a>", "<u>hi<a>", "<u>hi", "pass"),  # begun whether asked or not
        ("<u>hi</u>", "<u>hi</u>", "nothing of it", "pass"),  # what is compared is another conversation
    ],
)
def test_the_assistants_turn_is_begun(asked: str, unasked: str, answered: str, expected: str) -> None:
    assert verdict(prompt_rendered.judge_turn(asked, unasked, answered)) == expected


@pytest.mark.parametrize(
    ("chat", "rendered", "others", "expected"),
    [
        (283, 283, (), "pass"),
        (286, 283, (), "pass"),  # another day's date
        (18, 283, (), "fail engine"),
        (18, 283, ("tokenizer_config.json",), "fail configuration"),
    ],
)
def test_the_engines_prompt_is_as_long_as_ours(
    chat: int, rendered: int, others: tuple[str, ...], expected: str
) -> None:
    assert verdict(prompt_rendered.judge_counts(chat, rendered, others)) == expected


def test_variables_that_the_template_does_not_know() -> None:
    assert verdict(prompt_rendered.judge_variables([])) == "pass"
    unknown = prompt_rendered.judge_variables(["thinking"])
    assert verdict(unknown) == "fail configuration"
    assert "chat_template_kwargs" in unknown.mend
    assert promise_of({"chat_template_kwargs": {"a": 1}}).variables == {"a": 1}


@pytest.mark.parametrize(
    ("reply", "full", "expected"),
    [
        (said("One, two, three."), said("One, two, three."), "pass"),
        (said("One, t", "length"), said("One, two, three."), "fail configuration"),
        (said("One, t", "length"), said("One", "length", wrote=8), "fail configuration"),
        (said("One, t", "length"), said("One, t", "length", wrote=64), "not-applicable"),
        (said(""), said("One, two, three."), "inconclusive model"),
    ],
)
def test_a_request_without_a_limit(reply: Reply, full: Reply, expected: str) -> None:
    assert verdict(own_limit.judge(reply, full, 64)) == expected


@pytest.mark.parametrize(
    ("reply", "stops", "expected"),
    [
        (said("Hello! How can I help?"), (" can",), "fail configuration"),
        (said("", reasoning="I can help. So:"), (" can",), "fail configuration"),
        (said("Hello! How can I help?"), ("<|im_end|>",), "pass"),
        (said("Hello!<|im_end|>"), ("<|im_end|>",), "pass"),
    ],
)
def test_stop_words(reply: Reply, stops: tuple[str, ...], expected: str) -> None:
    assert verdict(stop_words.judge([said("Fine."), reply], stops)) == expected


def test_stop_words_are_those_that_clients_send() -> None:
    assert stop_words.words(Promise(client_sampling={"stop": ["a", "b"]})) == ("a", "b")
    assert stop_words.needs(Promise()) is not None
    assert stop_words.needs(Promise(client_sampling={"stop": "a"})) is None


def test_wrong_answers_are_the_models_unless_the_tokenizer_is_not() -> None:
    assert verdict(simple_answers.judge_missed(None, 3, 3)) == "fail model"
    foreign = simple_answers.judge_missed("<|im_start|>", 3, 3)
    assert (verdict(foreign), "tokenizer" in foreign.mend) == ("fail configuration", True)


def asked(answer: Any, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Context:
    """A context in which a chat is answered by ``answer``, which is given the request."""
    monkeypatch.setattr(Client, "chat", lambda _self, body, _log: answer(body))
    return Context(Promise(**more), "m", Client("http://127.0.0.1:1"))


def test_most_simple_questions_have_to_be_answered_right(monkeypatch: pytest.MonkeyPatch) -> None:
    right = {"two plus two": "Four.", "Count": "One to ten.", "my name": "Mira."}

    def good(body: Any) -> Reply:
        text = body["messages"][-1]["content"]
        return said(next((a for q, a in right.items() if q in text), "?"))

    assert verdict(simple_answers.run(asked(good, monkeypatch))) == "pass"
    assert verdict(simple_answers.run(asked(lambda _: said("q4 Tq"), monkeypatch))) == "fail model"
    endless = said("Hey<|im_end|>\nuser\nHey<|im_end|>", "length")
    assert verdict(simple_answers.run(asked(lambda _: endless, monkeypatch))) == "fail configuration"


def test_a_value_without_which_a_probe_passes_is_at_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    sampling = {"temperature": 0.7, "presence_penalty": 0.0, "repetition_penalty": 2.0}
    assert spoilt.suspects(sampling) == {"repetition_penalty": 2.0}
    assert spoilt.suspects({"temperature": 1.0}) == {}
    assert spoilt.suspects({"temperature": 5, "top_k": 0}) == {"temperature": 5}

    def run(ctx: Context) -> Outcome:
        return Pass("x") if ctx.ask(SUM).content == "Four." else Fail("noise", "engine")

    def heard(body: Any) -> Reply:
        return said("Four." if body.get("repetition_penalty") == 1.0 else "F5")

    ctx = asked(heard, monkeypatch, sampling=sampling)
    told = spoilt.without(ctx, Fail("noise", "engine"), run, {})
    assert (verdict(told), told.mend) == ("fail configuration", spoilt.MEND["repetition_penalty"])
    ctx = asked(lambda _: said("F5"), monkeypatch, sampling=sampling)
    assert verdict(spoilt.without(ctx, Fail("noise", "engine"), run, {})) == "fail engine"
    assert spoilt.without(ctx, Pass("y"), run, {}) == Pass("y")


def test_what_rests_on_answers_that_are_all_cut_is_blamed_on_what_cuts_them() -> None:
    outcomes: dict[str, Outcome] = {
        "own-limit": Fail("answers are cut after 8 tokens", "configuration", own_limit.CAPPED),
        "simple-answers": Fail("noise", "model", "Other weights."),
        "tool-call": Inconclusive("still thinking at the limit", "model"),
    }
    rows = [Row(name, "", outcome) for name, outcome in outcomes.items()]
    told = [verdict(row.outcome) for row in roots.traced(rows)]
    assert told == ["fail configuration", "fail configuration", "inconclusive configuration"]


def test_what_rests_on_noise_is_blamed_on_what_made_the_noise() -> None:
    outcomes: dict[str, Outcome] = {
        "simple-answers": Fail("noise", "model", "Other weights."),
        "tool-call": Inconclusive("declined", "model"),
        "no-tool-needed": Fail("called", "engine", "Other weights."),
        "system-role": Fail("dropped", "configuration"),
        "health": Pass("up"),
    }
    rows = [Row(name, "", outcome) for name, outcome in outcomes.items()]
    told = {row.probe: verdict(row.outcome) for row in roots.traced(rows)}
    assert told == {
        "simple-answers": "fail model",
        "tool-call": "inconclusive model",
        "no-tool-needed": "fail model",
        "system-role": "fail configuration",
        "health": "pass",
    }
    assert roots.traced(rows[1:]) == rows[1:]


@pytest.mark.parametrize(
    ("cause", "mend", "follows"),
    [
        ("model-listed", "Ask by a name that is listed.", {"messages"}),
        ("plain-chat", blame.END_TOKEN, {"messages", "long-prompt", "tool-call"}),
        ("reasoning-off", blame.END_TOKEN, {"messages", "long-prompt", "tool-call"}),
        ("prompt-rendered", prompt_rendered.HEEDS, {"messages", "long-prompt", "tool-call"}),
        ("prompt-rendered", "Write it without quotes.", set()),
        ("plain-chat", "Allow more tokens.", set()),
        (
            "stream-equals-whole",
            "Leave reasoning_parser out of options.",
            {"messages", "long-prompt", "tool-call"},
        ),
        ("stream-equals-whole", "Set tool_parser:auto.", {"messages", "long-prompt", "tool-call"}),
        ("stream-equals-whole", "Use whole answers.", set()),
        (
            "settings-read-back",
            "Start it with the document's tool parser.",
            {"messages", "long-prompt", "tool-call"},
        ),
        ("settings-read-back", "Lower the context.", set()),
        ("no-special-tokens", "Its decoder is missing.", {"messages", "long-prompt", "tool-call"}),
        ("no-special-tokens", "Declare it.", set()),
    ],
)
def test_a_cause_explains_what_an_engine_is_blamed_for(cause: str, mend: str, follows: set[str]) -> None:
    outcomes: dict[str, Outcome] = {
        "messages": Fail("the engine answered 500: no such model", "engine"),
        "long-prompt": Fail("600 words were answered: 'again'", "engine"),
        "tool-call": Fail("half a call", "engine"),
        "context-length": Fail("another value", "engine"),
        cause: Fail("seen", "configuration", mend),
        "tool-choice": Fail("declined", "model"),
    }
    rows = roots.traced([Row(name, "", outcome) for name, outcome in outcomes.items()])
    told = {row.probe for row in rows if verdict(row.outcome) == "fail configuration"}
    assert told == {cause, *follows}


def test_an_engine_writes_history_by_its_parser() -> None:
    missing = Fail(
        "it runs with no tool parser", "configuration", "Start it with the document's tool parser."
    )
    history = Fail("calls and results take 239 tokens, and 197 as the template renders them", "engine")
    rows = [Row("settings-read-back", "", missing), Row("prompt-rendered", "", history)]
    assert [verdict(row.outcome) for row in roots.traced(rows)] == ["fail configuration"] * 2


@pytest.mark.parametrize("part", ["configuration", "engine"])
def test_what_is_judged_over_a_thought_is_blamed_on_who_let_it_through(part: Attribution) -> None:
    outcomes: dict[str, Outcome] = {
        "reasoning-apart": Fail("the thinking marker <think> is in the content", part, "Another parser."),
        "structured-output": Fail("the content is not JSON: '<think>\\nA person'", "engine"),
        "stream-equals-whole": Fail(
            "content differs: whole '<ponder>\\nA.\\n</ponder>\\nHi', streamed ''", "engine"
        ),
        "tool-choice": Fail("a call was required, and none came: 'Hello.'", "engine"),
        "guided-output": Inconclusive("the answer came to the limit of tokens", "model"),
    }
    rows = [Row(name, "", outcome) for name, outcome in outcomes.items()]
    told = [verdict(row.outcome) for row in roots.traced(rows)]
    assert told == [*[f"fail {part}"] * 3, "fail engine", "inconclusive model"]
    assert roots.traced(rows[1:]) == rows[1:]


@pytest.mark.parametrize("text", [w for w in WRITTEN if not w.startswith("functions")])
def test_a_call_as_the_template_writes_it(text: str) -> None:
    rendered = f"<|user|>Weather?<|assistant|>\n{text}<|im_end|>\n<|tool|>snow"
    assert proved.as_rendered(f"<think>\nLet me see.\n</think>\n\n{text}<|im_end|>", rendered)
    assert not proved.as_rendered("I cannot.", rendered)
    assert not proved.as_rendered(f"{text}\n<|user|>\n{text}", rendered)
    assert not proved.as_rendered(text + "<|user|>" + "again and again " * 10, rendered)


def test_a_call_in_another_form_than_the_templates() -> None:
    rendered = f"<tool_call>\n{CALL}\n</tool_call>"
    for other in WRITTEN[3:]:
        assert not proved.as_rendered(other, rendered), other


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (CALL, "fail configuration"),
        ("<tool_call>get_weather\n<arg_key>location</arg_key>\n<arg_value>Paris", "fail configuration"),
        ('{"name": "get_weather", "arguments": {}}', "inconclusive model"),
        ("", "inconclusive model"),
    ],
)
def test_an_argument_that_was_written_and_did_not_arrive(written: str, expected: str) -> None:
    empty = (ToolCall(0, "call_1", "get_weather", "{}"),)
    reply = Reply(tool_calls=empty, finish_reason="tool_calls", behind=written)
    assert verdict(judge_call(reply, WEATHER)) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [(CALL, False), ('{"name": "get_weather", "arguments": "{\\"location\\": \\"Paris\\"}"}', True)],
)
def test_a_model_that_encodes_arguments_twice(
    written: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Context, "look", lambda *_: Reply(behind=written))
    monkeypatch.setattr(Context, "rendered", lambda *_: CALL)
    assert proved.encodes_twice(asked(None, monkeypatch)) is expected
    monkeypatch.setattr(Context, "rendered", lambda *_: written)
    assert not proved.encodes_twice(asked(None, monkeypatch)), "so its template wants it"


def rendering(folder: Path) -> Rendering:
    return Rendering(local.resolve(str(folder), folder))


def copied(folder: Path, **changed: str) -> Path:
    folder.mkdir()
    for file in MODEL.glob("*.j*"):
        (folder / file.name).write_bytes(file.read_bytes())
    for name, text in changed.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def test_who_leaves_something_out_of_the_prompt(tmp_path: Path) -> None:
    pair = (WEATHER, WEATHER_TWO_TOOLS)
    settings = json.loads((MODEL / "tokenizer_config.json").read_text())
    older = json.dumps(settings | {"chat_template": "{{ messages }}"})
    cases = {
        "engine": copied(tmp_path / "whole"),
        "configuration": copied(tmp_path / "two", tokenizer_config__json=older),
        "configuration ": copied(tmp_path / "none", chat_template__jinja="{{ messages }}"),
    }
    for part, folder in cases.items():
        with rendering(folder) as render:
            ctx = Context(Promise(), "m", Client("http://127.0.0.1:1"), render=render)
            told = blame.left_out(ctx, pair, "lost", "Use another.")
            assert told.attribution == part.strip(), folder
    ctx = Context(Promise(), "m", Client("http://127.0.0.1:1"))
    assert blame.left_out(ctx, pair, "lost", "Use another.").attribution == "configuration"


def test_what_a_template_and_its_repository_say(tmp_path: Path) -> None:
    settings = json.loads((MODEL / "tokenizer_config.json").read_text())
    claims = json.dumps(settings | {"tool_parser_type": "glm47", "chat_template": "{{ messages }}"})
    with rendering(copied(tmp_path / "m", tokenizer_config__json=claims)) as render:
        assert render.claimed == "glm47"
        assert render.others == ("tokenizer_config.json",)
        assert render.knows("enable_thinking")
        assert not render.knows("thinking")
    with rendering(MODEL) as render:
        assert (render.claimed, render.others) == (None, ())


def test_none_leaves_a_field_out(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, Any]] = []

    def answer(body: dict[str, Any]) -> Reply:
        sent.append(body)
        return said("Four.")

    asked(answer, monkeypatch, client_sampling={"stop": ["x"]}).ask(SUM, stop=None, max_tokens=None)
    assert not {"stop", "max_tokens"} & sent[0].keys()


def told(result: Result) -> str:
    return f"{type(result).__name__} {getattr(result, 'part', '')}".strip()


def test_a_tokenizer_of_another_model(tmp_path: Path) -> None:
    folder = copied(tmp_path / "m")
    assert isinstance(files.tokenizer(Case(weights=folder)), Fine)
    data = json.loads((folder / "tokenizer.json").read_text())
    data["added_tokens"][0]["content"] = "<renamed>"
    (folder / "tokenizer.json").write_text(json.dumps(data))
    one = files.tokenizer(Case(weights=folder))
    assert isinstance(one, Trouble)
    assert not one.stops, "one that was renamed in one place is no other model's"
    for token in data["added_tokens"]:
        token["content"] += "x"
    (folder / "tokenizer.json").write_text(json.dumps(data))
    every = files.tokenizer(Case(weights=folder))
    assert (told(every), getattr(every, "stops", None)) == ("Trouble configuration", True)
    for text in ("[]", "{", '{"added_tokens": [1, {"id": "a"}]}', '{"added_tokens": 3}'):
        (folder / "tokenizer.json").write_text(text)
        assert isinstance(files.tokenizer(Case(weights=folder)), NotApplicable)
    assert isinstance(files.tokenizer(Case()), NotApplicable)


def test_a_marker_that_is_no_token_any_more(tmp_path: Path) -> None:
    folder = copied(tmp_path / "m")
    data = json.loads((folder / "tokenizer.json").read_text())
    data["added_tokens"] = [t for t in data["added_tokens"] if t["content"] != "<|im_start|>"]
    (folder / "tokenizer.json").write_text(json.dumps(data))
    lost = files.tokenizer(Case(weights=folder))
    assert told(lost) == "Trouble configuration"
    assert "<|im_start|>" in getattr(lost, "says", "")
    data["model"]["merges"].append(["<|im_", "start|>"])  # now a text can become it
    (folder / "tokenizer.json").write_text(json.dumps(data))
    assert isinstance(files.tokenizer(Case(weights=folder)), Fine)


def test_wrong_answers_after_another_template_are_not_the_models(tmp_path: Path) -> None:
    found = Fail("wrong", "model")
    without = copied(tmp_path / "m")
    (without / "chat_template.jinja").unlink()
    for folder, part in ((without, "configuration"), (MODEL, None)):
        with rendering(folder) as render:
            ctx = Context(Promise(), "m", Client("http://127.0.0.1:1"), render=render)
            fault = simple_answers.template_fault(found, ctx)
            assert (fault.attribution if fault else None) == part


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"max_model_len": 2048}, "Fine"),
        ({"max_model_len": 2049}, "Trouble configuration"),
        ({"context_size": 1_000_000}, "Trouble configuration"),
        ({"max_model_len": 4096, "engine_args": {"hf_overrides": {"a": 1}}}, "NotApplicable"),
        ({}, "NotApplicable"),
    ],
)
def test_a_context_beyond_the_models(document: dict[str, Any], expected: str) -> None:
    case = Case(engine=get("mlx"), document=document, weights=MODEL)
    assert told(files.context(case)) == expected
    assert isinstance(files.context(replace(case, weights=None)), NotApplicable)


def test_a_prompt_that_nobody_can_render_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    ctx = asked(lambda _: said("Hi."), monkeypatch)
    assert isinstance(prompt_rendered.run(ctx), Skipped)
    assert ctx.counted(Prompt("x", ())) is None


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ((), "fail engine"),
        (("-m", "mlx_lm", "server", "--temp", "1", "--top-k", "0"), "fail engine"),
        (("-m", "mlx_lm", "server", "--top-p", "1", "--top-k", "0"), "fail configuration"),
        (('--override-generation-config={"temperature": 1.0, "top_k": 0}',), "fail engine"),
        (("--default-temperature=1", "--default-top-k=0"), "fail engine"),
        (("--model=m", '{"temperature": 1.0, "top_k": 0}'), "fail engine"),
        (('--override-generation-config={"top_k": 0}',), "fail configuration"),
    ],
)
def test_an_engine_that_was_not_told_is_not_at_fault(told: tuple[str, ...], expected: str) -> None:
    at_start = {"temperature": 1.0, "top_k": 0, "max_tokens": 512}
    missed = Fail("8 answers are one", "engine")
    assert verdict(sampling_arrives.untold(missed, at_start, told)) == expected
    assert sampling_arrives.untold(Pass("x"), at_start, told) == Pass("x")


@pytest.mark.parametrize(
    ("alone", "expected"),
    [
        (CALL, "fail configuration"),
        ('{"name": "get_weather", "arguments": {}}', "inconclusive model"),
        ('{"name": "get_time", "arguments": {"location": "Paris"}}', "inconclusive model"),
    ],
)
def test_an_engine_that_lets_a_call_be_written_in_its_parsers_format_only(
    alone: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM holds the model to the format of the parser that is named; left alone it writes its own."""
    shown = "<tool_call>get_weather</tool_call>"
    reply = Reply(
        tool_calls=(ToolCall(0, "c", "get_weather", "{}"),), finish_reason="tool_calls", behind=shown
    )
    monkeypatch.setattr(Context, "raw", lambda *_: alone)
    ctx = asked(lambda _: reply, monkeypatch)
    assert verdict(ctx.judged(WEATHER, lambda answer: judge_call(answer, WEATHER))) == expected


@pytest.mark.parametrize(
    ("value", "template", "expected"),
    [
        ("false", "{% if enable_thinking %}on{% endif %}", "fail configuration"),
        ("false", "{% if enable_thinking == 'false' %}off{% elif enable_thinking %}on{% endif %}", "pass"),
        ("false", "{{ 'always the same' }}", "pass"),
        ("low", "{% if enable_thinking %}on{% endif %}", "pass"),
    ],
)
def test_a_switch_that_is_a_text(value: str, template: str, expected: str) -> None:
    text = Template(template)
    told = prompt_rendered.judge_switches({"enable_thinking": value}, lambda name, v: text.render({name: v}))
    assert verdict(told) == expected


def test_of_two_results_both_reach_the_prompt() -> None:
    assert tool_result_turn.judge_rendered("sunny and rainy") is None
    assert tool_result_turn.judge_rendered(None) is None
    assert tool_result_turn.judge_rendered("neither") is None, "then results do not reach it at all"
    lost = tool_result_turn.judge_rendered("only rainy")
    assert lost is not None
    assert verdict(lost) == "fail configuration"


@pytest.mark.parametrize(
    ("rendered", "open_"),
    [
        ("<|im_start|>assistant\n<think>\n", True),
        ("[INST]two[/INST][THINK]", True),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", False),
        ("<|im_start|>assistant\n</think>", False),
        ("<think> is a marker<|im_end|>\n<|im_start|>assistant\n", False),
        ("", False),
    ],
)
def test_a_prompt_that_ends_in_an_open_block(rendered: str, open_: bool) -> None:
    assert (reasoning_off.left_open(rendered) is not None) is open_


def test_an_end_token_that_is_a_word(tmp_path: Path) -> None:
    folder = copied(tmp_path / "m")
    case = Case(weights=folder)
    assert isinstance(files.ends(case), Fine)
    words = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, words["\u0120is"]]}))
    told = files.ends(case)
    assert isinstance(told, Trouble)
    assert told.stops
    assert "generation_config.json" in told.remedy
    (folder / "generation_config.json").write_text('{"eos_token_id": "end"}')
    assert isinstance(files.ends(case), Fine)
    (folder / "tokenizer.json").write_text("[]")
    assert isinstance(files.ends(case), NotApplicable)


PIECES = "in pieces: read no call"


@pytest.mark.parametrize(
    ("used", "better", "told"),
    [
        (Verdict("a", "A", ("call",), {}, ("call",), PIECES), True, "Set tool_parser:b"),
        (Verdict("a", "A", (), {"call": "no call"}, ("call",)), True, "Set tool_parser:b"),
        (Verdict("a", "A", ("call",), {}, ("call",)), True, ""),
        (Verdict("a", "A", ("call",), {}, ("call",), PIECES), False, ""),
    ],
)
def test_streamed_calls_that_another_parser_reads(used: Verdict, better: bool, told: str) -> None:
    other = Verdict("b", "B", ("call",), {}, ("call",), None if better else PIECES)
    proof = Proof("vllm", "1", "", {"tool_parser": (used, other)}, {})
    ctx = Context(Promise(tool_parser="a"), "m", Client("http://127.0.0.1:1"), proof=proof)
    assert not proved.thinks_never(ctx)
    found = proved.whole_in_pieces(ctx) or ""
    assert found.startswith(told)
    assert bool(found) is bool(told)


@pytest.mark.parametrize(
    ("parser", "unasked", "never"),
    [("qwen3", NO_THINKING, True), (None, NO_THINKING, False), ("qwen3", "not asked", False)],
)
def test_a_reader_of_thoughts_for_a_template_without(parser: str | None, unasked: str, never: bool) -> None:
    proof = Proof("vllm", "1", "", {}, {}, {"reasoning_parser": unasked})
    promise = Promise(reasoning_parser=parser)
    assert proved.thinks_never(Context(promise, "m", Client("http://127.0.0.1:1"), proof=proof)) is never
    assert not proved.thinks_never(Context(promise, "m", Client("http://127.0.0.1:1")))
