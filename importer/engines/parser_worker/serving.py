"""The common part of the workers of servers on mlx: the server's own handler runs over the tokens of a
sample.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import pkgutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from .replay import Assembled, reading, replay
from .vocabulary import forget
from .wire import Operation, attempt

Pair = Mapping[str, "str | None"]


class Captured(BaseException):  # not an Exception: a server answers those
    """The prompt, taken from a server before it is tokenised."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


@dataclass(frozen=True)
class Server:
    """One server.

    ``parsers``  yields every parser: kind, name, class, module.
    ``load``     returns the tokenizer for a request.
    ``infer``    returns the parsers that the server infers from the tokenizer.
    ``compose``  returns the tokenizer with a pair of parsers; raises for a pair that the server rejects.
    ``answer``   returns the answer for the result of ``compose``, a sample, and whether to stream.
    ``render``   returns the prompt of a conversation for the result of ``load``; ``None``: not run here.
    """

    name: str
    version: str
    parsers: Callable[[], Iterator[Mapping[str, str]]]
    load: Callable[[Mapping[str, Any]], Any]
    infer: Callable[[Any], Mapping[str, str | None]]
    compose: Callable[[Any, Pair], Any]
    answer: Callable[[Any, Mapping[str, Any], bool], dict[str, Any]]
    render: Callable[[Any, Mapping[str, Any]], str] | None = None

    def operations(self) -> Mapping[str, Operation]:
        """Return the operations of its worker."""
        logging.disable(logging.CRITICAL)
        known: dict[str, Operation] = {
            "hello": self._hello,
            "list": self._list,
            "infer": self._infer,
            "read": partial(self._judged, streamed=False),
            "stream": partial(self._judged, streamed=True),
        }
        return known if self.render is None else known | {"render": self._render}

    def _hello(self, _request: Mapping[str, Any]) -> Iterator[Any]:
        yield {"engine": self.name, "version": self.version}

    def _list(self, _request: Mapping[str, Any]) -> Iterator[Any]:
        yield from self.parsers()

    def _infer(self, request: Mapping[str, Any]) -> Iterator[Any]:
        yield self.infer(self.load(request))

    def _render(self, request: Mapping[str, Any]) -> Iterator[Any]:
        """Yield one item: the prompts of all conversations; these servers have one form of contents."""
        loaded, render = self.load(request), self.render
        model = {"model_type": request["tokenizer"]["model_type"]}
        if render is not None:
            yield [
                attempt(request["limit"], lambda: {"text": render(loaded, one | model), "format": None})  # noqa: B023
                for one in request["conversations"]
            ]

    def _judged(self, request: Mapping[str, Any], streamed: bool) -> Iterator[Any]:
        """Yield one item per pair of parsers: its readings of the samples, whole or also streamed."""
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
        """Return the reading of one sample; these servers read token by token, so there is one stream to
        compare.
        """
        whole = self.answer(composed, sample, False)
        if not streamed:
            return whole
        return replay(whole, lambda _cuts: self.answer(composed, sample, True), tokens=1, places=[])


def tool_module(package: str, name: str) -> Any:
    """Return the module of a tool parser; raises ModuleNotFoundError for a name that the package lacks."""
    return importlib.import_module(f"{package}.{name}")


def by_module(
    package: str, markers: str, pairs: Callable[[], Iterable[tuple[str, str]]]
) -> Iterator[Mapping[str, str]]:
    """Yield every tool parser, a module each in ``package``, and the pairs of thinking markers in
    ``markers``.
    """
    for name in sorted(modules(package)):
        try:
            parse = tool_module(package, name).parse_tool_call
        except ImportError:  # the others are listed; this one fails by itself, with its reason
            yield {"kind": "tool", "name": name, "class": name, "module": f"{package}.{name}"}
            continue
        home = parse.__module__
        function = f"{home.rpartition('.')[2]}.{parse.__name__}"
        yield {"kind": "tool", "name": name, "class": function, "module": home}
    for opening, closing in pairs():
        yield {"kind": "reasoning", "name": opening, "class": closing, "module": markers}


def modules(package: str) -> set[str]:
    """Return the names of the modules in a package."""
    return {module.name for module in pkgutil.iter_modules(importlib.import_module(package).__path__)}


def texts(request: Mapping[str, Any]) -> list[str]:
    """Return every text that the tokenizer encodes."""
    return [text for s in request.get("samples", ()) for text in (s["prompt"], s["completion"])]


def from_whole(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a whole answer as a client reads it."""
    message = answer["choices"][0]["message"]
    calls = [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls") or ()]
    return reading(calls, _thoughts(message), message.get("content"))


def from_stream(events: Iterable[str]) -> dict[str, Any]:
    """Return the parts at the end of a stream; raises RuntimeError where the stream reports an error."""
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
    return {"reasoning": _thoughts(delta), "content": delta.get("content"), "calls": calls}


def _thoughts(part: Mapping[str, Any]) -> str | None:
    """Return the reasoning from either of its two fields."""
    return part.get("reasoning") or part.get("reasoning_content")


def served(response: Awaitable[Any], *, stream: bool) -> dict[str, Any]:
    """Return the answer of a FastAPI endpoint, called without its server."""
    return asyncio.run(_answered(response, stream=stream))


async def _answered(response: Awaitable[Any], *, stream: bool) -> dict[str, Any]:
    answer = await response
    if not stream:
        return from_whole(answer.model_dump())
    return from_stream([line async for line in _lines(answer.body_iterator)])


async def _lines(events: AsyncIterator[str]) -> AsyncIterator[str]:
    async for event in events:
        for line in event.splitlines():
            yield line
