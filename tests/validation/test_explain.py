"""What rests on another finding is blamed on its root; where there is none, nothing changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from importer.engines.deaths import Attribution
from importer.reasons import Reason
from importer.validation.errors import RequestRefused
from importer.validation.explain import explained
from importer.validation.outcome import (
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
from importer.validation.remedy import Need, Remedy, template
from tests.facts import as_reason
from tests.judging import verdict


def test_what_rests_on_answers_that_are_all_cut_is_blamed_on_what_cuts_them() -> None:
    outcomes: dict[str, Outcome] = {
        "answer-ends": Fail(
            as_reason("answers are cut after 8 tokens"), Stage.START, Reason(Remedy.RAISE_LIMITS)
        ),
        "simple-answers": Fail(as_reason("noise"), Stage.DRAWN, Reason(Remedy.WHOLE_WEIGHTS)),
        "tool-call": Inconclusive(as_reason("still thinking at the limit"), Stage.DRAWN),
    }
    rows = [ProbeRow(name, "", outcome) for name, outcome in outcomes.items()]
    told = [verdict(row.outcome) for row in explained(rows)]
    assert told == ["fail configuration", "fail configuration", "inconclusive configuration"]


def test_what_rests_on_noise_is_blamed_on_what_made_the_noise() -> None:
    outcomes: dict[str, Outcome] = {
        "simple-answers": Fail(as_reason("noise"), Stage.DRAWN, Reason(Remedy.WHOLE_WEIGHTS)),
        "tool-call": Inconclusive(as_reason("declined"), Stage.DRAWN),
        "no-tool-needed": Fail(as_reason("called"), Stage.WHOLE, Reason(Remedy.WHOLE_WEIGHTS)),
        "message-forms": Fail(as_reason("dropped"), Stage.START),
        "health": Pass(as_reason("up")),
    }
    rows = [ProbeRow(name, "", outcome) for name, outcome in outcomes.items()]
    told = {row.probe: verdict(row.outcome) for row in explained(rows)}
    assert told == {
        "simple-answers": "fail model",
        "tool-call": "inconclusive model",
        "no-tool-needed": "fail model",
        "message-forms": "fail configuration",
        "health": "pass",
    }
    assert explained(rows[1:]) == rows[1:]


BLAMED = {"other-paths", "tool-call"}  # on the engine, by answers
ANSWERED = BLAMED | {"tool-choice"}  # the model's verdict, too
READ = ANSWERED | {"message-forms"}  # and how a request is read
PARSER = {"key": "tool_parser", "parser": "hermes"}


@pytest.mark.parametrize(
    ("cause", "change", "follows"),
    [
        ("model-listed", Reason(Remedy.ASK_BY_NAME, listed=("m",)), {"other-paths"}),
        ("prompt-rendered", template(Need.HEED_GENERATION_PROMPT), READ),
        ("prompt-rendered", Reason(Remedy.TAKE_OUT_VARIABLE, variable="tools"), READ),
        ("prompt-rendered", Reason(Remedy.ONE_TEMPLATE, files=("tokenizer_config.json",)), READ),
        ("settings-read-back", Reason(Remedy.START_WITH, names=("tool parser",)), READ),
        ("plain-chat", Reason(Remedy.END_AT), ANSWERED),
        ("no-special-tokens", Reason(Remedy.OWN_TOKENIZER), ANSWERED),
        ("stream-equals-whole", Reason(Remedy.SET_PARSER, **PARSER, named=None), BLAMED),
        ("no-special-tokens", Reason(Remedy.CHOOSE_TOOL_PARSER), set()),
    ],
)
def test_a_cause_explains_what_an_engine_is_blamed_for(cause: str, change: Reason, follows: set[str]) -> None:
    outcomes: dict[str, Outcome] = {
        "other-paths": RequestRefused(500, "no such model").outcome(),
        "message-forms": Fail(as_reason("a role is refused"), Stage.PROMPT),
        "tool-call": Fail(as_reason("half a call"), Stage.WHOLE),
        "stops-cleanly": Fail(as_reason("killed"), Stage.WHOLE),
        cause: Fail(as_reason("seen"), Stage.START, change),
        "tool-choice": Fail(as_reason("declined"), Stage.DRAWN),
    }
    rows = explained([ProbeRow(name, "", outcome) for name, outcome in outcomes.items()])
    told = {row.probe for row in rows if verdict(row.outcome) == "fail configuration"}
    assert told == {cause, *follows}


def test_an_engine_writes_history_by_its_parser() -> None:
    missing = Fail(
        as_reason("it runs with no tool parser"),
        Stage.START,
        Reason(Remedy.START_WITH, names=("tool parser",)),
    )
    history = Fail(
        as_reason("calls and results take 239 tokens, and 197 as the template renders them"), Stage.PROMPT
    )
    rows = [ProbeRow("settings-read-back", "", missing), ProbeRow("prompt-rendered", "", history)]
    assert [verdict(row.outcome) for row in explained(rows)] == ["fail configuration"] * 2


@pytest.mark.parametrize("part", ["configuration", "engine"])
def test_what_is_judged_over_a_thought_is_blamed_on_who_let_it_through(part: Attribution) -> None:
    outcomes: dict[str, Outcome] = {
        "reasoning-apart": Fail(as_reason("the thinking marker <think> is in the content"), STAGE[part],
                                Reason(Remedy.CHOOSE_REASONING_PARSER)),
        "structured-output": differs("content", "<think>\nA person", "JSON"),
        "stream-equals-whole": differs("content", "", "<ponder>\nA.\n</ponder>\nHi", Stage.STREAM),
        "tool-choice": Fail(as_reason("a call was required, and none came: 'Hello.'"), Stage.WHOLE),
        "guided": Inconclusive(as_reason("the answer came to the limit of tokens"), Stage.DRAWN),
    }  # fmt: skip
    rows = [ProbeRow(name, "", outcome) for name, outcome in outcomes.items()]
    told = [verdict(row.outcome) for row in explained(rows)]
    assert told == [*[f"fail {part}"] * 3, "fail engine", "inconclusive model"]
    assert explained(rows[1:]) == rows[1:]


def _seen(stage: Stage) -> tuple[Fact, ...]:
    return (Fact(stage, "broken", "weather", as_reason("written otherwise")),)


def test_a_model_that_is_seen_to_write_another_form_explains_what_rests_on_answers_alone() -> None:
    wrote = Fail(
        as_reason("a call without its end"),
        Stage.DRAWN,
        Reason(Remedy.WHOLE_WEIGHTS),
        facts=_seen(Stage.DRAWN),
    )
    outcomes: dict[str, Outcome] = {
        "tool-call": wrote,
        "stream-equals-whole": Fail(as_reason("differs"), Stage.STREAM, Reason(Remedy.WHOLE_ANSWERS)),
        "other-paths": Fail(as_reason("no call"), Stage.PARSED, Reason(Remedy.SET_PARSER, **PARSER)),
        "tool-choice": Fail(as_reason("broken"), Stage.WHOLE, facts=_seen(Stage.WHOLE)),
        "settings-read-back": Fail(as_reason("cache"), Stage.START, Reason(Remedy.SET_CONTEXT)),
    }
    rows = [ProbeRow(name, "", outcome) for name, outcome in outcomes.items()]
    told = {row.probe: verdict(row.outcome) for row in explained(rows)}
    assert told == {
        "tool-call": "fail model",
        "stream-equals-whole": "fail model",
        "other-paths": "fail model",
        "tool-choice": "fail engine",
        "settings-read-back": "fail configuration",
    }


def test_crossed_answers_come_before_servers_that_differ() -> None:
    other = as_reason("another client's answer")
    crossed = Fail(other, Stage.GATEWAY, Reason(Remedy.ANSWERS_UNALTERED), within=("clients",))
    rows = [
        ProbeRow(
            "prompt-rendered", "", Fail(as_reason("lengths"), Stage.GATEWAY, Reason(Remedy.SERVERS_ALIKE))
        ),
        ProbeRow("request-options", "", crossed),
    ]
    told = [row.outcome.remedy for row in explained(rows) if isinstance(row.outcome, Fail)]
    assert told == [Reason(Remedy.ANSWERS_UNALTERED)] * 2


@pytest.mark.parametrize(("unread", "part"), [(1, "configuration"), (2, "model")])
def test_a_parser_that_reads_one_text_is_no_remedy_where_none_reads_most(unread: int, part: str) -> None:
    wrote = Fail(as_reason("noise"), Stage.DRAWN, Reason(Remedy.WHOLE_WEIGHTS), facts=_seen(Stage.DRAWN))
    change = Reason(Remedy.SET_PARSER, **PARSER)
    lenient = Fail(as_reason("a marker"), Stage.PARSED, change, facts=_seen(Stage.PARSED))
    names = ("tool-call", "tool-result-turn")[:unread]
    rows = [*(ProbeRow(name, "", wrote) for name in names), ProbeRow("no-special-tokens", "", lenient)]
    told = explained(rows)[-1].outcome
    assert told.attribution == part


def test_weights_that_heed_no_option_are_damaged_and_a_temperature_of_the_server_explains_noise() -> None:
    noise = ProbeRow(
        "simple-answers", "", Fail(as_reason("noise"), Stage.DRAWN, Reason(Remedy.WHOLE_WEIGHTS))
    )
    for option, part in (("logit_bias", "model"), ("temperature", "engine")):
        ignored = Fail(as_reason("ignored"), Stage.SAMPLED, Reason(Remedy.HEED_OPTIONS, option=option))
        rows = explained([noise, ProbeRow("request-options", "", ignored)])
        assert {row.outcome.attribution for row in rows} == {part}


def test_a_refusal_without_a_remedy_explains_no_setting_that_the_engine_lacks() -> None:
    other = Fail(as_reason("no parser"), Stage.START, Reason(Remedy.START_WITH, names=("tool parser",)))
    refused = ProbeRow("message-forms", "", replace(RequestRefused(400, "no").outcome(), within=("tools",)))
    rows = explained([refused, ProbeRow("settings-read-back", "", other)])
    assert rows[1].outcome.remedy == other.remedy


def test_what_a_request_lost_follows_from_the_alteration_that_is_named() -> None:
    lost = differs("prompt_tokens", 7, 82, Stage.PROMPT, Reason(Remedy.OTHER_VERSION_TEMPLATE))
    altered = differs(
        "prompt_tokens", 10, 18, Stage.PROMPT, Reason(Remedy.REQUESTS_UNALTERED, parts=("plain",))
    )
    rows = explained([ProbeRow("message-forms", "", lost), ProbeRow("prompt-rendered", "", altered)])
    assert [row.outcome.remedy for row in rows] == [altered.remedy] * 2
