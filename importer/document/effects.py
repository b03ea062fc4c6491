"""The effect of each setting by its name, as a person has read it: what is free and what is a grant.

``effects_of`` has a table for each engine, its libraries and the keys of a document. A value may have an
entry of its own: ``load_format=auto``. A name without an entry is a grant.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from importer.frozen import frozen
from importer.reasons import ReasonKind

FOLDER = Path(__file__).with_name("effects_of")
LIBRARIES, DOCUMENT = "libraries", "document"  # tables beside those of the engines
PROPOSED = "proposed"  # by ``python -m gen_defaults settings``, and not read yet


class Effect(ReasonKind):
    """What a setting does."""

    SPEED = "it changes the speed"
    MEMORY = "it changes the use of memory"
    ANSWER = "it changes the answers"
    PORT = "it opens a port or a route"
    FILE = "it writes, reads or removes files of the engine's machine"
    PEER = "it names or trusts another machine"
    CODE = "it loads code"
    LIMIT = "it raises a limit of what clients may send or the engine may start"
    PROTECTION = "it switches a protection or a record off"
    TEST = "it is for tests of the engine and may break its answers"
    TEXT = "a text that the engine interprets: it may run code, open files or name hosts"
    UNREAD = "importer does not know its effect: it may run code, open files or name hosts"


FREE = frozenset((Effect.SPEED, Effect.MEMORY, Effect.ANSWER))


@frozen
class Effects:
    """The effects of one table by name or ``name=value``; ``most`` has the free values of limits.

    A limit of ``None`` has no default: any positive number is tighter.
    """

    named: Mapping[str, Effect]
    most: Mapping[str, float | None]

    def has(self, name: str) -> bool:
        """Return whether a person has read the name, or some of its values."""
        return name in self.named or any(key.startswith(f"{name}=") for key in self.named)

    def of_value(self, name: str, value: object) -> Effect | None:
        """Return the effect of one value that has an entry of its own."""
        return self.named.get(f"{name}={str(value).casefold()}")

    def withheld(self, name: str, value: object) -> Effect | None:
        """Return the effect for which a value needs an approval; ``None`` for a free one."""
        effect = self.of_value(name, value) or self.named.get(name, Effect.UNREAD)
        free = effect in FREE or (effect is Effect.LIMIT and self._tighter(name, value))
        return None if free else effect

    def _tighter(self, name: str, value: object) -> bool:
        most, number = self.most[name], _number(value)
        return number is not None and number > 0 and (most is None or number <= most)


@cache
def table(name: str) -> Effects:
    """Return the effects of an engine with those of the libraries, or of the keys of a document."""
    named: dict[str, Effect] = {}
    most: dict[str, float | None] = {}
    for file in (LIBRARIES, name) if name != DOCUMENT else (DOCUMENT,):
        data = json.loads((FOLDER / f"{file}.json").read_text(encoding="utf-8"))
        named |= {_folded(key): effect for effect in Effect for key in data.get(effect.value, ())}
        most |= data.get(Effect.LIMIT.value, {})
    return Effects(named, most)


def _folded(key: str) -> str:
    name, sign, value = key.partition("=")
    return f"{name}{sign}{value.casefold()}"


def _number(value: object) -> float | None:
    """Return a number, also of the text of a variable; JSON's true is none."""
    try:
        return float(value) if isinstance(value, int | float | str) and value is not True else None
    except (ValueError, OverflowError):
        return None
