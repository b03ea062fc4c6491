"""Every function of ``validation`` and ``reports``, called with a text of a server in each of its parameters.

The values come of the parameters' types, so that a new function is on the clock by itself.
"""

from __future__ import annotations

import collections.abc
import inspect
import io
import json
import pkgutil
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console, RenderableType
from rich.table import Table

from importer import reports, validation
from importer.config_file.receipt import Receipt
from importer.config_file.store import StoredDocument
from importer.reasons import Reason
from importer.reports.report_model import ReportModel
from importer.validation import client, probe, probes, served_engine
from importer.validation.client import Client, Exchange
from importer.validation.context import Context
from importer.validation.evidence_sources import Render
from importer.validation.expectations import CommonReason, Expectations
from importer.validation.outcome import Fail
from importer.validation.prompts import WEATHER, Prompt
from importer.validation.rendering import PromptRendering
from importer.validation.reply import Reply, ToolCall, Usage
from tests.clock.shapes import repeated, shapes
from tests.hostile_api import written
from tests.reporting import told

SERVED = [""]
OWN = ("secret", "secrets")  # parameters that are the person's own, and no text of a server
UNITS = (
    "one two ", "1, 2, ", "ten\n", "<tool_call>", "```", "<think>a</think>", "\x00", "\U0001f600\u0301", '{"a": ', "\\\"'",
)  # fmt: skip
SHAPES = {
    **shapes(few=True),
    **{repr(unit): repeated(unit) for unit in UNITS},
    "numbered words": lambda n: " ".join(map(str, range(n // 6))),
}
FEW = ("'a'", "numbered words")
FOLDER = TemporaryDirectory()
ROOMS = (validation, reports)
NAMED: dict[str, Any] = {
    "Console": Console,
    "Table": Table,
    "RenderableType": RenderableType,
    "Receipt": Receipt,
    "StoredDocument": StoredDocument,
    "Controls": served_engine.Controls,
    "Probe": probe.Probe,
    "ServedEngine": served_engine.ServedEngine,
}


def _first(of: type[Enum]) -> Enum:
    if not len(of):
        raise UnmadeError(of.__name__)
    return next(iter(of))


def _is_protocol(value: type) -> bool:
    return bool(getattr(value, "_is_protocol", False))


class UnmadeError(Exception):
    """No value of this type is made here."""


@dataclass(frozen=True)
class Function:
    """A function with the names and types of its parameters; ``owner`` is the class of a method."""

    name: str
    call: Callable[..., Any]
    owner: type | None

    def arguments(self, text: str, variant: str) -> tuple[list[Any], dict[str, Any]]:
        """Return arguments that hold the text, of which a server's answers are made, too; raises
        UnmadeError.
        """
        SERVED[:] = [text]
        maker, hints = Maker(text, variant), _hints(self.call)
        given: list[Any] = []
        named: dict[str, Any] = {}
        for place, (name, one) in enumerate(inspect.signature(self.call).parameters.items()):
            if name in OWN:
                given.append(Maker("sk-secret-of-a-person").of(hints[name]))
            elif self.owner is not None and place == 0:
                given.append(maker.of(self.owner))
            elif one.kind is one.VAR_POSITIONAL:
                given += [maker.of(hints[name])] * 2
            elif one.kind is one.KEYWORD_ONLY:
                named[name] = maker.of(hints[name])
            elif one.kind is not one.VAR_KEYWORD:
                given.append(maker.of(hints[name]))
        return given, named

    def read(self, given: tuple[list[Any], dict[str, Any]]) -> None:
        """Call the function, and take all that it yields; what it raises is its answer."""
        arguments, named = given
        try:
            found = self.call(*arguments, **named)
            if inspect.isgenerator(found):
                collections.deque(found, 0)
        except MemoryError:
            raise
        except Exception:
            pass


@cache
def _hints(call: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the types of parameters and fields, with those that only a type checker imports."""
    return typing.get_type_hints(call, None, NAMED)


@cache
def modules() -> tuple[types.ModuleType, ...]:
    """Every module of the rooms."""
    names = [one.name for room in ROOMS for one in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")]
    return (*ROOMS, *map(import_module, names))


def functions(module: types.ModuleType) -> Iterator[Function]:
    """Every function and method that a module defines; nothing of a protocol."""
    for name, value in list(vars(module).items()):
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(value):
            yield Function(name, value, None)
        elif inspect.isclass(value) and not _is_protocol(value):
            yield from _methods(name, value)


def _methods(name: str, owner: type) -> Iterator[Function]:
    for key, value in list(vars(owner).items()):
        call = value.fget if isinstance(value, property) else value
        if getattr(call, "__module__", None) != owner.__module__ or key in ("_asdict", "_replace", "_make"):
            continue
        if inspect.isfunction(call) and (not key.startswith("__") or key in ("__call__", "__post_init__")):
            yield Function(f"{name}.{key}", call, owner)


class Maker:
    """Values by type, each with the text; every second text differs from the one before."""

    def __init__(self, text: str, variant: str = "everywhere") -> None:
        self.variant, self._text, self._texts = variant, text, 0

    def text(self) -> str:
        """Return the text, or one like it with another middle."""
        self._texts += 1
        half = len(self._text) // 2
        return self._text if self._texts % 2 else f"{self._text[:half]}x{self._text[half:]}"

    def of(self, hint: Any) -> Any:
        """Return a value of the type; raises UnmadeError."""
        if hint in MADE:
            return MADE[hint](self)
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            return self.of(inner[0])
        if origin is not None:
            return self._generic(origin, inner)
        if isinstance(hint, typing.TypeVar):
            return self.of(hint.__constraints__[0] if hint.__constraints__ else str)
        if isinstance(hint, type) and issubclass(hint, Enum):
            return _first(hint)
        known = isinstance(hint, type) and hint.__module__.startswith("importer.")
        if known and hint is not PromptRendering and not _is_protocol(hint):
            return self._instance(hint)
        raise UnmadeError(str(hint))

    def _generic(self, origin: Any, inner: tuple[Any, ...]) -> Any:
        if origin is typing.Literal:
            return inner[0]
        if origin is collections.abc.Callable:
            return lambda *_, **__: self.of(inner[1])
        if issubclass(origin, collections.abc.Mapping):
            return {self.of(inner[0]): self.of(inner[1])}
        if origin is tuple:
            return tuple(map(self.of, inner if inner[-1] is not ... else inner[:1] * 2))
        return [self.of(inner[0]), self.of(inner[0])]

    def _instance(self, of: type) -> Any:
        """Return an instance: its fields or the parameters of its construction that have no default."""
        hints = _hints(of if is_dataclass(of) else of.__init__)  # type: ignore[misc]
        named = [p for p in inspect.signature(of).parameters.values() if p.default is p.empty]
        given = {p.name: self.of(hints[p.name]) for p in named if p.name in hints}
        return of(**given)

    def reply(self) -> Reply:
        """Return an answer with the text in the parts that the variant names."""
        text, pieces = self.text(), len(self._text) // 40 + 1
        shown = [text[i : i + pieces] for i in range(0, len(text), pieces)]
        logprobs = tuple(
            {"token": t, "logprob": -0.1, "top_logprobs": [{"token": t, "logprob": -0.1}]} for t in shown
        )
        calls = (
            ToolCall(0, "a", WEATHER.tools[0]["function"]["name"], json.dumps({"location": text})),
            ToolCall(1, text, text, text),
        )
        if self.variant == "content":
            return Reply(text, finish_reason="stop", raw=(data(text),))
        if self.variant == "calls":
            return Reply("", "", calls, "tool_calls", Usage(9, 9), logprobs, (data(text),))
        return Reply(text, text, calls, "stop", Usage(9, 9), logprobs, (data(text),), text)

    def context(self) -> Context:
        """Return the context of a probe against a server that answers with the text."""
        promise = Expectations(
            tool_parser="hermes",
            reasoning_parser="qwen3",
            remote=True,
            detected=frozenset({"tokenize", "messages", "responses"}),
        )
        rendering = Rendering()
        log = [
            Exchange("POST", "/v1/chat/completions", {"messages": WEATHER.messages, "tools": WEATHER.tools})
        ]
        return Context(promise, "m", Client("http://127.0.0.1:1"), render=rendering, log=log)  # type: ignore[arg-type]


def data(text: str) -> dict[str, Any]:
    """Return the JSON of an answer in every format at once."""
    call = {"id": text, "index": 0, "function": {"name": text, "arguments": text}}
    message = {"role": "assistant", "content": text, "reasoning": text, "tool_calls": [call]}
    choice = {
        "index": 0,
        "message": message,
        "delta": message,
        "text": text,
        "finish_reason": text,
        "stop_reason": text,
    }
    part = {"type": "text", "text": text, "id": text, "name": text, "input": {text: text}, "content": [text]}
    return {
        "choices": [choice], "content": [part], "output": [part], "data": [{"id": text, "object": text}], "type": text,
        "tokens": [1, 2], "prompt": text, "model": text, "role": "assistant", "usage": {"prompt_tokens": 9},
        "created": 1, "version": text, "system_fingerprint": text, "body": text, "error": text, "reason": text,
    }  # fmt: skip


class Rendering:
    """A template that writes turns without markers; it is importer's own, and no text of a server."""

    bos, stops, digest, place, analysis, claimed = "", ("</s>",), "sha256:0", "", None, None
    files: Mapping[str, str] = {}
    others = ()

    def knows(self, variable: str) -> bool:
        return bool(variable)

    def at(self, prompt: Prompt, later: float, *, template: str | None = None) -> str:
        return f"{later:g}{template}{self(prompt)}"

    def __call__(self, prompt: Prompt) -> str:
        return "".join(f"{one['role']}: {one.get('content')}\n" for one in prompt.messages)


def set_event() -> Event:
    """Return an event that has come."""
    event = Event()
    event.set()
    return event


MADE: Mapping[Any, Callable[[Maker], Any]] = {
    str: Maker.text,
    bytes: lambda maker: json.dumps(data(maker.text())).encode(),
    int: lambda _: 2,
    float: lambda _: 1.0,
    bool: lambda _: False,
    object: Maker.text,
    Path: lambda maker: _file(maker.text()),
    probe.Probe: lambda _: probes.plain_chat,
    Render: lambda _: Rendering(),
    Any: Maker.text,
    type(None): lambda _: None,
    Mapping[str, Any]: lambda maker: data(maker.text()),
    dict[str, Any]: lambda maker: data(maker.text()),
    Mapping[str, object]: lambda maker: data(maker.text()),
    Reply: Maker.reply,
    Context: Maker.context,
    Console: lambda _: Console(file=io.StringIO()),
    Event: lambda _: set_event(),
    Client: lambda _: Client("http://127.0.0.1:1"),
    Exchange: lambda maker: Exchange("POST", maker.text(), data(maker.text()), 200, bytearray(maker.text(), "utf-8", "replace")),
    Prompt: lambda _: WEATHER,
    Expectations: lambda maker: maker.context().promise,
    Reason: lambda maker: Reason(CommonReason.GOES_ON, token=maker.text()),
    Fail: lambda maker: Fail(Reason(CommonReason.GOES_ON, token=maker.text()), "engine", None, evidence=(data(maker.text()),)),
    ReportModel: lambda maker: told(maker.text()),
    collections.abc.Callable[[Reply], Any]: lambda _: lambda reply: Fail(Reason(CommonReason.GOES_ON, token=reply.content), "engine"),
}  # fmt: skip


def _file(text: str) -> Path:
    """Return a file with the text, as a log is one."""
    path = Path(FOLDER.name, str(hash(text)))
    path.write_text(text, encoding="utf-8", errors="replace")
    return path


@contextmanager
def answering() -> Iterator[None]:
    """Let every client be answered with the text of the last arguments, with no socket between."""

    def chunks(_self: Client, exchange: Exchange, _form: bytes | None = None) -> Iterator[bytes]:
        exchange.status, exchange.first = 200, 0.0
        body = written(exchange.path, exchange.request or {}, SERVED[0])
        exchange.received += body
        yield body

    @contextmanager
    def sent(_self: Client, _exchange: Exchange, _form: bytes | None = None) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "_chunks", chunks)
        patch.setattr(Client, "_sent", sent)
        patch.setattr(client.time, "sleep", lambda _: None)
        patch.setattr("importer.validation.reply.LONGEST", 10**9)  # the cap is no excuse
        yield
