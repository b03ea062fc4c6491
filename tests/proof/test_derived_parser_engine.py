"""A model whose calls no parser reads, imported and served: its parser is data in the document."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from importer.cli.main import run
from importer.config_file.store import Store, StoredDocument
from importer.demo import MODEL
from importer.engines import get
from importer.engines.install import Installed
from importer.engines.process import EngineServer, serve
from tests.proof.test_response_template import HEAD, UNKNOWN
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("vllm")]
CALL = '<do what="get_weather"><with key="city">Paris</with><with key="days">2</with></do>'
PROPERTIES = {"city": {"type": "string"}, "days": {"type": "integer"}}
TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": PROPERTIES}},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo model with a format of calls that no engine knows."""
    folder = tmp_path_factory.mktemp("model") / "tagged"
    shutil.copytree(MODEL, folder)
    (folder / "chat_template.jinja").write_text(HEAD.replace("CALL", UNKNOWN["tagged"]))
    return folder


def imported(model: Path, folder: Path, *more: str) -> StoredDocument:
    words = [str(model), "--backend", "vllm", "--dir", str(folder), "--no-validate", "--yes"]
    assert run([*words, *more]) == 0
    stored = Store(folder).load("tagged")
    stored.check()
    return stored


def ask(served: EngineServer, **more: Any) -> tuple[int, str]:
    messages = [{"role": "user", "content": "How is it in Paris?"}]
    body = {"model": served.model, "messages": messages, "max_tokens": 100, "tools": [TOOL], **more}
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
    with contextlib.closing(connection):
        text = json.dumps(body)
        connection.request("POST", "/v1/chat/completions", text, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@pytest.mark.nightly
def test_its_calls_arrive_from_vllm(vllm_engine: Installed, model: Path, tmp_path: Path) -> None:
    stored = imported(model, tmp_path)
    data = stored.data
    assert data["options"] == ["tool_parser:hf"]
    assert "tool_calls" in data["importer"]["response_template"]["fields"]
    assert stored.need_receipt().decisions["tool_parser"]["status"] == "proved"
    assert [w["kind"] for w in stored.need_receipt().warnings if w["key"] == "tool_parser"] == []
    assert any("strict tools" in why for why in stored.need_receipt().decisions["tool_parser"]["why"])
    forced = {"structured_outputs": {"regex": CALL}}
    with serve(get("vllm-cpu"), vllm_engine.python, data, model) as served:
        status, text = ask(served, **forced)
        assert status == 200, text
        (call,) = json.loads(text)["choices"][0]["message"]["tool_calls"]
        assert call["function"]["name"] == "get_weather"
        assert json.loads(call["function"]["arguments"]) == {"city": "Paris", "days": 2}
        status, text = ask(served, **forced, stream=True)
        lines = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
        parts = [part for line in lines for part in line["choices"][0]["delta"].get("tool_calls") or ()]
        arguments = "".join(part["function"].get("arguments") or "" for part in parts)
        assert json.loads(arguments) == {"city": "Paris", "days": 2}
        assert ask(served, tool_choice="required")[0] == 400  # as the document's warning has it


def test_a_user_may_name_it_where_another_parser_reads(tmp_path: Path) -> None:
    """The demo model's own format has parsers; with hf by the user the document has its template."""
    folder = tmp_path / "tagged"
    shutil.copytree(MODEL, folder)
    parsers = ("--set", "tool_parser=hf", "--set", "reasoning_parser=hf")
    data = imported(folder, tmp_path / "set", *parsers).data
    assert set(data["importer"]["response_template"]["fields"]) >= {"tool_calls", "thinking"}
    data = imported(folder, tmp_path / "plain").data
    assert "tool_parser:hf" not in data["options"]
    assert "response_template" not in data["importer"]
