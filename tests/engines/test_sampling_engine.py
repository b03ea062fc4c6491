"""Sampling on real engines: the document's values hold, and those it left out of the model's file do not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from importer.cli.main import run
from importer.demo import MODEL
from importer.engines import get
from importer.engines.install import Installed
from importer.engines.process import serve
from importer.validation.client import Client
from importer.validation.expectations import promise_of

pytestmark = pytest.mark.engine
PAD = "<|endoftext|>"
# Limits and a temperature that would show, and no list of end tokens that has the template's own.
GENERATION = {
    "do_sample": True, "temperature": 1.9, "top_k": 3, "max_new_tokens": 2, "presence_penalty": 0.5,
    "eos_token_id": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo model, which ends its turns with a token that none of its files calls an end."""
    folder = tmp_path_factory.mktemp("model") / "endless"
    shutil.copytree(MODEL, folder)
    for name, changes in (
        ("generation_config.json", GENERATION),
        ("config.json", {"eos_token_id": 0}),
        ("tokenizer_config.json", {"eos_token": PAD}),
    ):
        path = folder / name
        data = {} if path.name == "generation_config.json" else json.loads(path.read_text())
        path.write_text(json.dumps(data | changes))
    return folder


def document(model: Path, backend: str, capfd: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    arguments = [str(model), "--backend", backend, "--dry-run", "--json", *more]
    assert run(arguments) == 0
    line = json.loads(capfd.readouterr().out)
    assert line["decisions"]["stopwords"]["value"] == ["<|im_end|>"]
    made: dict[str, Any] = line["document"]
    return made


def answer(url: str, model: str, **more: Any) -> dict[str, Any]:
    log: list[Any] = []
    messages = [{"role": "user", "content": "Say hello."}]
    body = {"model": model, "messages": messages, "max_tokens": 60, **more}
    Client(url).chat(body | {"chat_template_kwargs": {"enable_thinking": False}}, log)
    choice: dict[str, Any] = json.loads(log[0].received)["choices"][0]
    return choice


@pytest.mark.nightly
@pytest.mark.xdist_group("vllm")
def test_vllm_has_the_documents_sampling_and_ends_with_the_template(
    vllm_engine: Installed, endless: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = document(endless, "vllm", capfd, "--set", "temperature=0", "--set", "top_k=null")
    assert made["importer"]["unset"] == ["top_k", "max_tokens"]
    assert "client_sampling" not in made["importer"]
    log = tmp_path / "vllm.log"
    with serve(get("vllm-cpu"), vllm_engine.python, made, endless, log_path=log) as served:
        said = answer(served.base_url, served.model)
        assert said["message"]["content"].strip() == "Hello! How can I help you today?"
        assert said["finish_reason"] == "stop"
        assert said["stop_reason"] == 2, "the template's own end"
    told = next(line for line in log.read_text().splitlines() if "sampling parameters have been" in line)
    assert "'temperature': 0" in told
    assert "'presence_penalty': 0.5" in told
    assert "top_k" not in told
    assert "max_tokens" not in told


def test_mlx_ends_with_the_template_where_clients_send_the_stop_word(
    mlx_engine: Installed, endless: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = document(endless, "mlx", capfd, "--set", "temperature=0")
    assert made["parameters"]["max_tokens"] == 1024
    assert made["importer"]["client_sampling"] == {"presence_penalty": 0.5, "stopwords": ["<|im_end|>"]}
    with serve(get("mlx"), mlx_engine.python, made, endless) as served:
        assert answer(served.base_url, served.model)["finish_reason"] == "length"
        sent = dict(promise_of(made).client_sampling)
        assert sent["stop"] == ["<|im_end|>"]
        said = answer(served.base_url, served.model, stop=sent["stop"])
    assert said["message"]["content"].strip() == "Hello! How can I help you today?"
    assert said["finish_reason"] == "stop"
