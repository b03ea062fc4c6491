"""Engines' environments and processes, with a toy server and a tiny package; no engine is installed here."""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from importer.engines import ENGINES, environment, get, group, logs, process
from importer.engines.base import Death, steps
from importer.engines.mlx import CONSTRAINTS, VERSION, Mlx
from importer.engines.process import Served, serve
from importer.engines.sockets import free_port, is_free
from importer.errors import DocumentError, EngineError, ImporterError
from tests.toy_engine import adapter

REPO = Path(__file__).parents[1]
PYTHON = Path(sys.executable)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"")
    return folder


@contextlib.contextmanager
def toy(mode: str, weights: Path, *, warm_up: bool = False, **options: Any) -> Iterator[Served]:
    with serve(adapter(mode, warm_up=warm_up), PYTHON, {"name": "m"}, weights, **options) as served:
        yield served


def health(port: int) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(connection):
        connection.request("GET", "/health")
        data = json.loads(connection.getresponse().read())
    assert isinstance(data, dict)
    return data


def wait_until(happens: Any, seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while not happens() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(happens())


# Adapters


def test_unknown_engine_names_the_known_ones() -> None:
    with pytest.raises(EngineError) as caught:
        get("llama")
    assert caught.value.kind == "unknown-engine"
    assert all(name in caught.value.hint for name in ENGINES)


@pytest.mark.parametrize("name", list(ENGINES))
def test_every_engine_can_be_made_and_is_pinned(name: str) -> None:
    engine = get(name)
    assert engine.name == name
    assert any("==" in word for step in steps(engine) for word in step.pip)
    launch = engine.launch({"name": "x", "parameters": {}}, Path("/weights"), 4321)
    told = " ".join(launch.arguments).replace("=", " ")
    assert "--port 4321" in told
    assert "--host 127.0.0.1" in told


def options(document: dict[str, Any]) -> dict[str, str]:
    words = Mlx().launch({"name": "m"} | document, Path("/weights"), 1).arguments[3:]
    return dict(zip(words[::2], words[1::2], strict=True))


def test_mlx_is_told_every_value_it_can_take_zero_too() -> None:
    given = {
        "temperature": 0,
        "top_p": 0.8,
        "top_k": 20.0,
        "min_p": 0.0,
        "max_tokens": 64,
        "repeat_penalty": 1.1,
    }
    told = options({"parameters": given})
    assert {k: told[k] for k in ("--temp", "--top-p", "--top-k", "--min-p", "--max-tokens")} == {
        "--temp": "0", "--top-p": "0.8", "--top-k": "20", "--min-p": "0", "--max-tokens": "64",
    }  # fmt: skip
    assert set(told) == {
        "--temp", "--top-p", "--top-k", "--min-p", "--max-tokens", "--model", "--host", "--port",
    }  # fmt: skip


def test_mlx_would_refuse_every_request_with_a_negative_top_k() -> None:
    assert options({"parameters": {"top_k": -1}})["--top-k"] == "0"


def test_mlx_template_variables_and_engine_args() -> None:
    told = options(
        {"chat_template_kwargs": {"enable_thinking": False}, "engine_args": {"prefill_step_size": 512}}
    )
    assert json.loads(told["--chat-template-args"]) == {"enable_thinking": False}
    assert told["--prefill-step-size"] == "512"


@pytest.mark.parametrize(
    "document",
    [
        {"parameters": {"temperature": "0 --trust-remote-code"}},
        {"parameters": {"top_p": True}},
        {"parameters": {"top_p": float("nan")}},
        {"engine_args": {"trust_remote_code": 1}},
        {"engine_args": {"kv_bits": "--host=0.0.0.0"}},
    ],
)
def test_no_value_of_a_document_becomes_a_flag(document: dict[str, Any]) -> None:
    with pytest.raises(DocumentError) as caught:
        options(document)
    assert caught.value.kind == "invalid"


def test_repository_code_runs_only_on_the_users_word() -> None:
    assert "--trust-remote-code" not in Mlx().launch({"trust_remote_code": "yes"}, Path("/w"), 1).arguments
    assert "--trust-remote-code" in Mlx().launch({"trust_remote_code": True}, Path("/w"), 1).arguments


def test_the_client_sends_what_mlx_takes_with_requests_only() -> None:
    given = {
        "temperature": 0.6,
        "repeat_penalty": 1.1,
        "presence_penalty": 0,
        "frequency_penalty": 0.2,
        "seed": 0,
    }
    sent = Mlx().client_sampling({"parameters": given})
    assert sent == {"repeat_penalty": 1.1, "frequency_penalty": 0.2, "seed": 0}
    assert Mlx().client_sampling({"parameters": {"repeat_penalty": 1.0}}) == {}
    assert Mlx().client_sampling({"stopwords": ["<end>", ""]}) == {"stopwords": ["<end>"]}


def test_the_constraints_pin_everything_and_agree_with_the_adapter() -> None:
    pins = [w for w in CONSTRAINTS.read_text().splitlines() if w and not w.startswith("#")]
    assert all("==" in pin for pin in pins)
    assert f"mlx-lm=={VERSION}" in pins


# Environments


@dataclass(frozen=True)
class Tiny:
    """An engine that is one small wheel."""

    steps: tuple[tuple[str, ...], ...]
    name: str = "tiny"
    distributions: tuple[str, ...] = ("tiny-engine",)
    readiness: Any = None
    deaths: tuple[Death, ...] = field(default=())
    takes_template: bool = True
    system: tuple[tuple[str, str], ...] = ()

    def plan(self) -> tuple[tuple[str, ...], ...]:
        return self.steps

    def launch(self, document: Any, model_dir: Path, port: int, template: Any = None) -> Any:
        raise AssertionError

    def client_sampling(self, document: Any) -> dict[str, Any]:
        raise AssertionError


def wheel(folder: Path, version: str = "1.5") -> Path:
    """A wheel with one module, written by hand so that no build tool is needed."""
    path = folder / f"tiny_engine-{version}-py3-none-any.whl"
    info = f"tiny_engine-{version}.dist-info"
    files = {
        "tiny_engine.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tiny-engine\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in files) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(name, text)
    return path


def tiny(folder: Path, version: str = "1.5") -> Tiny:
    return Tiny((("install", "--no-index", str(wheel(folder, version))),))


@pytest.mark.slow
def test_install_once_find_reinstall_on_a_new_pin_remove(importer_home: Path, tmp_path: Path) -> None:
    engine, steps = tiny(tmp_path), []
    assert environment.find(engine) is None
    made = environment.install(engine, steps.append)
    assert (made.version, made.origin, made.root) == ("1.5", "managed", importer_home / "engines" / "tiny")
    assert subprocess.run([made.python, "-c", "import tiny_engine"], check=False).returncode == 0
    assert any("Installing" in step for step in steps)
    assert environment.find(engine) == made

    before = {p: p.stat().st_mtime_ns for p in importer_home.rglob("*")}
    again: list[str] = []
    assert environment.install(engine, again.append) == made
    assert again == []
    assert {p: p.stat().st_mtime_ns for p in importer_home.rglob("*")} == before

    newer = tiny(tmp_path, "1.6")
    assert environment.find(newer) is None
    assert environment.install(newer).version == "1.6"

    assert environment.remove(newer)
    assert not environment.remove(newer)
    assert environment.find(newer) is None


@pytest.mark.slow
def test_a_failed_install_says_why_and_leaves_nothing_that_counts(
    importer_home: Path, tmp_path: Path
) -> None:
    engine = Tiny((("install", "--no-index", "--find-links", str(tmp_path), "tiny-engine==9"),))
    with pytest.raises(EngineError) as caught:
        environment.install(engine)
    assert caught.value.kind == "install-failed"
    assert "tiny-engine==9" in caught.value.message
    assert "tiny-engine==9" in (importer_home / "engines" / "tiny" / "install.log").read_text()
    assert environment.find(engine) is None
    assert not (importer_home / "engines" / "tiny" / "venv").exists()


@pytest.mark.slow
def test_an_interrupted_install_is_undone_and_redone(importer_home: Path, tmp_path: Path) -> None:
    engine = tiny(tmp_path)

    def interrupt(step: str) -> None:
        if step.startswith("Installing"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        environment.install(engine, interrupt)
    assert environment.find(engine) is None
    assert not (importer_home / "engines" / "tiny" / "venv").exists()

    # As after a kill -9, which undoes nothing.
    leftover = importer_home / "engines" / "tiny" / "venv" / "bin" / "half"
    leftover.parent.mkdir(parents=True)
    leftover.write_text("")
    assert environment.find(engine) is None
    assert environment.install(engine).version == "1.5"
    assert not leftover.exists()


@pytest.mark.slow
def test_two_installers_make_one_environment(importer_home: Path, tmp_path: Path) -> None:
    engine, steps, results = tiny(tmp_path), [], []

    def run() -> None:
        results.append(environment.install(engine, steps.append))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results[0] == results[1]
    assert steps.count("making an environment") == 1
    assert steps.count("waiting for another installer") == 1


def test_a_file_where_the_home_belongs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").write_text("")
    monkeypatch.setenv("IMPORTER_HOME", str(tmp_path / "home"))
    with pytest.raises(DocumentError) as caught:
        environment.install(tiny(tmp_path))
    assert caught.value.kind == "cannot-write"


def test_the_users_own_environment_comes_first(importer_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Tiny((), distributions=("tiny-engine", "pytest"))
    monkeypatch.setenv("IMPORTER_TINY_PYTHON", sys.executable)
    found = environment.find(engine)
    assert found is not None
    assert (found.origin, found.python, found.version) == ("variable", PYTHON, pytest.__version__)
    monkeypatch.delenv("IMPORTER_TINY_PYTHON")
    here = environment.find(engine)
    assert here is not None
    assert here.origin == "current"


@pytest.mark.parametrize("python", [sys.executable, "/nowhere/python"])
def test_a_variable_that_names_the_wrong_python(
    python: str, importer_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMPORTER_TINY_PYTHON", python)
    with pytest.raises(EngineError) as caught:
        environment.find(Tiny(()))
    assert caught.value.kind == "engine-python"


def test_the_plan_decides_the_digest_not_the_place_of_its_files(tmp_path: Path) -> None:
    def engine(folder: str, text: str) -> Tiny:
        path = tmp_path / folder / "pins.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return Tiny((("install", "--constraint", str(path), "x==1"),))

    assert environment.digest(engine("a", "y==1")) == environment.digest(engine("b", "y==1"))
    assert environment.digest(engine("a", "y==1")) != environment.digest(engine("b", "y==2"))


# Processes


def test_serve_and_stop(importer_home: Path, weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    steps: list[str] = []
    with toy("serves", weights, warm_up=True, progress=steps.append) as served:
        assert served.base_url == f"http://127.0.0.1:{served.port}"
        assert served.model == "toy-model"
        assert group.alive(served.pid)
        assert health(served.port)["env"]["TOY"] == "1"
        assert "toy starts" in served.log.read_text()
        report = served.stop()
        assert served.stop() is report
    assert (report.group_gone, report.port_free, report.killed) == (True, True, False)
    assert "loading the weights" in steps
    assert served.log.parent == importer_home / "logs"


def test_the_engine_gets_no_token_and_no_foreign_python(
    importer_home: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("HUGGING_FACE_HUB_TOKEN", "hf_secret")
    monkeypatch.setenv("IMPORTER_SERVE_DATABASE", "postgresql://ann:hf_secret@db/gallery")
    monkeypatch.setenv("PGPASSWORD", "hf_secret")
    monkeypatch.setenv("PYTHONPATH", str(REPO))
    with toy("serves", weights) as served:
        seen = health(served.port)
    assert "hf_secret" not in json.dumps(seen)
    assert "PYTHONPATH" not in seen["env"]
    assert seen["env"]["HF_HUB_OFFLINE"] == "1"
    assert seen["env"]["HF_HOME"].startswith(seen["cwd"])
    assert not Path(seen["cwd"]).exists()


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("dies", "the toy broke: no wheels"),
        ("dies-strangely", "RuntimeError: something nobody has seen"),
        ("broken", "its server answers 503"),
    ],
)
def test_a_death_is_explained(mode: str, says: str, importer_home: Path, weights: Path) -> None:
    with pytest.raises(EngineError) as caught, toy(mode, weights):
        pass
    assert caught.value.kind == "engine-died"
    assert says in caught.value.message
    assert Path(str(caught.value.details["log"])).exists()


def test_an_engine_that_cannot_load_its_model_dies_at_the_first_request(
    importer_home: Path, weights: Path
) -> None:
    with pytest.raises(EngineError) as caught, toy("cold", weights, warm_up=True):
        pass
    assert "its first request got 404" in caught.value.message


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "warm_up"), [("late", False), ("never", False), ("stuck", True)])
def test_an_engine_that_is_too_slow_is_ended(
    mode: str, warm_up: bool, importer_home: Path, weights: Path
) -> None:
    port = free_port()
    with pytest.raises(EngineError) as caught, toy(mode, weights, warm_up=warm_up, timeout=1.5, port=port):
        pass
    assert caught.value.kind == "engine-slow"
    assert is_free(port)


def test_a_taken_port_is_an_error_before_anything_starts(importer_home: Path, weights: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(EngineError) as caught, toy("serves", weights, port=port):
            pass
    assert caught.value.kind == "port-taken"
    assert not (importer_home / "logs").exists()


@pytest.mark.slow
def test_a_free_port_lost_to_somebody_quicker_is_replaced(
    importer_home: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as quicker:
        quicker.bind(("127.0.0.1", 0))
        quicker.listen()
        ports = iter([quicker.getsockname()[1], free_port()])
        monkeypatch.setattr(process, "free_port", lambda: next(ports))
        with toy("serves", weights) as served:
            assert served.port != quicker.getsockname()[1]


@pytest.mark.slow
def test_a_port_given_and_lost_at_the_last_moment(
    importer_home: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as quicker:
        quicker.bind(("127.0.0.1", 0))
        quicker.listen()
        monkeypatch.setattr(process, "is_free", lambda _: True)
        with pytest.raises(EngineError) as caught, toy("serves", weights, port=quicker.getsockname()[1]):
            pass
    assert caught.value.kind == "port-taken"


def test_no_weights(importer_home: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught, toy("serves", tmp_path):
        pass
    assert caught.value.kind == "no-weights"


def test_a_stubborn_engine_is_killed(
    importer_home: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE", 0.5)
    with toy("stubborn", weights) as served:
        report = served.stop()
    assert (report.group_gone, report.port_free, report.killed) == (True, True, True)


def test_the_whole_group_ends_with_it(importer_home: Path, weights: Path) -> None:
    with toy("parent", weights) as served:
        pass
    assert not group.alive(served.pid)


def test_an_error_in_the_block_ends_the_engine(importer_home: Path, weights: Path) -> None:
    with pytest.raises(ZeroDivisionError), toy("serves", weights) as served:
        raise ZeroDivisionError
    assert not group.alive(served.pid)
    assert is_free(served.port)


@contextlib.contextmanager
def serving_elsewhere(
    weights: Path, mode: str = "toy", *lock: str
) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    command = [sys.executable, "-m", "tests.serving_script", mode, sys.executable, str(weights), *lock]
    owner = subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert owner.stdout is not None
    pid, port = (int(word) for word in owner.stdout.readline().split())
    try:
        assert group.alive(pid)
        yield owner, pid, port
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
        group.send(pid, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_engine_outlives_its_owner(number: signal.Signals, importer_home: Path, weights: Path) -> None:
    with serving_elsewhere(weights) as (owner, pid, port):
        owner.send_signal(number)
        owner.wait(30)
        assert wait_until(lambda: not group.alive(pid))
        assert wait_until(lambda: is_free(port))


@pytest.mark.slow
def test_a_lock_is_held_until_the_engine_is_gone(importer_home: Path, weights: Path, tmp_path: Path) -> None:
    path = tmp_path / "device.lock"

    def free() -> bool:
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
            return True

    with serving_elsewhere(weights, "stubborn", str(path)) as (owner, pid, _):
        assert not free()
        owner.kill()
        owner.wait()
        assert group.alive(pid)
        assert not free()
        assert wait_until(lambda: free() or not group.alive(pid))
        assert not group.alive(pid)
        assert wait_until(free)


def test_logs_are_kept_but_not_for_ever(tmp_path: Path) -> None:
    for age in range(30):
        path = tmp_path / f"toy-{age}.log"
        path.write_text("")
        os.utime(path, (age, age))
    logs.fresh(tmp_path, "toy").write_text("")
    assert len(list(tmp_path.glob("*.log"))) == logs.KEPT
    assert (tmp_path / "toy-29.log").exists()


def test_a_log_that_cannot_be_written(weights: Path, tmp_path: Path) -> None:
    with pytest.raises(ImporterError) as caught, toy("serves", weights, log_path=tmp_path):
        pass
    assert caught.value.kind == "cannot-write"
