"""Model cards: what is read as a recommendation, and all that is not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from importer.hub.snapshot import Snapshot
from importer.sentences import render
from importer.signals import card
from importer.signals.evidence import Evidence
from importer.signals.sampling_values import RANGES, usable
from tests import card_texts as texts

THINKING = {"temperature": 0.6, "top_p": 0.95}
BOTH = ["thinking", "non_thinking"]
NON_THINKING = {"temperature": 0.7, "top_p": 0.8}


def read(text: str, header: dict[str, Any] | None = None) -> list[Evidence]:
    info = {} if header is None else {"card": header}
    return card.evidence(Snapshot("r", "acme/thing", None, (), {"README.md": text}, info))


def found(text: str, rule: str = "card") -> dict[str, Any]:
    """Values by key, those of a way of answering under its name."""
    values: dict[str, Any] = {}
    for fact in (e for e in read(text) if e.rule == rule):
        *_, mode, key = fact.key.split(".")
        (values.setdefault(mode, {}) if mode != "parameters" else values)[key] = fact.value
    return values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (texts.SWITCHING, {
            "thinking": THINKING | {"top_k": 20, "min_p": 0},
            "non_thinking": NON_THINKING | {"top_k": 20, "min_p": 0},
            "max_tokens": 32768,
        }),
        (texts.BY_TASK, {
            "thinking": {"temperature": 1, "top_p": 0.95, "top_k": 20, "presence_penalty": 1.5},
            "non_thinking": NON_THINKING | {"presence_penalty": 1.5},
        }),
        (texts.RANGE, {"temperature": 0.6}),
        (texts.ONE_LINE, {"temperature": 0.3}),
        (texts.EQUALS, {"temperature": 1, "top_p": 0.95, "top_k": 40}),
        (texts.COLONS, {"temperature": 0.3, "min_p": 0.15, "repeat_penalty": 1.05, "top_p": 0.9}),
        (texts.TABLE_OF_MODES, {"thinking": THINKING, "non_thinking": NON_THINKING}),
        (texts.TABLE_OF_PARAMETERS, {
            "thinking": {"temperature": 1, "top_p": 0.95, "top_k": 20},
            "non_thinking": NON_THINKING | {"top_k": 20},
        }),
        (texts.BEHIND, {"thinking": {"temperature": 1}, "non_thinking": {"temperature": 0.6}, "top_p": 0.95}),
        (texts.ON_AND_OFF, {"thinking": THINKING, "non_thinking": {"temperature": 0}}),
        (texts.CONDITIONS, {"thinking": THINKING}),
        (texts.INSTEAD, THINKING),
        (texts.TRAINING, {}),
        (texts.EXAMPLES, {}),
        (texts.CONTRADICTION, {}),
    ],
    ids=lambda v: v.split("\n# ")[-1].split("\n")[0].lstrip("# ") if isinstance(v, str) else "",
)  # fmt: skip
def test_what_a_card_recommends(text: str, expected: dict[str, Any]) -> None:
    assert found(text) == expected


def test_what_cannot_be_told_apart_is_shown_without_a_value() -> None:
    (unclear,) = (e for e in read(texts.CONTRADICTION) if e.rule == "card-unclear")
    assert unclear.key == "parameters.temperature"
    assert len(unclear.value) == 2
    assert "nothing tells which is meant" in render(unclear.reason)


def test_the_header_is_a_source_of_its_own() -> None:
    assert found(texts.HEADER, "card-header") == {"temperature": 0.5, "repeat_penalty": 1.1}
    assert found(texts.HEADER) == {"temperature": 0.8}
    told = read("", {"inference": {"parameters": {"temperature": 0.2, "top_p": "0.9", "x": 1}}})
    assert [(e.key, e.value) for e in told] == [("parameters.temperature", 0.2)], "as the Hub tells it"
    assert read("---\ninference: [\n---\n") == read("", {"inference": False}) == []


def test_every_value_has_its_words() -> None:
    for fact in read(texts.SWITCHING):
        assert fact.source == "README.md"
        assert 5 < len(fact.quote) <= 160
        assert str(int(fact.value)) in fact.quote.replace(",", "")


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("temperature = 1.0, top_p = 0.95", {"temperature": 1, "top_p": 0.95}),
        ('"temperature": 0.7, "top_k": -1', {"temperature": 0.7, "top_k": -1}),
        ("--temp 0.6 --top-p 0.95 --min-p 0.01", {"temperature": 0.6, "top_p": 0.95, "min_p": 0.01}),
        ("the temperature should be set to .5.", {"temperature": 0.5}),
        ("a temperature between 0.5 and 0.7", {}),
        ("temperature 0.5-0.7 and top_p 0.9", {"top_p": 0.9}),
        ("temperature < 0.1", {}),
        ("don't use temperature=0.6", {}),
        ("do not decode greedily, e.g. temperature=0. ", {}),
        ("without thinking, temperature=0.7", {"temperature": 0.7}),
        ("mytemperature=0.7, x.temperature=0.7, temperatures 0.7", {}),
    ],
)
def test_values_in_a_sentence(sentence: str, expected: dict[str, float]) -> None:
    assert {v.key: v.number for v in card.advised_values(sentence)} == expected


@pytest.mark.parametrize(
    ("sentence", "modes"),
    [
        ("thinking mode: temperature=0.6; non-thinking mode: temperature=0.7", BOTH),
        ("temperature=0.6 in thinking mode, temperature=0.7 in non-thinking mode", BOTH),
        ("For both thinking and non-thinking mode, temperature=0.6", [None]),
        ("with enable_thinking=False, temperature=0.7", ["non_thinking"]),
        ("in reasoning mode (thinking on), temperature=0.7", ["thinking"]),
    ],
)  # fmt: skip
def test_the_way_of_answering_that_a_value_is_for(sentence: str, modes: list[str | None]) -> None:
    assert [a.mode for a in card.read_advice(sentence)] == modes


pieces = st.sampled_from(
    ["temperature", "top_p", " = ", "0.6", "-", "0.7", " thinking mode", " non-thinking", "\n", "\n\n", "```",
     "|", "\n|---|\n", "# ", "- ", "> ", "<!--", "-->", "---\n", ": ", ". ", "recommend ", "not ", "(", ")",
     "\x00", "１", "SamplingParams(", "if ", "between "]
)  # fmt: skip


def test_a_way_that_cannot_be_told_is_not_clear() -> None:
    sentence = "thinking mode temperature=0.6 non-thinking mode temperature=0.7 thinking mode"
    assert not any(a.clear for a in card.read_advice(sentence))


@given(st.one_of(st.text(max_size=400), st.lists(pieces, max_size=60).map("".join)))
@example("---\n&a [*a]\n---\n")
@example("---\na: 2025-99-99\n---\n")
def test_any_text_is_read_without_an_error_and_gives_sound_values(text: str) -> None:
    for fact in read(text):
        key = fact.key.rpartition(".")[2]
        assert key in RANGES
        if fact.rule != "card-unclear":
            assert usable(key, fact.value) is not None
        assert fact.quote
