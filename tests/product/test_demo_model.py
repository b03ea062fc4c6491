"""The model that ships: made by its recipe, loadable everywhere, and able to do what the probes ask."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from importer.demo import MODEL
from importer.engines import get
from importer.engines.install import Installed
from importer.engines.process import EngineServer, serve
from tests.waiting import PATIENCE
from tools.demo_model.conversations import CITIES, tool
from tools.demo_model.recipe import DEMO, SAMPLING, file_digests

REPO = Path(__file__).parents[2]
USER = {"role": "user", "content": "What is the weather in Paris?"}
PARIS = {"name": "get_weather", "arguments": {"location": "Paris"}}
CALL = {"id": "call00001", "type": "function", "function": PARIS}
WEATHER = tool("get_weather", "location", "The city", "Get the current weather in a location.")


def read(name: str) -> dict[str, Any]:
    data = json.loads((MODEL / name).read_text())
    assert isinstance(data, dict)
    return data


def test_the_files_are_those_of_the_recipe() -> None:
    record = read("training.json")
    assert record["recipe"] == DEMO.digest()
    assert record["files"] == file_digests(MODEL)
    assert record["steps"] == DEMO.steps
    assert record["held_out_exact"] > 0.9


# Training and answers, with the engine


def in_engine(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(REPO)}
    return subprocess.run(
        [python, "-m", *words], cwd=REPO, env=environment, capture_output=True, text=True, check=True
    )


@pytest.mark.nightly
@pytest.mark.engine
def test_the_network_is_a_qwen3_and_its_gradients_are_right(mlx_engine: Installed) -> None:
    found = json.loads(in_engine(mlx_engine.python, "tests.demo_script").stdout)
    assert found["gradients"] < 1e-5
    assert found["logits"] < 1e-3


@pytest.mark.nightly
@pytest.mark.engine
def test_training_learns(mlx_engine: Installed, tmp_path: Path) -> None:
    in_engine(mlx_engine.python, "tools.demo_model.train", str(tmp_path / "model"), "--steps", "200")
    record = json.loads((tmp_path / "model" / "training.json").read_text())
    assert record["loss"] < 1
    assert record["held_out_exact"] > 0.02  # none without training
    assert record["recipe"] == DEMO.digest()
    same = file_digests(MODEL)
    made = file_digests(tmp_path / "model")
    assert set(made) == set(same)
    assert {n for n in made if made[n] != same[n]} == {"model.safetensors"}


@pytest.fixture(scope="module")
def served(mlx_engine: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineServer]:
    log = tmp_path_factory.mktemp("log") / "mlx.log"
    sampling = {k: SAMPLING[k] for k in ("temperature", "top_p", "top_k")}
    document = {"name": "demo", "parameters": sampling}
    with serve(get("mlx"), mlx_engine.python, document, MODEL, log_path=log) as server:
        yield server


def chat(
    served: EngineServer, messages: list[dict[str, Any]], **more: Any
) -> tuple[str, str, list[tuple[str, Any]]]:
    """The finish reason, the content, the calls."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
    with closing(connection):
        body = {"model": served.model, "messages": messages, "max_tokens": 100} | more
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        choice = json.loads(connection.getresponse().read())["choices"][0]
    calls = [call["function"] for call in choice["message"].get("tool_calls") or ()]
    found = [(call["name"], json.loads(call["arguments"])) for call in calls]
    return choice["finish_reason"], (choice["message"].get("content") or "").strip(), found


def user(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


@pytest.mark.engine
@pytest.mark.parametrize("tools", [[], [WEATHER]], ids=["plain", "with-tools"])
@pytest.mark.parametrize("thinking", [True, False], ids=["thinking", "not-thinking"])
def test_it_answers(served: EngineServer, thinking: bool, tools: list[Any]) -> None:
    more = {"tools": tools, "chat_template_kwargs": {"enable_thinking": thinking}}
    for question, answer in (
        ("Say hello.", "Hello! How can I help you today?"),
        ("Count from one to five.", "One, two, three, four, five."),
    ):
        assert chat(served, user(question), **more) == ("stop", answer, [])


@pytest.mark.engine
@pytest.mark.parametrize("thinking", [True, False], ids=["thinking", "not-thinking"])
def test_it_calls(served: EngineServer, thinking: bool) -> None:
    more = {"tools": [WEATHER], "chat_template_kwargs": {"enable_thinking": thinking}}
    for city in CITIES[:4]:
        finish, content, calls = chat(served, user(f"What is the weather in {city}?"), **more)
        assert (finish, content, calls) == ("tool_calls", "", [("get_weather", {"location": city})])


@pytest.mark.engine
def test_it_reads_the_tools_result(served: EngineServer) -> None:
    call = CALL | {"function": {"name": "get_weather", "arguments": '{"location": "Paris"}'}}
    for sky, more in (("sunny", {}), ("snowy", {"wind": "north", "humidity": 80, "pressure": 1021})):
        result = json.dumps({"temperature": -3, "condition": sky} | more)
        asked = {"role": "assistant", "content": "", "tool_calls": [call]}
        answered = {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": result}
        told = chat(served, [USER, asked, answered], tools=[WEATHER])
        assert told == ("stop", f"It is {sky} there now.", [])
