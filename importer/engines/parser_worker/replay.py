"""Streams of an output in all splits, assembled as a client of the server would, and compared with the
whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .wire import failure

SHOWN = 6  # differing splits that are returned; the rest are only counted
Feed = Callable[[list[int]], "dict[str, Any]"]


def reading(calls: Iterable[tuple[str, str]], reasoning: str | None, content: str | None) -> dict[str, Any]:
    """Return the parts of an answer in the form of the wire; arguments stay the text of the engine."""
    return {
        "calls": [{"name": name, "arguments": arguments} for name, arguments in calls],
        "reasoning": reasoning,
        "content": content,
    }


class Assembled:
    """Deltas of a stream, joined as OpenAI's client library joins them: text by text, calls by index."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {"reasoning": [], "content": []}
        self._calls: dict[int, dict[str, str]] = {}

    def add(self, delta: Mapping[str, Any]) -> None:
        """Join one delta: ``reasoning``, ``content``, ``calls`` as (index, name, arguments)."""
        for key, parts in self._texts.items():
            if delta[key]:
                parts.append(delta[key])
        for index, name, arguments in delta["calls"]:
            call = self._calls.setdefault(index, {"name": "", "arguments": ""})
            call["name"] += name or ""
            call["arguments"] += arguments or ""

    def reading(self) -> dict[str, Any]:
        """Return the parts at the end of the stream."""
        calls = [(call["name"], call["arguments"]) for _, call in sorted(self._calls.items())]
        texts = {key: "".join(parts) or None for key, parts in self._texts.items()}
        return reading(calls, texts["reasoning"], texts["content"])


def in_two(tokens: int, sample: Mapping[str, Any]) -> list[int]:
    """Return every place to cut an output of so many tokens into two deltas; none for one step by step."""
    return [] if sample.get("stepwise") else list(range(1, tokens))


def replay(whole: Mapping[str, Any], feed: Feed, tokens: int, places: list[int]) -> dict[str, Any]:
    """Return the splits that differ from ``whole``: token by token, and cut in two at each of ``places``.

    ``feed`` reads the output cut before the given tokens. ``split`` is the number of tokens in the first of
    two deltas, or 0 for token by token.
    """
    splits = [(0, list(range(1, tokens))), *((place, [place]) for place in places)]
    differs = []
    for split, cuts in splits:
        try:
            result = feed(cuts)
        except Exception as error:
            result = {"error": failure(error)}
        if not same(whole, result):
            differs.append({"split": split, "reading": result})
    return {"whole": whole, "count": len(splits), "different": len(differs), "differs": differs[:SHOWN]}


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether a client would act alike on both: white space around texts and inside JSON does not
    count.
    """
    return _essence(one) == _essence(other)


def _essence(result: Mapping[str, Any]) -> object:
    if "error" in result:
        return "error"
    calls = [(call["name"], _value(call["arguments"])) for call in result["calls"]]
    return calls, (result["reasoning"] or "").strip(), (result["content"] or "").strip()


def _value(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except ValueError:
        return arguments
