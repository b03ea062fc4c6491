"""``@frozen`` behaves as ``@dataclass(frozen=True, slots=True)`` does, whatever it compiles."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, dataclass, field, replace
from typing import Any

import pytest

from importer.frozen import frozen


@frozen
class Ours:
    """The class under test."""

    a: int
    b: str = "b"
    c: list[int] = field(default_factory=list, compare=False)
    d: int = field(default=4, repr=False)
    e: int = field(init=False, default=5)
    f: int = field(init=False)

    def __post_init__(self) -> None:
        """Compute the last field."""
        object.__setattr__(self, "f", self.a + self.d)


@dataclass(frozen=True, slots=True)
class Theirs:
    """The same of the standard library."""

    a: int
    b: str = "b"
    c: list[int] = field(default_factory=list, compare=False)
    d: int = field(default=4, repr=False)
    e: int = field(init=False, default=5)
    f: int = field(init=False)

    def __post_init__(self) -> None:
        """Compute the last field."""
        object.__setattr__(self, "f", self.a + self.d)


@frozen
class Child(Ours):
    """A child with one more field, and a text of its own."""

    g: int = 7

    def __repr__(self) -> str:
        """Return a text of its own."""
        return "own"


@frozen
class Single:
    """One field."""

    a: object


@frozen
class Empty:
    """No field."""


@pytest.mark.parametrize(
    "make",
    [
        lambda kind: kind(1), lambda kind: kind(1, "x", [2], 3), lambda kind: kind(a=1, d=0),
        lambda kind: kind(1, c=[1]), lambda kind: replace(kind(1), a=2, b="y"),
        lambda kind: copy.deepcopy(kind(1, c=[1])), lambda kind: pickle.loads(pickle.dumps(kind(1, "p"))),
    ],
)  # fmt: skip
def test_a_value_is_as_the_librarys(make: Callable[[Any], Any]) -> None:
    ours, theirs = make(Ours), make(Theirs)
    assert asdict(ours) == asdict(theirs)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert Ours.__match_args__ == Theirs.__match_args__  # type: ignore[attr-defined]
    assert ours == make(Ours)
    assert hash(ours) == hash(make(Ours))
    assert not hasattr(ours, "__dict__")


@pytest.mark.parametrize(
    "words", [((), {}), ((1, "b", [], 4, 5), {}), ((1,), {"a": 1}), ((1,), {"z": 1}), ((1,), {"e": 1})]
)
def test_arguments_that_do_not_fit_are_refused(words: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    for kind in (Ours, Theirs):
        with pytest.raises(TypeError):
            kind(*words[0], **words[1])


def test_values_differ_by_the_compared_fields_and_by_class() -> None:
    assert Ours(1) == Ours(1, c=[9]) != Ours(2)
    assert Ours(1) != Child(1)
    assert Child(1) == Child(1)
    assert (Child(1).g, repr(Child(1))) == (7, "own")
    assert Single([1]) == Single([1])
    assert {Empty(), Empty()} == {Empty()}
    with pytest.raises(TypeError, match="unhashable"):
        hash(Single([1]))


def test_nothing_is_set_or_removed_later() -> None:
    value: Any = Ours(1)
    with pytest.raises(FrozenInstanceError):
        value.a = 2
    with pytest.raises(FrozenInstanceError):
        value.new = 2
    with pytest.raises(FrozenInstanceError):
        del value.a
