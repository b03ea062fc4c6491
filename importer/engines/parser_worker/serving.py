"""What the workers of the servers on mlx share: they run the server's own handler over given tokens."""

from __future__ import annotations

import importlib
import json
import logging
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from .replay import Assembled, reading, replay
from .vocabulary import forget
from .wire import Operation, attempt

Pair = Mapping[str, "str | None"]


@dataclass(frozen=True)
class Server:
    """One server.

    ``tools``    the package with its tool parsers, a module each.
    ``markers``  the module that names its pairs of thinking markers, and the pairs.
    ``load``     the tokenizer for a request.
    ``infer``    what it would choose by itself, given that tokenizer.
    ``compose``  the tokenizer with a pair of parsers; raises for a pair that the server would not use.
    ``answer``   what it answers, given what ``compose`` made, a sample, and whether to stream.
    """

    name: str
    version: str
    tools: str
    markers: str
    pairs: Callable[[], Iterable[tuple[str, str]]]
    load: Callable[[Mapping[str, Any]], Any]
    infer: Callable[[Any], Mapping[str, str | None]]
    compose: Callable[[Any, Pair], Any]
    answer: Callable[[Any, Mapping[str, Any], bool], dict[str, Any]]

    def operations(self) -> Mapping[str, Operation]:
        """What its worker answers."""
        logging.disable(logging.CRITICAL)
        return {
            "hello": self._hello,
            "list": self._list,
            "infer": self._infer,
            "read": partial(self._judged, streamed=False),
            "stream": partial(self._judged, streamed=True),
        }

    def tool(self, name: str) -> Any:
        """The module of a tool parser; raises ModuleNotFoundError for a name it lacks."""
        return importlib.import_module(f"{self.tools}.{name}")

    def _hello(self, _request: Mapping[str, Any]) -> Iterator[Any]:
        yield {"engine": self.name, "version": self.version}

    def _list(self, _request: Mapping[str, Any]) -> Iterator[Any]:
        """Every tool parser module, and every pair of thinking markers."""
        for name in sorted(modules(self.tools)):
            parse = self.tool(name).parse_tool_call
            home = parse.__module__
            yield {
                "kind": "tool",
                "name": name,
                "class": f"{home.rpartition('.')[2]}.{parse.__name__}",
                "module": home,
            }
        for opening, closing in self.pairs():
            yield {"kind": "reasoning", "name": opening, "class": closing, "module": self.markers}

    def _infer(self, request: Mapping[str, Any]) -> Iterator[Any]:
        yield self.infer(self.load(request))

    def _judged(self, request: Mapping[str, Any], streamed: bool) -> Iterator[Any]:
        """One item per asked pair of parsers: what is read in each sample, whole or also streamed."""
        limit, samples = request["limit"], request["samples"]
        forget()
        loaded = self.load(request)
        for pair in request["asks"]:
            composed = attempt(limit, lambda: {"with": self.compose(loaded, pair)})  # noqa: B023
            if "error" in composed:
                yield [composed] * len(samples)
            else:
                yield [
                    attempt(limit, lambda: self._judge(composed["with"], sample, streamed))  # noqa: B023
                    for sample in samples
                ]

    def _judge(self, composed: Any, sample: Mapping[str, Any], streamed: bool) -> dict[str, Any]:
        """These servers always read token by token, so there is one stream to compare with."""
        whole = self.answer(composed, sample, False)
        if not streamed:
            return whole
        return replay(whole, lambda _cuts: self.answer(composed, sample, True), tokens=1, places=[])


def modules(package: str) -> set[str]:
    """The names of the modules in a package."""
    return {module.name for module in pkgutil.iter_modules(importlib.import_module(package).__path__)}


def texts(request: Mapping[str, Any]) -> list[str]:
    """Everything that the tokenizer will have to encode."""
    return [text for s in request.get("samples", ()) for text in (s["prompt"], s["completion"])]


def from_whole(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What a client holds of an answer in one piece."""
    message = answer["choices"][0]["message"]
    calls = [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls") or ()]
    return reading(calls, message.get("reasoning"), message.get("content"))


def from_stream(events: Iterable[str]) -> dict[str, Any]:
    """What a client holds at the end of a stream; raises RuntimeError where the stream reports an error."""
    assembled = Assembled()
    for line in events:
        if not line.startswith("data: {"):
            continue
        data = json.loads(line[6:])
        if "error" in data:
            raise RuntimeError(data["error"])
        for choice in data["choices"]:
            assembled.add(_delta(choice["delta"]))
    return assembled.reading()


def _delta(delta: Mapping[str, Any]) -> dict[str, Any]:
    calls = [
        (c["index"], c["function"].get("name"), c["function"].get("arguments"))
        for c in delta.get("tool_calls") or ()
    ]
    return {"reasoning": delta.get("reasoning"), "content": delta.get("content"), "calls": calls}
