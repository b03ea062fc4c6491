"""Kinds of reasons and their sentences: each has one over the fields that it is given."""

from __future__ import annotations

import ast
import copy
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

from importer.app.overview import PublicationReason
from importer.document.entry_facts import EntryReason
from importer.memory.plan_settings import PlanReason
from importer.reasons import Reason, ReasonKind
from importer.sentences import counted, joined, moment, placeholders, render, sentence
from tests.syntax import MODULES, nodes, tree, written

pytestmark = pytest.mark.xdist_group("syntax")  # one process parses the modules


class Use(NamedTuple):
    """One ``Reason(Enumeration.KIND, …)``; ``fields`` is ``None`` where they are passed on whole."""

    place: str
    kind: ReasonKind
    fields: frozenset[str] | None


@cache
def enumerations() -> dict[str, type[ReasonKind]]:
    """Every enumeration of kinds that a module declares, by its name."""
    found: dict[str, type[ReasonKind]] = {}
    for module, path in MODULES.items():
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and "ReasonKind" in {written(base) for base in node.bases}:
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
            yield Use(f"{module}:{node.lineno}", enumeration[kind.attr], fields)


def test_every_kind_has_a_text() -> None:
    kinds = [kind for enumeration in enumerations().values() for kind in enumeration]
    assert not [repr(kind) for kind in kinds if kind.text in ("", kind.value)]
    assert len(kinds) > 1000


def test_every_reason_is_given_the_fields_of_its_text() -> None:
    assert not [
        f"{use.place}: {use.kind!r} lacks {sorted(lacking)}"
        for use in uses()
        if isinstance(use.kind.text, str) and use.fields is not None
        and (lacking := {*placeholders(use.kind.text)} - use.fields)
    ]  # fmt: skip


def test_every_kind_is_used() -> None:
    """By its name; members of an enumeration that is called with a value are used by it."""
    named, called = set[tuple[str, str]](), set[str]()
    for node in (node for path in MODULES.values() for node in nodes(path)):
        if isinstance(node, ast.Attribute):
            named.add((written(node.value).rpartition(".")[2], node.attr))
        elif isinstance(node, ast.Call):
            called.add(written(node.func))
    by_name = [kinds for name, kinds in enumerations().items() if name not in called]
    page = Path("CONTRIBUTING.md").read_text("utf-8")  # kinds for packages outside
    unused = [k for kinds in by_name for k in kinds if (type(k).__name__, k.name) not in named]
    assert not [repr(k) for k in unused if f"{type(k).__name__}.{k.name}" not in page]


def test_a_kept_reason_is_rendered_though_no_module_of_its_room_is_imported() -> None:
    code = (
        "import sys; from importer.sentences import rendered;"
        "print({'importer.exports.kinds', 'importer.hub.snapshot'} & {*sys.modules});"
        "inner = {'kind': 'UnreadReason.too-large', 'limit': '4 MB'};"
        "print(rendered({'kind': 'Unexportable.no-feature', 'consumer': 'A', 'uses': [inner, 'x']}));"
        "print(rendered({'kind': 'Nothing.here'}), rendered({'kind': 'Loss.nothing'}), rendered({}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told = "A has no feature for it is larger than 4 MB and x"
    assert done.stdout.splitlines() == ["set()", told, "None None None"]


class _Fruit(ReasonKind):
    BASKET = "{things:and}"
    APPLE = "a {colour} apple"


class _Computer(ReasonKind):
    APPLE = "a computer"


@pytest.mark.parametrize(
    ("items", "word", "text"),
    [((), "and", ""), (("a", "b", "c"), "and", "a, b and c"), (("a", "b"), ",", "a, b")],
)
def test_lists_are_joined(items: tuple[str, ...], word: str, text: str) -> None:
    assert joined(items, word) == text


def test_times_are_shown_to_the_minute() -> None:
    edited = Reason(PublicationReason.EDITED, by="ann", at="2026-11-20T16:02:11+00:00")
    assert render(edited) == "it was edited since it was approved by ann, 2026-11-20 16:02 UTC"
    assert moment("odd") == "odd"


def test_one_of_a_kind_has_no_plural() -> None:
    counts = dict.fromkeys(("fail", "inconclusive", "not_shown", "not_applicable"), 0)
    run = {"engine": "mlx-lm 1", "state": "passed", **counts}
    texts = [render(Reason(EntryReason.VALIDATED, **run, **{"pass": 1}, probes=number)) for number in (1, 2)]
    assert texts == [f"validated on mlx-lm 1: {share} passed" for share in ("1 of 1 probe", "1 of 2 probes")]
    fields = {"count": 1, "tokens": 4096}
    assert sentence(PlanReason.SEQUENCES, fields) == "it holds 1 sequence of 4,096 tokens at the same time"
    assert counted(1204, "probe", "probes") == "1,204 probes"


def test_reasons_inside_reasons_become_sentences() -> None:
    apples = [Reason(_Fruit.APPLE, colour=colour) for colour in ("red", "green")]
    basket = Reason(_Fruit.BASKET, things=apples)
    assert render(basket) == "a red apple and a green apple"
    assert sentence(_Fruit.APPLE, {"colour": "red"}, {"_Fruit.apple": lambda told: told["colour"]}) == "red"
    assert basket == Reason(_Fruit.BASKET, things=apples)
    assert basket.to_json()["things"][0] == {"kind": "_Fruit.apple", "colour": "red"}
    assert copy.deepcopy(basket) == basket


def test_kinds_of_two_enumerations_are_two_reasons_though_their_texts_are_one() -> None:
    fruit, computer = Reason(_Fruit.APPLE), Reason(_Computer.APPLE)
    assert fruit != computer
    assert [*dict.fromkeys((fruit, computer, Reason(_Fruit.APPLE)))] == [fruit, computer]
