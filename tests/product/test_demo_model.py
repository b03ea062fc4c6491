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
from jinja2.sandbox import ImmutableSandboxedEnvironment

from importer.demo import MODEL
from importer.engines import get
from importer.engines.install import Installed
from importer.engines.process import EngineServer, serve
from tests.waiting import PATIENCE
from tools.demo_model.conversations import CITIES, tool
from tools.demo_model.recipe import CONFIG, DEMO, SAMPLING, file_digests

REPO = Path(__file__).parents[2]
USER = {"role": "user", "content": "What is the weather in Paris?"}
CALL = {
    "id": "call00001",
    "type": "function",
    "function": {"name": "get_weather", "arguments": {"location": "Paris"}},
}
WEATHER = tool("get_weather", "location", "The city", "Get the current weather in a location.")


def read(name: str) -> dict[str, Any]:
    data = json.loads((MODEL / name).read_text())
    assert isinstance(data, dict)
    return data


def render(messages: list[dict[str, Any]], **variables: Any) -> str:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    template = environment.from_string((MODEL / "chat_template.jinja").read_text())
    return template.render(messages=messages, **variables)


# Files


def test_the_files_are_those_of_the_recipe() -> None:
    record = read("training.json")
    assert record["recipe"] == DEMO.digest()
    assert record["files"] == file_digests(MODEL)
    assert record["steps"] == DEMO.steps
    assert record["held_out_exact"] > 0.9


def test_it_is_small() -> None:
    assert sum(path.stat().st_size for path in MODEL.iterdir()) < 600_000


def test_the_settings_are_where_every_engine_looks() -> None:
    config = read("config.json")
    assert config == DEMO.files()["config.json"]
    assert isinstance(config["rope_theta"], float)
    assert read("generation_config.json") == DEMO.files()["generation_config.json"]
    ids = {t["content"]: t["id"] for t in read("tokenizer.json")["added_tokens"]}
    declared = read("tokenizer_config.json")["added_tokens_decoder"]
    assert {int(i): t["content"] for i, t in declared.items()} == {i: t for t, i in ids.items()}
    assert ids["<|im_end|>"] == config["eos_token_id"]
    assert len(read("tokenizer.json")["model"]["vocab"]) == config["vocab_size"]


def test_the_weights_bear_the_names_that_transformers_uses() -> None:
    data = (MODEL / "model.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    assert header.pop("__metadata__") == {"format": "pt"}
    assert {t["dtype"] for t in header.values()} == {"BF16"}
    assert max(t["data_offsets"][1] for t in header.values()) == len(data) - 8 - size
    layer = {name.removeprefix("model.layers.0.") for name in header if name.startswith("model.layers.0.")}
    assert layer == {
        "input_layernorm.weight", "post_attention_layernorm.weight", "self_attn.q_proj.weight",
        "self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.o_proj.weight",
        "self_attn.q_norm.weight", "self_attn.k_norm.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight",
        "mlp.down_proj.weight",
    }  # fmt: skip
    assert len(header) == 2 + len(layer) * CONFIG["num_hidden_layers"]


# Template


def test_the_template_shows_tools_and_opens_the_turn() -> None:
    text = render([USER], tools=[WEATHER], add_generation_prompt=True)
    assert text.startswith("<|im_start|>system\n")
    assert json.dumps(WEATHER["function"]["parameters"]) in text
    assert text.endswith("<|im_end|>\n<|im_start|>assistant\n")
    assert "<|im_start|>system" not in render([USER])


def test_thinking_can_be_switched_off() -> None:
    off = render([USER], add_generation_prompt=True, enable_thinking=False)
    assert off.endswith("assistant\n<think>\n\n</think>\n\n")
    assert render([USER], add_generation_prompt=True, enable_thinking=True).endswith("assistant\n")


def test_a_call_its_result_and_its_thought_are_rendered() -> None:
    asked = {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "Need it."}
    answered = {"role": "tool", "content": "sunny", "tool_call_id": "call00001"}
    text = render([USER, asked, answered], add_generation_prompt=True)
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"location": "Paris"}}\n</tool_call>'
    assert f"<think>\nNeed it.\n</think>\n\n{call}<|im_end|>\n<|im_start|>tool\nsunny<|im_end|>" in text
    as_text = CALL | {"function": {"name": "get_weather", "arguments": '{"location": "Paris"}'}}
    assert call in render([USER, asked | {"tool_calls": [as_text]}])
    two = render([USER, asked | {"tool_calls": [CALL, CALL]}])
    assert f"{call}\n{call}<|im_end|>" in two


def test_old_thoughts_are_forgotten() -> None:
    thought = {"role": "assistant", "content": "Hello!", "reasoning_content": "A greeting."}
    assert "A greeting." in render([USER, thought])
    assert "A greeting." not in render([USER, thought, USER])
    system = {"role": "system", "content": "Be brief."}
    assert "A greeting." in render([system, USER, thought])
    assert "A greeting." not in render([system, USER, thought, USER])


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
    for city in CITIES:
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
