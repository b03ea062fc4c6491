"""Engines' processes, with a toy server: started, explained where they die, and ended."""

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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from importer import launcher
from importer.engines import logs, process, process_group
from importer.engines.ports import free_port, is_free
from importer.engines.process import EngineServer, serve
from importer.errors import EngineError, ImporterError
from tests.tiers import one_of_each
from tests.toy_engine import adapter
from tests.waiting import PATIENCE, PYTHON, wait_until

REPO = Path(__file__).parents[2]


@contextlib.contextmanager
def toy(mode: str, weights: Path, *, warm_up: bool = False, **options: Any) -> Iterator[EngineServer]:
    with serve(adapter(mode, warm_up=warm_up), PYTHON, {"name": "m"}, weights, **options) as served:
        yield served


def health(port: int) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with contextlib.closing(connection):
        connection.request("GET", "/health")
        data = json.loads(connection.getresponse().read())
    assert isinstance(data, dict)
    return data


# Processes


def test_serve_and_stop(importer_home: Path, weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    steps: list[str] = []
    with toy("serves", weights, warm_up=True, progress=steps.append) as served:
        assert served.base_url == f"http://127.0.0.1:{served.port}"
        assert served.model == "toy-model"
        assert process_group.alive(served.pid)
        assert health(served.port)["env"]["TOY"] == "1"
        assert "toy starts" in served.log.read_text()
        report = served.stop()
        assert served.stop() is report
    assert (report.group_ended, report.port_free, report.killed) == (True, True, False)
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
    assert Path(seen["env"]["HF_HOME"]).parent == Path(seen["cwd"]).parent
    assert not Path(seen["cwd"]).exists()


@pytest.mark.parametrize(
    ("mode", "says"),
    one_of_each(
        [
            ("dies", "ToyError: no wheels"),
            ("dies-strangely", "RuntimeError: something nobody has seen"),
            ("broken", "its server answers 503"),
        ],
        tier="slow",
    ),
)
def test_a_death_is_explained(mode: str, says: str, importer_home: Path, weights: Path) -> None:
    with pytest.raises(EngineError) as caught, toy(mode, weights):
        pass
    assert caught.value.kind == "engine-died"
    assert says in caught.value.message
    assert Path(str(caught.value.details["log"])).exists()


@pytest.mark.slow
def test_an_engine_that_cannot_load_its_model_dies_at_the_first_request(
    importer_home: Path, weights: Path
) -> None:
    with pytest.raises(EngineError) as caught, toy("cold", weights, warm_up=True):
        pass
    assert "its first request got 404" in caught.value.message


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "warm_up"), [("never", False), ("stuck", True)])
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


def test_no_weights(importer_home: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught, toy("serves", tmp_path):
        pass
    assert caught.value.kind == "no-weights"


@pytest.mark.slow
def test_a_stubborn_engine_is_killed(
    importer_home: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE", 0.5)
    with toy("stubborn", weights) as served:
        report = served.stop()
    assert (report.group_ended, report.port_free, report.killed) == (True, True, True)


def test_an_error_in_the_block_ends_the_engine(importer_home: Path, weights: Path) -> None:
    with pytest.raises(ZeroDivisionError), toy("serves", weights) as served:
        raise ZeroDivisionError
    assert not process_group.alive(served.pid)
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
        assert process_group.alive(pid)
        yield owner, pid, port
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
        launcher.send(pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_engine_outlives_its_owner(number: signal.Signals, importer_home: Path, weights: Path) -> None:
    with serving_elsewhere(weights) as (owner, pid, port):
        owner.send_signal(number)
        owner.wait(PATIENCE)
        assert wait_until(lambda: not process_group.alive(pid))
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
        assert process_group.alive(pid)
        assert not free()
        assert wait_until(lambda: free() or not process_group.alive(pid))
        assert not process_group.alive(pid)
        assert wait_until(free)


def test_logs_are_kept_but_not_for_ever(tmp_path: Path) -> None:
    for age in range(30):
        path = tmp_path / f"toy-{age}.log"
        path.write_text("")
        os.utime(path, (age, age))
    logs.fresh(tmp_path, "toy").write_text("")
    assert len(list(tmp_path.glob("*.log"))) == logs.MAX_LOGS
    assert (tmp_path / "toy-29.log").exists()


def test_no_log_of_a_running_engine_is_removed(tmp_path: Path) -> None:
    with logs.opened(tmp_path / "toy-old.log") as own:
        os.utime(tmp_path / "toy-old.log", (0, 0))
        held = subprocess.Popen(["sleep", "600"], stdout=own, stdin=subprocess.DEVNULL)
    try:
        for age in range(1, 30):
            (tmp_path / f"toy-{age}.log").write_text("")
        logs.fresh(tmp_path, "toy")
        assert (tmp_path / "toy-old.log").exists(), "the process that writes to it still runs"
    finally:
        held.kill()
        held.wait()
    os.utime(tmp_path / "toy-old.log", (0, 0))
    (tmp_path / "toy-30.log").write_text("")
    logs.fresh(tmp_path, "toy")
    assert not (tmp_path / "toy-old.log").exists()


def test_a_log_that_cannot_be_written(weights: Path, tmp_path: Path) -> None:
    with pytest.raises(ImporterError) as caught, toy("serves", weights, log_path=tmp_path):
        pass
    assert caught.value.kind == "cannot-write"
