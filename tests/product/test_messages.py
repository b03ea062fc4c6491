"""Reasons and their sentences: each has one, with the fields it is given, and nobody reads it back."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from importlib import import_module
from string import Formatter
from typing import NamedTuple

import pytest

from importer.app.publication_state import PublicationReason
from importer.config_file.entry_facts import EntryReason
from importer.errors import KINDS
from importer.memory.plans import PlanReason
from importer.messages import catalogue, joined, render, sentence
from importer.messages.words import counted, moment
from importer.reasons import Reason, key_of
from tests.syntax import MODULES, nodes, tree, written

pytestmark = pytest.mark.xdist_group("syntax")  # one process parses the modules


class Use(NamedTuple):
    """One ``Reason(Enumeration.KIND, …)``; ``fields`` is ``None`` where they are passed on whole."""

    place: str
    key: str
    fields: frozenset[str] | None


@cache
def enumerations() -> dict[str, type[StrEnum]]:
    """Every enumeration of text that a module declares, by its name."""
    found: dict[str, type[StrEnum]] = {}
    for module, path in MODULES.items():
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and "StrEnum" in {written(base) for base in node.bases}:
                if ".parser_worker" in module or ".parser_plugin" in module:
                    continue
                assert node.name not in found, f"two enumerations are called {node.name}"
                found[node.name] = getattr(import_module(module), node.name)
    return found


@cache
def uses() -> tuple[Use, ...]:
    return tuple(_uses())


def _uses() -> Iterator[Use]:
    for module, path in MODULES.items():
        for node in nodes(path):
            if not (isinstance(node, ast.Call) and written(node.func).split(".")[-1] == "Reason"):
                continue
            kind = node.args[0] if node.args else None
            if not (isinstance(kind, ast.Attribute) and isinstance(kind.value, ast.Name)):
                continue
            enumeration = enumerations().get(kind.value.id)
            if enumeration is None:
                continue
            whole = any(keyword.arg is None for keyword in node.keywords)
            fields = None if whole else frozenset(k.arg for k in node.keywords if k.arg is not None)
            yield Use(f"{module}:{node.lineno}", key_of(enumeration[kind.attr]), fields)


def placeholders(text: str) -> set[str]:
    return {name.split(".")[0].split("[")[0] for _, name, _, _ in Formatter().parse(text) if name}


def test_every_reason_has_a_sentence_with_its_fields() -> None:
    texts = catalogue()
    wrong = [f"{use.place}: {use.key} has no sentence" for use in uses() if use.key not in texts]
    for use in uses():
        text = texts.get(use.key)
        if isinstance(text, str) and use.fields is not None and not placeholders(text) <= use.fields:
            wrong.append(f"{use.place}: {use.key} lacks {sorted(placeholders(text) - use.fields)}")
    assert not wrong


def test_every_sentence_is_of_a_kind_that_is_there() -> None:
    keys = {key_of(kind) for enumeration in enumerations().values() for kind in enumeration}
    keys |= {f"{branch.__name__}.{kind}" for kind, branch in KINDS.items()}
    assert not sorted(catalogue().keys() - keys)


class _Fruit(StrEnum):
    BASKET = "basket"
    APPLE = "apple"


class _Computer(StrEnum):
    APPLE = "apple"


@pytest.mark.parametrize(
    ("items", "word", "text"),
    [
        ((), "and", ""),
        (("a",), "and", "a"),
        (("a", "b", "c"), "and", "a, b and c"),
        (("a", "b"), ",", "a, b"),
    ],
)
def test_lists_are_joined(items: tuple[str, ...], word: str, text: str) -> None:
    assert joined(items, word) == text


def test_times_are_shown_to_the_minute() -> None:
    edited = Reason(PublicationReason.EDITED, by="ann", at="2026-11-20T16:02:11+00:00")
    assert render(edited) == "it was edited since it was approved by ann, 2026-11-20 16:02 UTC"
    assert moment("odd") == "odd"


def test_one_of_a_kind_has_no_plural() -> None:
    run = {"engine": "mlx-lm 1", "state": "passed", "fail": 0, "inconclusive": 0, "not_applicable": 0}
    texts = [render(Reason(EntryReason.VALIDATED, **run, **{"pass": 1}, probes=number)) for number in (1, 2)]
    assert texts == [f"validated on mlx-lm 1: 1 of {of} passed" for of in ("1 probe", "2 probes")]
    fields = {"count": 1, "tokens": 4096}
    assert sentence(PlanReason.SEQUENCES, fields) == "it holds 1 sequence of 4,096 tokens at the same time"
    assert counted(1204, "probe", "probes") == "1,204 probes"


def test_reasons_inside_reasons_become_sentences() -> None:
    own = {"_Fruit.apple": "a {colour} apple", "_Fruit.basket": "{things:and}"}
    apples = [Reason(_Fruit.APPLE, colour=colour) for colour in ("red", "green")]
    basket = Reason(_Fruit.BASKET, things=apples)
    assert render(basket, own) == "a red apple and a green apple"
    assert sentence(_Fruit.APPLE, {"colour": "red"}, {"_Fruit.apple": lambda told: told["colour"]}) == "red"
    assert basket == Reason(_Fruit.BASKET, things=apples)
    assert basket.to_json()["things"][0] == {"kind": "_Fruit.apple", "colour": "red"}
    assert copy.deepcopy(basket) == basket


def test_kinds_of_two_enumerations_are_two_reasons_though_their_texts_are_one() -> None:
    fruit, computer = Reason(_Fruit.APPLE), Reason(_Computer.APPLE)
    assert fruit != computer
    assert [*dict.fromkeys((fruit, computer, Reason(_Fruit.APPLE)))] == [fruit, computer]
