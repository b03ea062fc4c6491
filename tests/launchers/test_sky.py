"""SkyPilot: the task by its own loader, and what its queue and its log look like."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from importer import launchers
from importer.errors import LauncherError
from importer.launchers.base import (
    Absent,
    Cancelled,
    Failed,
    FailureKind,
    Lost,
    Queued,
    RemoteRun,
    RemoteState,
    RemoteTask,
    Resources,
    Running,
    Succeeded,
)
from importer.launchers.result import Result, read
from importer.launchers.sky import Job, job_state, task_data
from importer.launchers.target import parse
from tests.consumers import answer, environment

DIGEST = f"sha256:{'a' * 64}"
TARGET = parse("sky:kubernetes?accelerators=H100:2&image=r.example/importer-vllm:1&importer=sent")
TASK = RemoteTask("run-1", b'{"schema": 1}', DIGEST, "vllm", Resources(4, 0, 2**33), seconds=900)


@pytest.mark.parametrize(
    ("job", "state"),
    [
        (None, Absent()),
        ({"status": "PENDING", "details": "In queue"}, Queued("In queue")),
        ({"status": "STARTING", "details": None}, Queued("starting")),
        ({"status": "RECOVERING"}, Queued("recovering")),
        ({"status": "RUNNING", "infra": "AWS (us-east-1)"}, Running("AWS (us-east-1)")),
        ({"status": "CANCELLING", "region": "eu-1"}, Running("eu-1")),
        ({"status": "SUCCEEDED"}, Succeeded()),
        ({"status": "CANCELLED"}, Cancelled()),
        ({"status": "FAILED", "failure_reason": None}, Failed(FailureKind.COMMAND, "FAILED")),
        ({"status": "FAILED_SETUP", "failure_reason": "x\ny"}, Failed(FailureKind.ENVIRONMENT, "x y")),
        ({"status": "FAILED_NO_RESOURCE"}, Failed(FailureKind.UNSCHEDULABLE, "FAILED_NO_RESOURCE")),
        ({"status": "FAILED_PRECHECKS"}, Failed(FailureKind.UNSCHEDULABLE, "FAILED_PRECHECKS")),
        ({"status": "FAILED_CONTROLLER", "failure_reason": "gone"}, Lost("gone")),
    ],
)  # fmt: skip
def test_each_status_of_a_managed_job(job: Any, state: RemoteState) -> None:
    found = None if job is None else Job.model_validate({"job_id": 7, "job_name": "run-1", **job})
    assert job_state(found) == state


PROGRAM = """#!/usr/bin/env python3
import json, pathlib, shutil, sys
home = pathlib.Path(__file__).parent
words = sys.argv[1:]
with (home / "calls").open("a") as calls:
    print(json.dumps(words), file=calls)
if words[1] == "launch":
    shutil.copy(words[-1], home / "task.yaml")
    task = words[-1].replace("task.yaml", "input")
    shutil.copytree(task, home / "input")
    entry = {"job_id": 7, "job_name": words[3], "status": "RUNNING", "infra": "AWS (us-east-1)"}
    (home / "queue").write_text(json.dumps([entry], indent=2))
elif words[1] == "queue":
    print("\\x1b[2mStarting a local server.\\x1b[0m")
    queue = home / "queue"
    print(queue.read_text() if queue.exists() else "[]")
elif words[1] == "logs":
    print((home / "log").read_text(), end="")
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in place of ``sky``, whose own needs a cloud: it answers in the shapes of version 0.14."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "sky").write_text(PROGRAM)
    (folder / "sky").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def calls(folder: Path, command: str) -> list[list[str]]:
    lines = (folder / "calls").read_text().splitlines()
    return [words for words in map(json.loads, lines) if words[1] == command]


def test_a_run_is_launched_once_and_its_result_comes_in_the_log(program: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "importer-1-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    sent = RemoteTask("run-1", b'{"schema": 1}', DIGEST, "vllm", wheel=wheel)
    launcher = launchers.get(TARGET)
    run = RemoteRun.of("run-1", TARGET)
    assert launcher.state(run) == Absent()
    assert launcher.submit(sent) == launcher.submit(sent) == run
    ((*words, _),) = calls(program, "launch")
    assert words == ["jobs", "launch", "--name", "run-1", "--yes", "--detach-run"]
    assert gzip.decompress((program / "input" / "task.json.gz").read_bytes()) == sent.bundle
    assert (program / "input" / wheel.name).read_bytes() == b"wheel"
    assert launcher.state(run) == Running("AWS (us-east-1)")
    result = Result(
        "run-1", DIGEST, "0.1.0", {"host": "x"}, error={"kind": "missing", "message": "no engine"}
    )
    before = "\x1b[36m(run-1, pid=3127)\x1b[0m "
    (program / "log").write_text(
        "".join(f"{before}{line}\n" for line in ("importer-step one", *result.to_lines()))
    )
    assert launcher.logs(run).startswith("importer-step one\n")
    assert read(launcher.fetch(run), "run-1", DIGEST, run.where) == result
    with pytest.raises(LauncherError):
        launcher.remove(run)
    launcher.cancel(run)
    assert calls(program, "cancel") == [["jobs", "cancel", "7", "--yes"]]
    ended = {"job_id": 7, "job_name": "run-1", "status": "CANCELLED"}
    (program / "queue").write_text(json.dumps([ended], indent=2))
    launcher.remove(run)
    assert launcher.state(run) == Cancelled()


def test_a_launch_that_is_refused_and_a_program_that_is_missing(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = PROGRAM.replace(
        'if words[1] == "launch":', 'if words[1] == "launch":\n    sys.exit("No cloud access")'
    )
    (program / "sky").write_text(refusing)
    with pytest.raises(LauncherError) as caught:
        launchers.get(TARGET).submit(TASK)
    assert (caught.value.kind, caught.value.details["says"]) == ("cluster-refused", "No cloud access")
    (program / "sky").write_text("#!/bin/sh\necho 'API server is down' >&2\nexit 1\n")
    with pytest.raises(LauncherError) as caught:
        launchers.get(TARGET).submit(TASK)
    assert caught.value.kind == "cluster-unreachable"
    (program / "sky").write_text("#!/bin/sh\necho 'no queue here'\n")  # nothing is launched twice for it
    with pytest.raises(LauncherError) as caught:
        launchers.get(TARGET).submit(TASK)
    assert caught.value.kind == "cluster-answer"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LauncherError) as caught:
        launchers.get(TARGET).submit(TASK)
    assert caught.value.kind == "launcher-missing"


LOADER = """
import json, sys
import sky
open("task.yaml", "w").write(json.load(sys.stdin))
task = sky.Task.from_yaml("task.yaml")
(one,) = task.resources
print(json.dumps([task.name, task.file_mounts, one.infra.to_str(), one.accelerators, one.cpus, one.memory]))
"""


@pytest.mark.slow
@pytest.mark.nightly
def test_skypilot_loads_the_task_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "input").mkdir()
    told = yaml.safe_dump(task_data(TASK, TARGET, tmp_path / "input"))
    found = answer(environment("skypilot", "skypilot==0.14.1"), LOADER, told, tmp_path)
    mounts = {"/tmp/importer-input": str(tmp_path / "input")}
    assert found == ["run-1", mounts, "kubernetes", {"H100": 2}, "4+", "8+"]
