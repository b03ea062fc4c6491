"""``importer run``: a document is served until Ctrl-C, its request works in a shell, a person talks to it."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from importer.cli import running
from importer.cli.main import run
from importer.demo import MODEL
from importer.engines.install import Installed
from importer.engines.ports import is_free
from tests.openai_api import api
from tests.waiting import PATIENCE


def test_the_request_has_a_tool_where_the_document_has_a_tool_parser() -> None:
    bodies = []
    for options in (["tool_parser:hermes"], ["use_jinja:true"]):
        words = shlex.split(running.curl("http://127.0.0.1:8000", "o'model", {"options": options}))
        assert words[:2] == ["curl", "http://127.0.0.1:8000/v1/chat/completions"]
        bodies.append(json.loads(words[-1]))
    assert [body["model"] for body in bodies] == ["o'model"] * 2
    assert ["tools" in body for body in bodies] == [True, False]


@pytest.mark.parametrize(
    ("uses", "about", "path", "sent"),
    [
        (["embeddings"], {"kind": "embedding"}, "/v1/embeddings", "input"),
        (["rerank"], {"kind": "reranker"}, "/v1/rerank", "documents"),
        (["score"], {"kind": "classifier"}, "/classify", "input"),
        (["score"], {"kind": "classifier", "outputs": {"each": "token"}}, "/pooling", "input"),
        (["score"], {"kind": "reward"}, "/pooling", "input"),
        (["transcript"], {"kind": "transcription"}, "/v1/audio/transcriptions", "file=@speech.wav"),
        (["completion"], {"kind": "base"}, "/v1/completions", "prompt"),
        (["completion", "chat"], {}, "/v1/chat/completions", "messages"),
    ],
)
def test_the_request_is_of_the_document_s_use(
    uses: list[str], about: dict[str, Any], path: str, sent: str
) -> None:
    document = {"known_usecases": uses, "importer": about}
    words = shlex.split(running.curl("http://127.0.0.1:8000", "m", document))
    assert words[1] == f"http://127.0.0.1:8000{path}"
    assert sent in (words[-1] if "-F" in words else json.loads(words[-1]))


def test_a_model_that_does_not_chat_is_not_talked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([str(MODEL), "--name", "demo", "--backend", "mlx", "--yes", "--no-validate"]) == 0
    place = tmp_path / "models" / "demo.yaml"
    place.write_text(place.read_text().replace("\n- chat\n", "\n- completion\n"))
    assert run(["run", "demo", "--chat"]) == 2
    assert "demo does not chat" in capsys.readouterr().err


def test_without_arguments_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    bare = capsys.readouterr().out
    assert run(["--help"]) == 0
    assert capsys.readouterr().out == bare
    assert bare.startswith("usage: importer REFERENCE")


@pytest.fixture
def demo(tmp_path: Path, mlx_engine: Installed, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A document of the model that ships, in a folder of its own."""
    monkeypatch.setenv("IMPORTER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IMPORTER_MLX_PYTHON", str(mlx_engine.python))
    monkeypatch.chdir(tmp_path)
    assert run([str(MODEL), "--name", "demo", "--backend", "mlx", "--yes", "--no-validate"]) == 0
    return tmp_path


def test_a_line_that_the_server_refuses_ends_no_talk(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("Hello\nAgain\n"))
    with api(knows=("hers",)) as (url, asked):
        served: Any = SimpleNamespace(base_url=url, model="other", alive=True)
        running.chat(served)
    assert [len(one["messages"]) for one in asked] == [1, 1]
    assert capsys.readouterr().err.count("[refused]") == 2


@pytest.mark.engine
def test_the_printed_request_is_answered_and_a_signal_ends_the_engine(demo: Path) -> None:
    words = [sys.executable, "-m", "importer", "run", "demo"]
    with subprocess.Popen(words, cwd=demo, stdout=subprocess.PIPE, text=True, env=os.environ) as served:
        assert served.stdout is not None
        try:
            request = served.stdout.readline()
            answer = subprocess.run(
                ["bash", "-c", request], check=True, capture_output=True, text=True, timeout=PATIENCE
            )
        finally:
            served.send_signal(signal.SIGTERM)
        assert served.wait(PATIENCE) == 0
    message = json.loads(answer.stdout)["choices"][0]["message"]
    assert message["tool_calls"][0]["function"]["name"] == "get_weather"
    assert is_free(int(request.split("/v1/", 1)[0].rpartition(":")[2]))


@pytest.mark.engine
def test_a_person_is_answered_line_by_line_until_the_input_ends(
    demo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    capsys.readouterr()
    monkeypatch.setattr(sys, "stdin", io.StringIO("Hello\n"))
    assert run(["run", "demo", "--chat"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Hello!")
    assert "[thinks] This is a greeting." in err
