"""Exports read by their consumers' own parsers, value by value, and a script that is run as it stands."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.settings import value
from importer.demo import MODEL
from importer.document import argument_check
from importer.document.engine_arguments import load
from importer.engines.install import Installed
from importer.engines.ports import free_port
from importer.engines.vllm import VllmCuda
from importer.validation.client import Client
from importer.validation.probe import ProbeOptions
from importer.validation.probes.chat import plain_chat, stream_equals_whole
from importer.validation.probes.server import model_listed
from importer.validation.probes.tools import tool_call
from importer.validation.remote import against, the_model
from tests.exporting import COMMIT, ON_MLX, ON_MLX_VLM, VLLM, export, text
from tests.hubserver import HubServer, Repo, isolate
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.engine
TESTS = Path(__file__).parents[1]
SAMPLING = {
    "temperature": 0, "top_p": 0.95, "top_k": 20, "repetition_penalty": 1.05, "presence_penalty": -0.5,
    "max_new_tokens": 4096,
}  # fmt: skip
# What vLLM's parser must have read: the document, under vLLM's own names.
EXPECTED: dict[str, Any] = {
    "served_model_name": ["tiny-8b"], "enable_auto_tool_choice": True, "tool_call_parser": "hermes",
    "reasoning_parser": "qwen3", "override_generation_config": SAMPLING, "max_model_len": 32768,
    "dtype": "bfloat16", "gpu_memory_utilization": 0.85, "tensor_parallel_size": 2,
    "limit_mm_per_prompt": VLLM["limit_mm_per_prompt"], "trust_remote_code": False,
    "default_chat_template_kwargs": VLLM["chat_template_kwargs"], **VLLM["engine_args"],
}  # fmt: skip
PINNED = {"revision": COMMIT, "tokenizer_revision": COMMIT, "code_revision": COMMIT}
MARK = "answer: "


class ByVllm:
    """vLLM's own parser, waiting for command lines; ``fields`` are those of its engine."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.fields = self._answer()

    def __call__(self, *words: str) -> dict[str, Any]:
        """What it makes of a command line of ``vllm``, or why it refuses it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return self._answer()  # type: ignore[no-any-return]

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = next((line for line in self._process.stdout if line.startswith(MARK)), None)
        assert line is not None, f"it ended with {self._process.wait()}"
        return json.loads(line.removeprefix(MARK))


@pytest.fixture(scope="module")
def by_vllm(vllm_engine: Installed) -> Iterator[ByVllm]:
    environment = {**os.environ, "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
    with subprocess.Popen(
        [str(vllm_engine.python), str(TESTS / "parse_vllm.py")], env=environment, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        yield ByVllm(process)


def commands(script: str) -> list[list[str]]:
    found = [shlex.split(line, comments=True) for line in script.replace("\\\n", "").split("\n")]
    return [words[words[0] == "exec" :] for words in found if words and words != ["set", "-e"]]


def test_vllm_reads_every_value_of_the_document(by_vllm: ByVllm, tmp_path: Path) -> None:
    config = tmp_path / "tiny.yaml"
    config.write_text(text("vllm-config", VLLM))
    (command,) = commands(text("vllm-command", VLLM))
    by_config = by_vllm("serve", "--config", str(config))["parsed"]
    by_command = by_vllm(*command[1:])["parsed"]
    expected = EXPECTED | PINNED | {"host": "127.0.0.1", "port": 8000}
    for found in (by_config, by_command):
        assert {key: found[key] for key in expected} == expected
    assert by_config["model"] == by_command["model_tag"] == "acme/Tiny-8B"
    assert "--no-such-option" in by_vllm(*command[1:], "--no-such-option=1")["refused"]


def test_vllm_reads_end_tokens_from_the_folder_beside_the_export(by_vllm: ByVllm, tmp_path: Path) -> None:
    block = {**VLLM["importer"], "end_tokens": {"7": "<end>"}}
    made = export("vllm-config", VLLM | {"stopwords": ["<end>"], "importer": block})
    for name, told in made.files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(told)
    found = by_vllm("serve", "--config", str(tmp_path / "tiny-8b.vllm.yaml"))["parsed"]
    assert found["generation_config"] == "./tiny-8b.vllm"
    read = json.loads((tmp_path / found["generation_config"] / "generation_config.json").read_text())
    assert read == {"eos_token_id": [7]}


def test_vllm_reads_every_argument_that_a_document_may_set(by_vllm: ByVllm, tmp_path: Path) -> None:
    """Each option of ``engine_args`` is one that this version has, in the file as on the command line."""
    values = a_value_of_each("vllm", "0.32.0")
    document = VLLM | {"engine_args": values}
    config = tmp_path / "tiny.yaml"
    config.write_text(text("vllm-config", document))
    (command,) = commands(text("vllm-command", document))
    for answer in (by_vllm("serve", "--config", str(config)), by_vllm(*command[1:])):
        assert "parsed" in answer, answer
        read = {key: answer["parsed"][key] for key in values}
        # Its parser leaves the number of an enumeration as text.
        other = {key: read[key] for key, given in values.items() if read[key] not in (given, str(given))}
        assert other == {}


def a_value_of_each(engine: str, version: str) -> dict[str, Any]:
    """One accepted value for each argument whose parsed form is the value itself: no configurations."""
    draw, registry = random.Random(3), load(engine, version)
    assert registry is not None
    found: dict[str, Any] = {}
    for name, argument in argument_check.arguments_of(engine, version).items():
        simple = argument.kind in ("int", "float", "str", "bool") or "one_of" in argument.kind
        if not simple or (argument.kind == "bool" and argument.off is None) or argument.many:
            continue
        for _ in range(20):
            drawn = True if argument.kind == "bool" else value(draw, argument.kind, registry.configs)
            if not [*argument_check.faults(engine, version, {name: drawn})]:
                found[name] = drawn
                break
    return found


def test_vllm_reads_what_containers_are_told(by_vllm: ByVllm) -> None:
    """The words of the Compose file and of the InferenceService, as they are when they arrive."""
    service = yaml.safe_load(text("compose", VLLM))["services"]["vllm"]
    model = yaml.safe_load(text("kserve", VLLM))["spec"]["predictor"]["model"]
    in_compose = [word.replace("$$", "$") for word in (*service["entrypoint"], *service["command"])]
    in_a_pod = ["serve", "/mnt/models", "--port=8080", "--served-model-name=another"]
    in_a_pod += [word.replace("$$", "$") for word in model["args"]]
    composed, served = by_vllm(*in_compose[1:]), by_vllm(*in_a_pod)
    expected = EXPECTED | PINNED | {"host": "0.0.0.0", "port": 8000, "model_tag": "acme/Tiny-8B"}
    assert {key: composed["parsed"][key] for key in expected} == expected
    expected = EXPECTED | {"port": 8080, "model_tag": "/mnt/models"}
    assert {key: served["parsed"][key] for key in expected} == expected


def test_localais_engine_args_are_fields_of_vllms_engine(by_vllm: ByVllm) -> None:
    """LocalAI puts them into this very class, and fails to load a model where one is unknown."""
    values = a_value_of_each("vllm", "0.32.0")
    document = VLLM | {"engine_args": values}
    VllmCuda().settings(document)
    data = yaml.safe_load(text("localai", document))
    assert set(data["engine_args"]) <= set(by_vllm.fields)
    assert {"tool_strict_level", "chat_template_content_format"} & {*data["engine_args"]} == set()


def by_mlx(python: Path, script: str) -> dict[str, Any]:
    """What the program of the script's last command makes of its words."""
    words = [str(python), str(TESTS / "parse_mlx.py"), *commands(script)[-1]]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=True)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    found = json.loads(line.removeprefix(MARK))
    assert isinstance(found, dict)
    return found


def test_mlx_lm_reads_every_value_of_the_document(mlx_engine: Installed) -> None:
    found = by_mlx(mlx_engine.python, text("mlx-command", ON_MLX))
    expected = {
        "model": "./tiny-8b.mlx", "host": "127.0.0.1", "port": 8080, "temp": 0, "top_p": 0.95, "top_k": 20,
        "max_tokens": 4096, "chat_template_args": ON_MLX["chat_template_kwargs"], "trust_remote_code": False,
        "kv_bits": 8, "prompt_cache_size": 4,
    }  # fmt: skip
    assert {key: found[key] for key in expected} == expected


def test_mlx_vlm_reads_every_value_of_the_document(mlx_vlm_engine: Installed) -> None:
    found = by_mlx(mlx_vlm_engine.python, text("mlx-vlm-command", ON_MLX_VLM))
    expected = {
        "model": "./tiny-8b.mlx-vlm", "host": "127.0.0.1", "port": 8080, "max_tokens": 4096,
        "enable_thinking": True,
        "kv_bits": 3.5, "max_kv_size": 4096, "trust_remote_code": False,
    }  # fmt: skip
    assert {key: found[key] for key in expected} == expected


def test_the_script_for_mlx_fetches_the_commit_and_serves_it(
    mlx_engine: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run by a shell, with the Hub client's own command; ``main`` has moved on since the import."""
    repo = Repo(MODEL)
    commit = repo.sha
    repo.commit({"README.md": "moved on"})
    block = {**ON_MLX["importer"], "revision": commit}
    (script,) = export("mlx-command", ON_MLX | {"engine_args": {}, "importer": block}).files.values()
    port = free_port()
    (tmp_path / "serve.sh").write_text(script.replace("--port 8080", f"--port {port}"))
    path = os.pathsep.join(
        [str(Path(sys.executable).parent), str(mlx_engine.python.parent), os.environ["PATH"]]
    )
    with HubServer({"acme/Tiny-8B": repo}) as hub:
        isolate(monkeypatch, tmp_path, hub.url)
        process = subprocess.Popen(
            ["sh", "serve.sh"], cwd=tmp_path, env={**os.environ, "PATH": path}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True, text=True,
        )  # fmt: skip
        try:
            assert wait_until(lambda: _serves(port) or process.poll() is not None), "it never served"
            assert process.poll() is None, process.communicate()[0]
            link = tmp_path / "tiny-8b.mlx"
            assert (link / "model.safetensors").is_file()
            assert "/hub/models--acme--Tiny-8B/snapshots/" in str(link.readlink())  # no second copy
            assert not (link / "README.md").exists()
            client = Client(f"http://127.0.0.1:{port}")
            name = the_model(client, None, ON_MLX)  # mlx-lm lists nothing without the Hub client's folder
            assert name == str(link.resolve())
            probes = ProbeOptions([model_listed, plain_chat, tool_call, stream_equals_whole])
            rows = against(ON_MLX, client, name, options=probes).to_json()["outcomes"]
            assert {row["outcome"] for row in rows} == {"pass"}, rows
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def _serves(port: int) -> bool:
    body = {"model": "./tiny-8b.mlx", "messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 8}
    url, kind = f"http://127.0.0.1:{port}/v1/chat/completions", {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), kind)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return bool(json.load(answer)["choices"])
    except OSError:
        return False
