"""The real mlx-lm with the model that ships: started, asked, stopped, broken, interrupted."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from importer.demo import MODEL
from importer.engines import get, process_group
from importer.engines.install import Installed
from importer.engines.process import EngineServer, serve
from tests.waiting import PATIENCE

pytestmark = pytest.mark.engine
DOCUMENT = {
    "name": "demo",
    "parameters": {"temperature": 0, "top_k": 1, "max_tokens": 3},
    "chat_template_kwargs": {"enable_thinking": False},
    "options": ["tool_parser:json_tools"],
}
ASKED = {
    "max_tokens": 100,
    "chat_template_kwargs": {"enable_thinking": True},
}  # of a request, before its defaults
WEATHER = {
    "type": "function",
    "function": {"name": "get_weather", "description": "Get the weather.",
                 "parameters": {"type": "object", "properties": {"location": {"type": "string"}}}},
}  # fmt: skip


@pytest.fixture(scope="module")
def served(mlx_engine: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineServer]:
    """One server for all; the last test ends it."""
    log = tmp_path_factory.mktemp("log") / "mlx.log"
    with serve(get("mlx"), mlx_engine.python, DOCUMENT, MODEL, log_path=log) as server:
        yield server


def request(port: int, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with contextlib.closing(connection):
        head = {"Content-Type": "application/json"}
        connection.request("POST" if body else "GET", path, json.dumps(body) if body else None, head)
        answer = connection.getresponse()
        data = json.loads(answer.read())
    assert answer.status == 200, data
    assert isinstance(data, dict)
    return data


def chat(served: EngineServer, text: str, **more: Any) -> dict[str, Any]:
    body = {"model": served.model, "messages": [{"role": "user", "content": text}]} | more
    answer = request(served.port, "/v1/chat/completions", body)
    return answer["choices"][0] | {"usage": answer["usage"]}


def test_it_lists_the_model_under_the_name_that_requests_use(served: EngineServer) -> None:
    assert [m["id"] for m in request(served.port, "/v1/models")["data"]] == [served.model]


def test_it_answers_and_calls(served: EngineServer) -> None:
    said = chat(served, "Say hello.", **ASKED)
    assert said["finish_reason"] == "stop"
    assert "Hello" in said["message"]["content"]
    assert "greeting" in said["message"]["reasoning"]
    called = chat(served, "What is the weather in Paris?", tools=[WEATHER], **ASKED)
    assert called["finish_reason"] == "tool_calls"
    function = called["message"]["tool_calls"][0]["function"]
    assert (function["name"], json.loads(function["arguments"])) == ("get_weather", {"location": "Paris"})


def test_the_documents_values_are_the_servers_defaults(served: EngineServer) -> None:
    said = chat(served, "Say hello.")
    assert said["usage"]["completion_tokens"] == 3
    assert "reasoning" not in said["message"]


def test_it_stops_with_nothing_left(served: EngineServer) -> None:
    report = served.stop()
    assert (report.group_ended, report.port_free, report.killed) == (True, True, False)
    assert not process_group.alive(served.pid)
