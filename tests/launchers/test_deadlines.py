"""Clusters that never come to an end: one limit holds over the whole of each wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from importer import launcher as processes
from importer import launchers
from importer.errors import LauncherError
from importer.launcher import Purpose
from importer.launchers.base import Launcher, RemoteTask, parse_target
from importer.launchers.follow import HURRY, LATE, follow
from tests.launchers.test_http import answering, job
from tests.launchers.test_odd_answers import command
from tests.odd_answers import DRIPS, RUN, dripping
from tests.waiting import FreeTime

WAIT = 2.0  # seconds for the start
WITHIN = 1.2  # times that, for all of it
SLACK = 1.5  # seconds with a free processor
TASK = RemoteTask(RUN, b"{}", f"sha256:{'a' * 64}", "vllm")


def waited(launcher: Launcher, kind: str) -> None:
    """Follow with a wait for the start; it ends in time and with this kind."""
    clock = FreeTime()
    with pytest.raises(LauncherError) as told:
        follow(launcher, TASK, lambda _: None, queue_seconds=WAIT, patience=600)
    assert (told.value.kind, told.value.exit_code) == (kind, 8)
    assert clock.seconds < WITHIN * WAIT + SLACK


@pytest.mark.slow
@pytest.mark.parametrize("name", DRIPS)
def test_a_ray_that_drips_is_not_waited_for(name: str) -> None:
    with dripping(DRIPS[name], again=name == "interim") as port:
        waited(launchers.get(parse_target(f"ray://127.0.0.1:{port}")), "cluster-unreachable")


@pytest.mark.slow
def test_a_queue_without_an_end_is_left_in_time() -> None:
    """It answers at once, and the run never starts."""
    with answering({f"/api/jobs/{RUN}": job(status="PENDING", message="no card")}) as place:
        waited(launchers.get(parse_target(place)), "queued-too-long")


@pytest.mark.slow
def test_a_run_without_an_end_is_left_in_time() -> None:
    answers = {f"/api/jobs/{RUN}": job(status="RUNNING"), "/logs": (200, b'{"logs": ""}')}
    clock, task = FreeTime(), RemoteTask(RUN, b"{}", TASK.digest, "vllm", seconds=2)
    with answering(answers) as place, pytest.raises(LauncherError) as told:
        follow(launchers.get(parse_target(place)), task, lambda _: None, queue_seconds=600)
    assert told.value.kind == "remote-failed"
    assert clock.seconds < WITHIN * task.seconds + SLACK


@pytest.fixture
def endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs that print one byte after another, for ever."""
    for tool in ("kubectl", "ssh", "squeue", "sbatch"):
        (tmp_path / tool).write_text("#!/bin/sh\nwhile :; do printf x; sleep 0.05; done\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("target", ["k8s:tests/ml?image=x", "ssh:box", "slurm:gpu", "slurm:gpu?host=box"])
def test_a_program_that_drips_is_not_waited_for(endless: Path, target: str) -> None:
    del endless
    waited(launchers.get(parse_target(target)), "cluster-unreachable")


def test_a_flood_at_the_deadline_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that are always there leave no pause in which a select would run out."""
    monkeypatch.setattr(processes, "MOST_OUTPUT", 2**40)
    clock = FreeTime()
    with pytest.raises(TimeoutError):
        processes.run(("yes",), Purpose.REMOTE, seconds=0.2)
    assert clock.seconds < 0.2 + SLACK


@pytest.mark.slow
def test_the_command_holds_its_limit(tmp_path: Path) -> None:
    """The answer never ends; that the command does is its limit."""
    with dripping(DRIPS["body"]) as port:
        done = command(tmp_path, f"ray://127.0.0.1:{port}", "--on-timeout", "2")
    assert done.returncode == 8, done.stderr


def test_what_may_come_late_is_less_than_what_is_promised() -> None:
    assert 1 + 2 * LATE <= WITHIN
    assert HURRY < 10
