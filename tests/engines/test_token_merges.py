"""The merges of a tokenizer: whole ones yield every word, and others are known by the words that are gone."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from importer.demo import MODEL
from importer.engines import token_merges
from tests.models.formats import FORMATS

TOKENIZER = "tokenizer.json"


def read(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / TOKENIZER).read_text(encoding="utf-8"))
    return data


def sort(model: dict[str, Any]) -> None:
    model["merges"].sort()


def reverse(model: dict[str, Any]) -> None:
    model["merges"].reverse()


def drop(model: dict[str, Any]) -> None:
    """Every merge is lost by lot, one in ten."""
    lot = random.Random(7)
    model["merges"] = [pair for pair in model["merges"] if lot.random() >= 0.1]


@pytest.mark.parametrize("base", FORMATS)
def test_a_whole_tokenizer_yields_every_word_and_other_merges_do_not(base: str) -> None:
    words = token_merges.of_folder(FORMATS[base].folder)
    assert words is not None
    assert (words.unmade, words.other_order) == (0, False)
    for change in (sort, reverse, drop):
        data = read(FORMATS[base].folder)
        change(data["model"])
        other = token_merges.of_tokenizer(data)
        assert other is not None
        assert other.other_order, change
        assert other.example in data["model"]["vocab"]


@pytest.mark.parametrize("base", FORMATS)
def test_words_with_each_others_number_are_out_of_the_order_of_the_merges(base: str) -> None:
    data = read(FORMATS[base].folder)
    vocabulary = data["model"]["vocab"]
    one, other, third = [word for word in vocabulary if word.isalpha() and len(word) > 4][:3]
    vocabulary[one], vocabulary[other] = vocabulary[other], vocabulary[one]
    words = token_merges.of_tokenizer(data)
    assert words is not None
    assert set(words.exchanged) == {one, other}
    vocabulary[one], vocabulary[third] = vocabulary[third], vocabulary[one]  # a round of three is no pair
    rounds = token_merges.of_tokenizer(data)
    assert rounds is not None
    assert rounds.exchanged == ()


def test_merges_of_one_text_are_those_of_two() -> None:
    data = read(MODEL)
    data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
    assert token_merges.of_tokenizer(data) == token_merges.of_folder(MODEL)


def test_the_earliest_merge_comes_first_and_from_the_left() -> None:
    merges = {("a", "a"): 0, ("b", "c"): 1, ("aa", "b"): 2}
    assert token_merges.merged("aaab", merges) == ["aa", "a", "b"]
    assert token_merges.merged("aab", merges) == ["aab"]
    assert token_merges.merged("aabc", merges) == ["aa", "bc"]


@pytest.mark.parametrize(
    "change",
    [
        {"type": "Unigram"},
        {"merges": []},
        {"merges": "a b"},
        {"ignore_merges": True},
        {"end_of_word_suffix": "</w>"},
        {"vocab": []},
    ],
)
def test_another_algorithm_has_no_verdict(change: dict[str, Any]) -> None:
    data = read(MODEL)
    data["model"] |= change
    words = token_merges.of_tokenizer(data)
    assert words is None or not words.other_order


@pytest.mark.parametrize("key", ["type", "vocab", "merges", "ignore_merges"])
@pytest.mark.parametrize("value", [None, True, -1, "a b", [None], [["a"]], [[1, 2]], {"a": [1]}, [{}]])
def test_any_value_is_read(key: str, value: object) -> None:
    data = read(MODEL)
    data["model"][key] = value
    token_merges.of_tokenizer(data)
    token_merges.of_tokenizer({"model": data["model"], "added_tokens": value})
