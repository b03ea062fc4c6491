"""What rests on another finding is blamed on its root; where there is none, nothing changes."""

from __future__ import annotations

import pytest

from importer.validation import blame, roots
from importer.validation.outcome import Attribution, Fail, Inconclusive, Outcome, Pass
from importer.validation.probes import own_limit, prompt_rendered
from importer.validation.report import Row
from tests.judging import verdict


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
        (
            "prompt-rendered",
            blame.ONE_TEMPLATE.format("tokenizer_config.json"),
            {"messages", "long-prompt", "tool-call"},
        ),
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
