"""What rests on another finding is blamed on its root; where there is none, nothing changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from importer.engines.deaths import Attribution
from importer.engines.tokenizer import Tokenized
from importer.reasons import Reason
from importer.validation.errors import AnswerFailure, RequestRefused, ServerUnreachable
from importer.validation.explain import explained
from importer.validation.outcome import (
    PART,
    STAGE,
    Fact,
    Fail,
    Inconclusive,
    Outcome,
    Pass,
    ProbeRow,
    Stage,
    differs,
)
from importer.validation.probes.chat import judge_missed
from importer.validation.probes.prompt import judge_tokenizer
from importer.validation.remedy import Need, Remedy, template
from importer.validation.tokens import KINDS, OWN
from tests.facts import as_reason
from tests.judging import verdict


def fail(stage: Stage, remedy: Reason | None = None, **more: Any) -> Fail:
    return Fail(as_reason("seen"), stage, remedy, **more)


def told(outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """The outcome of each probe, explained together."""
    return {row.probe: row.outcome for row in explained([ProbeRow(n, "", o) for n, o in outcomes.items()])}


def verdicts(outcomes: Mapping[str, Outcome]) -> list[str]:
    return [verdict(outcome) for outcome in told(outcomes).values()]


NOISE = fail(Stage.DRAWN, Reason(Remedy.WHOLE_WEIGHTS))
DECLINED = Inconclusive(as_reason("declined"), Stage.DRAWN)


def test_what_rests_on_answers_that_are_all_cut_is_blamed_on_what_cuts_them() -> None:
    cut = fail(Stage.START, Reason(Remedy.RAISE_LIMITS))
    found = verdicts({"answer-ends": cut, "simple-answers": NOISE, "tool-call": DECLINED})
    assert found == ["fail configuration", "fail configuration", "inconclusive configuration"]


def test_what_rests_on_noise_is_blamed_on_what_made_the_noise() -> None:
    outcomes: dict[str, Outcome] = {
        "simple-answers": NOISE,
        "tool-call": DECLINED,
        "no-tool-needed": fail(Stage.WHOLE, Reason(Remedy.WHOLE_WEIGHTS)),
        "message-forms": fail(Stage.START),
        "health": Pass(as_reason("up")),
    }
    parts = ["fail model", "inconclusive model", "fail model", "fail configuration", "pass"]
    assert verdicts(outcomes) == parts
    del outcomes["simple-answers"]
    assert told(outcomes) == outcomes


BLAMED = {"other-paths", "tool-call"}  # on the engine, by answers
ANSWERED = BLAMED | {"tool-choice"}  # the model's verdict, too
READ = ANSWERED | {"message-forms"}  # and how a request is read
PARSER = {"key": "tool_parser", "parser": "hermes"}
NO_PARSER = Reason(Remedy.START_WITH, names=("tool parser",))


@pytest.mark.parametrize(
    ("cause", "change", "follows"),
    [
        ("model-listed", Reason(Remedy.ASK_BY_NAME, listed=("m",)), {"other-paths"}),
        ("prompt-rendered", template(Need.HEED_GENERATION_PROMPT), READ),
        ("prompt-rendered", Reason(Remedy.TAKE_OUT_VARIABLE, variable="tools"), READ),
        ("prompt-rendered", Reason(Remedy.ONE_TEMPLATE, files=("tokenizer_config.json",)), READ),
        ("settings-read-back", NO_PARSER, READ),
        ("plain-chat", Reason(Remedy.END_AT), ANSWERED),
        ("no-special-tokens", Reason(Remedy.OWN_TOKENIZER), ANSWERED),
        ("stream-equals-whole", Reason(Remedy.SET_PARSER, **PARSER, named=None), BLAMED),
        ("no-special-tokens", Reason(Remedy.CHOOSE_TOOL_PARSER), set()),
    ],
)
def test_a_cause_explains_what_an_engine_is_blamed_for(cause: str, change: Reason, follows: set[str]) -> None:
    outcomes: dict[str, Outcome] = {
        "other-paths": RequestRefused(500, "no such model").outcome(),
        "message-forms": fail(Stage.PROMPT),
        "tool-call": fail(Stage.WHOLE),
        "stops-cleanly": fail(Stage.WHOLE),
        cause: fail(Stage.START, change),
        "tool-choice": fail(Stage.DRAWN),
    }
    found = {name for name, one in told(outcomes).items() if verdict(one) == "fail configuration"}
    assert found == {cause, *follows}


def test_an_engine_writes_history_by_its_parser() -> None:
    outcomes = {"settings-read-back": fail(Stage.START, NO_PARSER), "prompt-rendered": fail(Stage.PROMPT)}
    assert verdicts(outcomes) == ["fail configuration"] * 2


@pytest.mark.parametrize("part", ["configuration", "engine"])
def test_what_is_judged_over_a_thought_is_blamed_on_who_let_it_through(part: Attribution) -> None:
    outcomes: dict[str, Outcome] = {
        "reasoning-apart": fail(STAGE[part], Reason(Remedy.CHOOSE_REASONING_PARSER)),
        "structured-output": differs("content", "<think>\nA person", "JSON"),
        "stream-equals-whole": differs("content", "", "<ponder>\nA.\n</ponder>\nHi", Stage.STREAM),
        "tool-choice": fail(Stage.WHOLE),
        "guided": DECLINED,
    }
    assert verdicts(outcomes) == [*[f"fail {part}"] * 3, "fail engine", "inconclusive model"]
    del outcomes["reasoning-apart"]
    assert told(outcomes) == outcomes


def _seen(stage: Stage) -> tuple[Fact, ...]:
    return (Fact(stage, "broken", "weather", as_reason("written otherwise")),)


WROTE = replace(NOISE, facts=_seen(Stage.DRAWN))


def test_a_model_that_is_seen_to_write_another_form_explains_what_rests_on_answers_alone() -> None:
    outcomes: dict[str, Outcome] = {
        "tool-call": WROTE,
        "stream-equals-whole": fail(Stage.STREAM, Reason(Remedy.WHOLE_ANSWERS)),
        "other-paths": fail(Stage.PARSED, Reason(Remedy.SET_PARSER, **PARSER)),
        "tool-choice": fail(Stage.WHOLE, facts=_seen(Stage.WHOLE)),
        "settings-read-back": fail(Stage.START, Reason(Remedy.SET_CONTEXT)),
    }
    assert verdicts(outcomes) == [*["fail model"] * 3, "fail engine", "fail configuration"]


def test_crossed_answers_come_before_counts_that_differ() -> None:
    crossed = fail(Stage.GATEWAY, Reason(Remedy.ANSWERS_UNALTERED), within=("clients",))
    lengths = fail(Stage.GATEWAY, Reason(Remedy.SERVERS_ALIKE))
    null = fail(Stage.TEMPLATE, template(Need.WRITE_NULL_AS_NOTHING), within=("tools",))
    found = told({"prompt-rendered": lengths, "message-forms": null, "request-options": crossed})
    assert [one.remedy for one in found.values()] == [crossed.remedy] * 3


@pytest.mark.parametrize(("unread", "part"), [(1, "configuration"), (2, "model")])
def test_a_parser_that_reads_one_text_is_no_remedy_where_none_reads_most(unread: int, part: str) -> None:
    lenient = fail(Stage.PARSED, Reason(Remedy.SET_PARSER, **PARSER), facts=_seen(Stage.PARSED))
    wrote = dict.fromkeys(("tool-call", "tool-result-turn")[:unread], WROTE)
    assert told({**wrote, "no-special-tokens": lenient})["no-special-tokens"].attribution == part


def test_weights_that_heed_no_option_are_damaged_and_a_temperature_of_the_server_explains_noise() -> None:
    for option, part in (("logit_bias", "model"), ("temperature", "engine")):
        ignored = fail(Stage.SAMPLED, Reason(Remedy.HEED_OPTIONS, option=option))
        assert {*verdicts({"simple-answers": NOISE, "request-options": ignored})} == {f"fail {part}"}


def test_a_refusal_without_a_remedy_explains_no_setting_that_the_engine_lacks() -> None:
    refused = replace(RequestRefused(400, "no").outcome(), within=("tools",))
    found = told({"message-forms": refused, "settings-read-back": fail(Stage.START, NO_PARSER)})
    assert found["settings-read-back"].remedy == NO_PARSER


def test_what_a_request_lost_follows_from_the_alteration_that_is_named() -> None:
    lost = fail(Stage.PROMPT, Reason(Remedy.OTHER_VERSION_TEMPLATE))
    altered = fail(Stage.PROMPT, Reason(Remedy.REQUESTS_UNALTERED, parts=("plain",)))
    found = told({"message-forms": lost, "prompt-rendered": altered})
    assert [one.remedy for one in found.values()] == [altered.remedy] * 2


@pytest.mark.parametrize(
    ("probe", "first"),
    [
        ("prompt-rendered", fail(Stage.TEMPLATE, Reason(Remedy.IMPORT_AGAIN))),
        (
            "tokenizer-whole",
            judge_tokenizer(Tokenized(("say hello to zoe, from koln!", "", KINDS, ""), 0, 0)),
        ),
    ],
)
def test_an_engine_is_not_blamed_for_another_template_or_tokenizer(probe: str, first: Fail) -> None:
    outcomes: dict[str, Outcome] = {
        probe: first,
        "no-tool-needed": fail(Stage.WHOLE),
        "plain-chat": DECLINED,
        "stops-cleanly": fail(Stage.WHOLE),
    }
    parts = [one.attribution for one in told(outcomes).values()]
    assert parts == ["configuration"] * 3 + ["engine"]


def test_a_parser_read_from_answers_follows_answers_that_are_noise() -> None:
    noise, choose = fail(Stage.TOKENS, OWN), Reason(Remedy.CHOOSE_TOOL_PARSER)
    for stage, remedy in ((Stage.PARSED, OWN), (Stage.START, choose)):  # the latter is reported
        found = told({"simple-answers": noise, "settings-read-back": fail(stage, choose)})
        assert found["settings-read-back"].remedy == remedy


@pytest.mark.parametrize(
    ("name", "need", "part"),
    [
        ("bare", Need.RENDER_EVERYTHING, "configuration"),
        ("several-rounds", Need.RENDER_EVERYTHING, "model"),  # an ordinary chat is whole
        ("bare", Need.NO_CLOCK, "model"),
    ],
)
def test_a_model_that_is_not_asked_what_was_said_is_not_to_blame(name: str, need: Need, part: str) -> None:
    gone = fail(Stage.TEMPLATE, template(need), within=(name,))
    found = told({"simple-answers": judge_missed(3, 3), "template-coverage": gone, "tool-call": DECLINED})
    assert [found[probe].attribution for probe in ("simple-answers", "tool-call")] == [part] * 2


def test_what_a_model_writes_otherwise_is_explained_by_other_files() -> None:
    files = fail(Stage.FILES, Reason(Remedy.PUT_BACK, files=("tokenizer.json",)))
    lost = fail(Stage.TEMPLATE, Reason(Remedy.OWN_TEMPLATE, parser="hermes"))
    found = told({"files-as-imported": files, "simple-answers": NOISE, "tool-call": lost})
    assert {(verdict(one), one.remedy) for one in found.values()} == {("fail environment", files.remedy)}
    assert told({"tool-call": lost}) == {"tool-call": lost}


@pytest.mark.parametrize(
    ("probe", "stage", "remedy"),
    [
        ("request-options", Stage.GATEWAY, Remedy.ANSWERS_UNALTERED),
        ("request-options", Stage.WHOLE, Remedy.NO_CAP),
        ("prompt-rendered", Stage.MESSAGES, Remedy.REQUESTS_UNALTERED),
    ],
)
def test_what_stands_before_the_server_explains_noise(probe: str, stage: Stage, remedy: Remedy) -> None:
    found = told({"simple-answers": judge_missed(3, 3), probe: fail(stage, Reason(remedy))})
    assert (found["simple-answers"].attribution, found["simple-answers"].follows) == ("engine", (probe,))


@pytest.mark.parametrize(
    ("stage", "remedy"), [(Stage.GATEWAY, Remedy.SERVERS_ALIKE), (Stage.TEMPLATE, Remedy.ONE_TEMPLATE)]
)
def test_every_answer_follows_from_servers_that_differ_and_from_a_start(stage: Stage, remedy: Remedy) -> None:
    crossed = fail(Stage.SAMPLED, Reason(Remedy.ANSWERS_UNALTERED))
    shown = fail(stage, Reason(remedy, files=("x",)))
    found = told({"prompt-rendered": shown, "request-options": crossed, "simple-answers": NOISE})
    assert {one.attribution for one in found.values()} == {PART[stage]}
    assert [one.follows for one in found.values()] == [(), *[("prompt-rendered",)] * 2]


def test_the_death_of_an_engine_is_one_row() -> None:
    died = Fail(Reason(AnswerFailure.DIED, says=as_reason("out of memory")), Stage.MACHINE)
    broke = Fail(Reason(AnswerFailure.UNREACHABLE, problem="reset"), Stage.WHOLE)
    called = Pass(as_reason("called"))
    found = told({"tool-call": called, "plain-chat": broke, "message-forms": died, "other-paths": died})
    assert [one.outcome for one in found.values()] == ["pass", "inconclusive", "fail", "inconclusive"]
    assert [one.follows for one in found.values()] == [(), ("message-forms",), (), ("message-forms",)]


def test_arguments_encoded_twice_are_no_objects_for_anthropic() -> None:
    twice = fail(Stage.DRAWN, Reason(Remedy.DECODE_ONCE_MORE))
    refused = RequestRefused(400, "input should be a dictionary").outcome()
    found = told({"tool-call": twice, "messages": refused})["messages"]
    assert (verdict(found), found.remedy) == ("fail model", twice.remedy)
    assert told({"messages": refused}) == {"messages": refused}


def test_a_template_that_loses_turns_explains_an_engine_that_dies_of_it() -> None:
    gone = ServerUnreachable(Reason(AnswerFailure.UNREACHABLE, problem="refused")).outcome()
    broke = RequestRefused(500, "it met an issue").outcome()
    outcomes = {"simple-answers": broke, "message-forms": gone, "tool-call": gone}
    lost = fail(Stage.TEMPLATE, template(Need.RENDER_EVERYTHING), within=("bare",))
    assert {*verdicts({"template-coverage": lost, **outcomes})} == {"fail configuration"}
    assert {*verdicts(outcomes)} == {"fail engine"}
