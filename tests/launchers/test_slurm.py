"""Slurm: jobs of a real controller and a real node, and the states that its programs print."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from importer import launchers
from importer.config_file.document_keys import digest
from importer.errors import LauncherError
from importer.launchers.base import (
    Absent,
    Cancelled,
    Failed,
    FailureKind,
    Launcher,
    Lost,
    Queued,
    RemoteRun,
    RemoteState,
    RemoteTask,
    Resources,
    Running,
    Succeeded,
    parse_target,
)
from importer.launchers.bundle import Bundle, read_result
from importer.launchers.slurm import job_state
from tests.exporting import VLLM
from tests.slurm_cluster import cluster
from tests.waiting import wait_until


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("PENDING|Priority|", Queued("Priority")), ("PENDING|Resources|", Queued("Resources")),
        ("PENDING|QOSMaxGRESPerUser|", Queued("QOSMaxGRESPerUser")),
        ("PENDING|BadConstraints|", Failed(FailureKind.UNSCHEDULABLE, "BadConstraints")),
        ("PENDING|PartitionTimeLimit|", Failed(FailureKind.UNSCHEDULABLE, "PartitionTimeLimit")),
        ("RUNNING|None|gpu-07", Running("gpu-07")), ("COMPLETING|None|gpu-07", Running("gpu-07")),
        ("CANCELLED|None|", Cancelled()), ("CANCELLED by 1000|0:0|gpu-07", Cancelled()),
        ("NODE_FAIL|NodeDown|gpu-07", Lost("NODE_FAIL gpu-07")),
        ("PREEMPTED|0:0|gpu-07", Lost("PREEMPTED gpu-07")),
        ("OUT_OF_MEMORY|0:125|gpu-07", Failed(FailureKind.MEMORY, "OUT_OF_MEMORY 0:125")),
        ("TIMEOUT|0:0|gpu-07", Failed(FailureKind.TIME, "TIMEOUT 0:0")),
        ("FAILED|NonZeroExitCode|gpu-07", Failed(FailureKind.COMMAND, "FAILED NonZeroExitCode")),
        ("none", Lost("Slurm knows its job no more")),
    ],
)  # fmt: skip
def test_each_state_of_a_job(line: str, state: RemoteState) -> None:
    assert job_state(line) == state


def test_a_machine_without_slurm_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sh", "mkdir"):
        (tmp_path / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(LauncherError) as caught:
        launchers.get(parse_target("slurm:gpu")).submit(task("run-1"))
    assert caught.value.kind == "launcher-missing"
    assert not (tmp_path / ".cache").exists()


def task(ident: str, **more: object) -> RemoteTask:
    """A document whose engine is on no machine: the far end's result says so."""
    found = digest(VLLM)
    text = yaml.safe_dump(VLLM, sort_keys=False)
    data = Bundle(ident, "tiny-8b", found, "vllm-cuda", text, None, None, fetch=False).to_bytes()
    return RemoteTask(ident, data, found, "vllm-cuda", **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def slurm() -> Iterator[Path]:
    with cluster() as config:
        yield config


@pytest.fixture
def home(slurm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of the jobs, on a disk that node and controller share."""
    monkeypatch.setenv("SLURM_CONF", str(slurm))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def waiting(launcher: Launcher, run: RemoteRun, *kinds: type) -> RemoteState:
    seen: list[RemoteState] = []

    def there() -> bool:
        seen.append(launcher.state(run))
        return isinstance(seen[-1], kinds)

    wait_until(there)
    return seen[-1]


@pytest.mark.slow
def test_a_job_brings_back_its_result_and_runs_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMPORTER_HOME", str(home / "importer"))
    launcher, sent = launchers.get(parse_target(f"slurm:debug?python={sys.executable}")), task("run-result")
    run = launcher.submit(sent)
    assert launcher.submit(sent) == run
    folder = home / ".cache" / "importer-runs" / run.id
    assert len((folder / "jobs").read_text().split()) == 1
    ended = waiting(launcher, run, Succeeded, Failed, Lost)
    assert ended == Succeeded(), launcher.logs(run)
    result = read_result(launcher.fetch(run), run.id, sent.digest, run.where)
    assert result.error is not None
    assert launcher.facts(run)["job"] == (folder / "jobs").read_text().strip()
    launcher.remove(run)
    assert not folder.exists()
    assert launcher.state(run) == Absent()


@pytest.mark.slow
def test_a_second_job_waits_and_both_are_cancelled(home: Path) -> None:
    """The node has one processor; the program in Python's place never ends."""
    endless = home / "endless"
    endless.write_text("#!/bin/sh\nsleep 600\n")
    endless.chmod(0o755)
    launcher = launchers.get(parse_target(f"slurm:debug?python={endless}"))
    first = launcher.submit(task("run-first"))
    assert isinstance(waiting(launcher, first, Running), Running)
    second = launcher.submit(task("run-second"))
    wait_until(lambda: launcher.state(second) == Queued("Resources"))
    with pytest.raises(LauncherError) as caught:
        launcher.remove(first)
    assert caught.value.kind == "cluster-refused"
    for run in (second, first):
        launcher.cancel(run)
        assert waiting(launcher, run, Cancelled) == Cancelled()
        assert launcher.submit(task(run.id)) == run  # it stays cancelled
        assert launcher.state(run) == Cancelled()
    wait_until(lambda: _removed(launcher, first))
    launcher.remove(second)
    assert launcher.state(first) == launcher.state(second) == Absent()


def _removed(launcher: Launcher, run: RemoteRun) -> bool:
    """Whether it could be removed; while the job is ending, that is refused."""
    with suppress(LauncherError):
        launcher.remove(run)
        return True
    return False


@pytest.mark.slow
def test_a_job_that_is_refused_leaves_nothing(home: Path) -> None:
    more = task("run-refused", resources=Resources(gpus=4))
    for text, sent in (("slurm:nowhere", task("run-refused")), ("slurm:debug", more)):
        with pytest.raises(LauncherError) as caught:
            launchers.get(parse_target(text)).submit(sent)
        assert caught.value.kind == "cluster-refused"
    assert not [*(home / ".cache" / "importer-runs").iterdir()]


@pytest.mark.slow
def test_a_job_for_which_no_node_is_large_enough_has_failed(home: Path) -> None:
    launcher = launchers.get(parse_target("slurm:debug"))
    run = launcher.submit(task("run-large", resources=Resources(cpus=64)))
    reason = Failed(FailureKind.UNSCHEDULABLE, "PartitionConfig")
    assert waiting(launcher, run, Failed) == reason
    launcher.cancel(run)
    assert waiting(launcher, run, Cancelled) == Cancelled()
