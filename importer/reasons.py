"""Why something is so: a kind with its text, and the fields of one case; ``sentences`` puts both together.

A room declares its kinds with their texts (``class ReadReason(ReasonKind)``) and gives
``Reason(ReadReason.TOO_LARGE, limit=1_048_576)``. A misspelt kind fails mypy; a test compares the fields with
the placeholders of the text. No text names a flag, a command or a route: the command line and the service add
their own words (``cli.messages``, ``service.messages``). No code reads a sentence back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import EnumType, StrEnum
from typing import Any, Final, Self

Value = object  # JSON values, paths, other reasons, and sequences of them
Fields = Mapping[str, Any]
Text = str | Callable[[Fields], str]


class Named(EnumType):
    """Gives each member its name as its value: ``NO_CALL`` is ``no-call``."""

    def __new__(cls, name: str, bases: tuple[type, ...], members: Any, **more: Any) -> Any:
        for kind in members._member_names:  # noqa: SLF001 - public from Python 3.13 on
            texts = members[kind] if isinstance(members[kind], tuple) else (members[kind],)
            dict.__setitem__(members, kind, (kind.lower().replace("_", "-"), *texts))
        return super().__new__(cls, name, bases, members, **more)


class ReasonKind(StrEnum, metaclass=Named):
    """Kinds of reasons, each with its text: ``NO_CALL = "the model wrote no call"``.

    ``text``   a format string over the reason's fields, or a function of them, alone in a tuple.
    ``short``  behind it: what decided, in at most three words and never the value, for a comment in YAML and
               for tables; empty for a kind that decides nothing.
    """

    _value_: str
    text: Text
    short: Text

    def __new__(cls, value: str, text: Text = "", short: Text = "") -> Self:
        kind = str.__new__(cls, value)
        kind._value_, kind.text, kind.short = value, text, short
        return kind


class Reason:
    """A kind, and the fields that its sentence needs. Two reasons are equal where both are."""

    __slots__ = ("fields", "kind")

    def __init__(self, kind: ReasonKind, /, **fields: Value) -> None:
        self.kind: Final = kind
        self.fields: Final[Mapping[str, Value]] = fields

    def __repr__(self) -> str:
        return f"Reason({self.kind!r}, {self.fields!r})"

    def __eq__(self, other: object) -> bool:
        """Return whether both have one kind and the same fields; kinds of two enumerations may have one
        text.
        """
        if not isinstance(other, Reason):
            return NotImplemented
        return self.kind is other.kind and self.fields == other.fields

    def __hash__(self) -> int:
        return hash((self.kind, tuple(sorted((name, str(value)) for name, value in self.fields.items()))))

    def __deepcopy__(self, _memo: dict[int, Any]) -> Reason:
        """Return the reason itself: it does not change, and a view of its fields cannot be copied."""
        return self

    def to_json(self) -> dict[str, Any]:
        """``{"kind": "Enumeration.kind", fields…}``, as receipts and ``--json`` keep it."""
        return {"kind": key_of(self.kind), **{name: _json(value) for name, value in self.fields.items()}}


def key_of(kind: StrEnum) -> str:
    """Return the name of a kind in receipts and in front ends' tables: ``ReadReason.too-large``."""
    return f"{type(kind).__name__}.{kind.value}"


def _json(value: Value) -> Any:
    if isinstance(value, Reason):
        return value.to_json()
    if isinstance(value, Mapping):
        return {str(name): _json(inner) for name, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_json(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such number
    return value if isinstance(value, bool | int | float | str | None) else str(value)
