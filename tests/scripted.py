"""Engines that are a function: from a chat's request to its message, with no socket between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from importer.validation.client import Client, Exchange

Request = Mapping[str, Any]
Say = Callable[[Request], tuple[Mapping[str, Any], str]]  # to a message and a finish_reason


def serve(monkeypatch: pytest.MonkeyPatch, say: Say) -> None:
    """Let every client be answered by ``say``; what it raises is what the connection raises."""

    def chunks(_self: Client, exchange: Exchange, _form: bytes | None = None) -> Iterator[bytes]:
        exchange.status, exchange.first = 200, 0.0
        body = _body(say, exchange)
        exchange.received += body
        yield body

    @contextmanager
    def sent(_self: Client, _exchange: Exchange) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace()

    monkeypatch.setattr(Client, "_chunks", chunks)
    monkeypatch.setattr(Client, "_sent", sent)


def _body(say: Say, exchange: Exchange) -> bytes:
    if exchange.path == "/v1/models":
        return json.dumps({"data": [{"id": "m"}]}).encode()
    if exchange.request is None:
        return b"{}"
    message, finish = say(exchange.request)
    usage = {"prompt_tokens": len(json.dumps(exchange.request).split()), "completion_tokens": 9}
    if exchange.path == "/v1/completions":
        text = {"text": message.get("content") or "", "finish_reason": finish}
        return json.dumps({"choices": [text], "usage": usage}).encode()
    if not exchange.request.get("stream"):
        choice = {"message": {"role": "assistant", **message}, "finish_reason": finish}
        return json.dumps({"choices": [choice], "usage": usage}).encode()
    calls = [{"index": i, **call} for i, call in enumerate(message.get("tool_calls") or ())]
    delta = {**message, "tool_calls": calls} if calls else dict(message)
    event = {"choices": [{"delta": delta, "finish_reason": finish}], "usage": usage}
    return f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n".encode()
