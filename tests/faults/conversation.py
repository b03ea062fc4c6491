"""A chat on its way through ``wire.py``, as operations see it. Only Python's own library."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Data = dict[str, Any]


@dataclass
class State:
    """What the server knows: its engine's process, what was asked, who is on the way, how many have left."""

    engine: int = 0
    asked: int = 0
    flying: list[Data] = field(default_factory=list)
    left: int = 0


class Conversation:
    """One chat on its way: ``request`` may be changed before, ``data`` of each answer or event after.

    ``whole`` unless it is streamed; ``kept`` is for what an operation remembers between two events.
    """

    def __init__(self, request: Data, state: State) -> None:
        self.request = request
        self.state = state
        self.whole = not request.get("stream")
        self.kept: Data = {}

    def parts(self, data: Data) -> Iterator[Data]:
        """What the choices hold: messages or deltas."""
        for choice in data.get("choices") or ():
            part = choice.get("message" if self.whole else "delta")
            if isinstance(part, dict):
                yield part

    def calls(self, data: Data) -> Iterator[Data]:
        for part in self.parts(data):
            yield from part.get("tool_calls") or ()

    def rewrite(self, data: Data, change: Callable[[Any], Any]) -> None:
        """Change the arguments of each call; what is no JSON stays as it is."""
        for call in self.calls(data):
            function = call.get("function") or {}
            try:
                given = json.loads(function.get("arguments") or "")
            except ValueError:
                continue
            function["arguments"] = json.dumps(change(given))


class Broken(Exception):
    """The server answers with an error of its own."""

    status = 500


class Busy(Broken):
    """The server has no room for one more."""

    status = 503


class TooLarge(Broken):
    """The body is larger than the gateway takes."""

    status = 413
