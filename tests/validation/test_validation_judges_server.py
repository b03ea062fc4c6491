"""Judging the server: load, clients that leave, a prompt too long, the context that it serves."""

from __future__ import annotations

import pytest

from importer.validation.errors import ExchangeError, RequestRefused, TimedOut
from importer.validation.probes.server import judge_concurrency, judge_context_length
from importer.validation.prompts import COUNT, SUM
from importer.validation.reply import Reply
from tests.facts import as_reason
from tests.judging import verdict

FOUR, TEN = Reply("Two plus two is four."), Reply("One, two, and so on to ten.")
PROMPTS = [SUM, COUNT]


@pytest.mark.parametrize(
    ("answers", "last", "expected"),
    [
        ([FOUR, TEN], FOUR, "pass"),
        ([TEN, FOUR], FOUR, "fail engine"),
        ([FOUR, RequestRefused(500, "boom")], FOUR, "fail engine"),
        ([FOUR, TimedOut(as_reason("slow"))], FOUR, "fail engine"),
        ([FOUR, TEN], RequestRefused(500, "boom"), "fail engine"),
        ([FOUR, Reply("I would rather not.")], FOUR, "pass"),
        ([FOUR, Reply("One, two, three, four,", finish_reason="length")], FOUR, "pass"),
    ],
)
def test_many_at_once(
    answers: list[Reply | ExchangeError], last: Reply | ExchangeError, expected: str
) -> None:
    assert verdict(judge_concurrency(PROMPTS, answers, lambda: last)) == expected


def test_the_context_that_is_served() -> None:
    assert verdict(judge_context_length(2048, 2048)) == "pass"
    assert verdict(judge_context_length(4096, 2048)) == "fail configuration"
    assert [verdict(judge_context_length(v, 2048)) for v in (None, True, "2048")] == ["not-applicable"] * 3
