"""The real mlx-lm with the model that ships: started, asked, stopped, broken, interrupted."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from importer.demo import MODEL
from importer.engines import get, process_group
from importer.engines.install import Installed
from importer.engines.ports import is_free
from importer.engines.process import EngineServer, serve
from importer.errors import EngineError
from tests.tiers import one_of_each
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.engine
REPO = Path(__file__).parents[2]
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


def test_an_environment_without_the_engine_is_explained(importer_home: Path) -> None:
    with pytest.raises(EngineError) as caught, serve(get("mlx"), Path(sys.executable), DOCUMENT, MODEL):
        pass
    assert "lacks mlx_lm" in caught.value.message


@pytest.mark.parametrize("number", one_of_each([signal.SIGKILL, signal.SIGINT]))
def test_it_does_not_outlive_its_owner(
    number: signal.Signals, mlx_engine: Installed, importer_home: Path
) -> None:
    command = [sys.executable, "-m", "tests.serving_script", "mlx", str(mlx_engine.python), str(MODEL)]
    owner = subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert owner.stdout is not None
    with owner.stdout:
        pid, port = (int(word) for word in owner.stdout.readline().split())
        assert process_group.alive(pid)
        owner.send_signal(number)
        owner.wait(PATIENCE)
    assert wait_until(lambda: not process_group.alive(pid))
    assert is_free(port)
