"""No function of ``validation`` and ``reports`` takes time that grows faster than a server's text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from importer.validation.reply import Reply
from tests.clock import measure
from tests.clock.answers import FEW, SHAPES, Function, UnmadeError, answering, functions, modules
from tests.tiers import one_of_each

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="no clock of a process's own there"),
    pytest.mark.filterwarnings("default"),  # a pattern made of the text
]
SIZE = 16_000  # characters
VARIANTS = ("everywhere", "content", "calls")
READING = [one for one in modules() if any(functions(one))]
# Functions whose arguments no type makes, with the reason why they see no text of a server.
UNMADE = {
    "validation.client": "sockets and heads of answers: counted byte by byte",
    "validation.attribution.setting_bisection": "starts of engines: outcomes alone are compared",
    "validation.served_engine.Controls": "starts of engines: outcomes alone are compared",
    "validation.rendering.PromptRendering": "the model's own template, in the sandbox",
    "validation.run.validate": "an engine that serves",
    "validation.run._again": "an engine that serves",
    "validation.probes.stops_cleanly.judge": "the end of a process",
    "validation.outcome._OutcomeBase.gives": "kinds of reasons",
    "validation.outcome.asks_for": "kinds of remedies",
}


@pytest.fixture(autouse=True)
def _answered() -> Iterator[None]:
    with answering():
        yield


def _given(one: Function, variant: str, shape: str, size: int) -> Any:
    return one.arguments(SHAPES[shape](size), variant)


def slow(module: ModuleType, shapes: tuple[str, ...], variants: tuple[str, ...]) -> dict[str, str]:
    """The functions of a module whose time or memory grows too fast."""
    found = {}
    for one in functions(module):
        for variant, name in ((v, s) for v in variants for s in shapes):
            try:
                grown = measure.growth(
                    one.read, lambda n, o=one, v=variant, s=name: o.arguments(SHAPES[s](n), v), SIZE
                )
            except UnmadeError:
                break
            except MemoryError:
                grown = "more memory than the cap"
            if grown is not None:
                found[f"{one.name}, {variant}, {name}"] = str(grown)
    return found


@pytest.mark.parametrize(
    "module", one_of_each(READING, lambda one: one.__package__, "slow"), ids=lambda one: one.__name__
)
def test_a_reader_of_answers_takes_time_by_the_length_of_its_text(module: ModuleType) -> None:
    assert not slow(module, FEW, VARIANTS[:1])


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("module", [pytest.param(one, id=one.__name__) for one in READING])
def test_whatever_the_shape_of_an_answer(module: ModuleType) -> None:
    assert not slow(module, tuple(SHAPES), VARIANTS)


def test_every_function_is_on_the_clock() -> None:
    """A new function whose arguments cannot be made is found here; no reason stays that is not needed."""
    unmade = set()
    for module in modules():
        for one in functions(module):
            try:
                one.arguments("ab", VARIANTS[0])
            except UnmadeError:
                unmade.add(f"{module.__name__}.{one.name}".removeprefix("importer."))
    found = {name: [key for key in UNMADE if name == key or name.startswith(f"{key}.")] for name in unmade}
    assert [name for name, keys in found.items() if not keys] == []
    assert set(UNMADE) - {key for keys in found.values() for key in keys} == set()


@pytest.mark.slow
def test_the_clock_of_answers_sees_what_grows_too_fast() -> None:
    def counted(reply: Reply) -> int:
        return sum(map(reply.content.count, reply.content.split()))

    one = Function("counted", counted, None)

    words = partial(_given, one, "content", "numbered words")
    assert measure.growth(one.read, words, measure.noticed(one.read, words), limit=1.0) is not None
