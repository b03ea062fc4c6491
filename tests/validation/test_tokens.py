"""Tokens that a model draws, beside those of the same text, and merges that explain wrong answers."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from importer.demo import MODEL
from importer.engines import get, install, tokenizer
from importer.engines.tokenizer import Ask, Redrawn
from importer.validation import tokens
from importer.validation.expectations import Expectations
from importer.validation.probes.prompt import judge_drawn
from importer.validation.reply import Reply
from importer.validation.tokens import OWN, OtherTokens
from tests.framing import context

TEXT = "The weather in the location is sunny. The current weather is what the user wants to know."


def numbers(*given: object) -> Reply:
    return Reply(logprobs=tuple({"id": number, "logprob": 0.0} for number in given))


def test_numbers_of_drawn_tokens_by_engine() -> None:
    """vLLM's field, mlx-lm's log-probabilities, and engines that show texts alone."""
    assert tokens.numbers_of(Reply(raw=({"choices": [{"token_ids": [5, 6]}]},))) == (5, 6)
    assert tokens.numbers_of(numbers(5, 6)) == (5, 6)
    for reply in (
        Reply(),
        Reply(raw=({"choices": [{"token_ids": None}]},)),
        Reply(raw=({"choices": None},)),
        Reply(raw=({"choices": [{"token_ids": "5 6"}]},)),
        Reply(logprobs=({"token": " a", "logprob": 0.0},)),
        numbers(5, None),
        numbers(5, True),
        numbers(-1),
    ):
        assert tokens.numbers_of(reply) == ()


@pytest.mark.parametrize(
    ("other", "whole"),
    [
        (OtherTokens(100, 0), True),
        (OtherTokens(100, 10, "a"), True),
        (OtherTokens(100, 11, "a"), False),
        (OtherTokens(12, 2, "a"), False),
        (OtherTokens(11, 11, "a"), True),  # too few
    ],
)
def test_a_share_of_drawn_tokens_is_the_tokenizers(other: OtherTokens, whole: bool) -> None:
    found = judge_drawn(other)
    assert (found is None) is whole
    if found is None:
        return
    assert found.attribution == "configuration"
    assert found.remedy == OWN


def test_an_engine_without_numbers_is_asked_nothing() -> None:
    offers = Expectations(offers=frozenset({"completions"}))
    assert tokens.compare_sampled(replace(context(), promise=offers, tokens=lambda *_, **__: None)) is None
    assert tokens.compare_sampled(context()) is None


def ask_of(folder: Path, change: Any = None) -> Ask:
    if change is not None:
        path = folder / "tokenizer.json"
        data = json.loads(path.read_text(encoding="utf-8"))
        change(data)
        path.write_text(json.dumps(data), encoding="utf-8")
    return tokenizer.asker(install.need(get("mlx")).python, folder)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(MODEL, tmp_path / "model"))


@pytest.mark.engine
def test_drawn_tokens_are_those_of_their_text(model: Path) -> None:
    whole = ask_of(MODEL)((TEXT,))
    assert whole is not None
    [ids] = whole.ids
    [same] = redrawn(ask_of(MODEL), ids)
    assert (same.tokens, same.cut, same.joined) == (len(ids), 0, 0)
    [cut] = redrawn(ask_of(model, lambda data: data["model"]["merges"].sort()), ids)
    assert cut.cut > 2
    assert cut.joined == 0
    assert cut.example in TEXT


@pytest.mark.engine
def test_spelled_words_are_joined_and_a_cut_letter_is_left_out() -> None:
    ask = ask_of(MODEL)
    whole = ask(("t", "h", "e", "\u6771"))
    assert whole is not None
    t, h, e, letter = whole.ids
    [joined] = redrawn(ask, (*t, *h, *e))
    assert (joined.tokens, joined.cut, joined.joined) == (3, 0, 2)  # t, he
    [cut] = redrawn(ask, (*t, *letter[:-1]))
    assert (cut.tokens, cut.cut, cut.joined) == (1, 0, 0)
    [nothing] = redrawn(ask, letter[:-1])
    assert nothing.tokens == 0
    [nameless] = redrawn(ask, (*t, 70_000))
    assert (nameless.tokens, nameless.cut, nameless.example) == (2, 1, "70000")


def redrawn(ask: Ask, ids: tuple[int, ...]) -> tuple[Redrawn, ...]:
    found = ask((), (ids,))
    assert found is not None
    return found.drawn
