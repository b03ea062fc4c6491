"""The same prompt with a cache and without: what rounding does, and what a lost token does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.validation.outcome import Fail, Stage
from importer.validation.probes.cache import ColdAndWarm, changed, judge_change, moved
from importer.validation.remedy import Remedy
from importer.validation.reply import Reply, from_whole
from tests.judging import asked

# As mlx-lm 0.32.2 told them of the demo model: from a new prompt, and from one that lost a token.
COLD = [
    {"<think>": 0.0, "This": -10.25, "</think>": -13.62},
    {"help": -13.75, "\n": 0.0, "t": -14.25},
    {"I": -11.62, "This": 0.0, '":': -12.25},
]
LOST = [
    {"<think>": 0.0, "</think>": -12.88, "answered": -13.69},
    {"help": -12.94, "\n": 0.0, "How": -13.56},
    {"This": -3.25, "Hello": -0.06, "A": -3.94},
]

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def reply(places: Any) -> Reply:
    entries = [
        {
            "token": "x",
            "logprob": -1.0,
            "top_logprobs": [{"token": token, "logprob": number} for token, number in place.items()],
        }
        for place in places
    ]
    message = {"role": "assistant", "content": "x"}
    choice = {"message": message, "logprobs": {"content": entries}, "finish_reason": "length"}
    return from_whole(json.dumps({"choices": [choice]}).encode())


def rounded(places: list[dict[str, float]], by: float) -> list[dict[str, float]]:
    return [{token: number - by for token, number in place.items()} for place in places]


def test_a_lost_token_is_seen_where_it_first_shows() -> None:
    change = changed(reply(COLD), reply(LOST))
    assert change is not None
    assert change.place == 1
    found = judge_change(change)
    assert isinstance(found, Fail)
    assert found.stage is Stage.SAMPLED
    assert found.remedy is not None
    assert found.remedy.kind is Remedy.SOUND_CACHE


@pytest.mark.parametrize(
    ("by", "noise", "seen"),
    [(0.0, 0.0, False), (0.4, 0.0, False), (0.6, 0.0, True), (0.6, 0.2, False), (2.5, 9.0, True)],
)
def test_rounding_is_no_change(by: float, noise: float, seen: bool) -> None:
    assert (changed(reply(COLD), reply(rounded(COLD, by)), noise=noise) is not None) is seen
    assert moved(reply(COLD), reply(rounded(COLD, by))) == pytest.approx(by)


@pytest.mark.parametrize(("answers", "seen"), [((COLD, LOST, LOST), True), ((COLD, COLD, COLD), False)])
def test_a_repeated_request_has_the_same_answer(
    answers: Any, seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = iter(map(reply, answers))
    ctx = asked(lambda _: next(told), monkeypatch)
    assert (ColdAndWarm(ctx).repeated() is not None) is seen


def test_a_close_race_may_end_otherwise() -> None:
    """What follows is an answer to other tokens, and is not compared."""
    close = [{"a": -0.7, "b": -0.8}, {"c": 0.0, "d": -9.0}]
    turned = [{"a": -0.8, "b": -0.7}, {"d": 0.0, "c": -9.0}]
    assert changed(reply(close), reply(turned)) is None
    assert moved(reply(close), reply(turned)) == pytest.approx(0.1)
    clear = [{"a": -0.1, "b": -2.4}]
    assert changed(reply(clear), reply([{"a": -2.4, "b": -0.1}])) is not None


@given(ANY, ANY)
def test_whatever_an_engine_lists_is_read(listed: Any, number: Any) -> None:
    entries = (
        {"top_logprobs": listed},
        {"top_logprobs": [{"token": "a", "logprob": number}, listed]},
        listed,
    )
    odd = Reply(content="", reasoning="", logprobs=entries)
    assert moved(odd, odd) == 0.0
    assert changed(odd, odd) is None
