"""Runs on another machine over real OpenSSH: followed, cancelled, fetched, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from importer.cli.main import run
from importer.errors import LauncherError
from importer.launchers import get
from importer.launchers.base import (
    Absent,
    Cancelled,
    Failed,
    FailureKind,
    Lost,
    RemoteRun,
    RemoteTask,
    Running,
    parse_target,
)
from importer.launchers.bundle import Result, last_step
from importer.launchers.follow import end, follow
from tests.far_machine import FarMachine, far_machine
from tests.waiting import PATIENCE, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ssh")]
DIGEST = f"sha256:{'a' * 64}"
SLEEPS = '#!/bin/sh\ncase "$*" in *run-task*) echo $$ >> {begun}; sleep 600;; *) exec {python} "$@";; esac\n'


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarMachine]:
    with far_machine(tmp_path_factory.mktemp("far") / "machine") as one:
        yield one


def task(name: str, bundle: bytes = b"{}") -> RemoteTask:
    return RemoteTask(f"importer-{name}", bundle, DIGEST, "mlx")


def sleeping(machine: FarMachine) -> None:
    machine.python.write_text(SLEEPS.format(begun=machine.root / "begun", python=sys.executable))


def test_a_submission_is_repeated_without_a_second_run_and_a_cancel_ends_the_group(
    machine: FarMachine,
) -> None:
    sleeping(machine)
    launcher, before = get(parse_target(machine.target)), machine.begun
    run = launcher.submit(task("once"))
    assert wait_until(lambda: machine.begun == before + 1)
    pid = int((machine.folder / run.id / "pid").read_text().split()[0])
    for _ in range(3):
        assert launcher.submit(task("once")) == run
    assert isinstance(launcher.state(run), Running)
    with pytest.raises(LauncherError) as told:
        launcher.remove(run)  # it still runs
    assert told.value.kind == "cluster-refused"
    end(launcher, run)
    assert wait_until(lambda: not _group(pid))
    assert isinstance(launcher.state(run), Absent)
    assert (machine.begun, machine.left) == (before + 1, [])


def test_a_run_with_its_exit_status_can_be_removed_before_its_process_is_gone(machine: FarMachine) -> None:
    sleeping(machine)
    launcher, before = get(parse_target(machine.target)), machine.begun
    run = launcher.submit(task("late"))
    assert wait_until(lambda: machine.begun == before + 1)
    folder = machine.folder / run.id
    pid = int((folder / "pid").read_text().split()[0])
    try:
        (folder / "exit").write_text("0\n")
        launcher.remove(run)
        assert not machine.left
    finally:
        os.killpg(pid, signal.SIGKILL)


def _group(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.nightly
def test_a_cancelled_run_is_told_and_a_killed_one_is_lost(machine: FarMachine) -> None:
    sleeping(machine)
    launcher = get(parse_target(machine.target))
    run = launcher.submit(task("cancelled"))
    assert wait_until(lambda: isinstance(launcher.state(run), Running))
    launcher.cancel(run)
    assert isinstance(launcher.state(run), Cancelled)
    launcher.submit(task("cancelled"))
    assert isinstance(launcher.state(run), Cancelled)  # a repeated submission wakes nothing
    end(launcher, run)
    lost = launcher.submit(task("lost"))
    assert wait_until((machine.folder / lost.id / "pid").exists)
    os.killpg(int((machine.folder / lost.id / "pid").read_text().split()[0]), signal.SIGKILL)
    assert wait_until(lambda: isinstance(launcher.state(lost), Lost))
    with pytest.raises(LauncherError) as told:
        follow(launcher, task("lost"), lambda _: None)
    assert told.value.kind == "node-lost"
    end(launcher, lost)
    assert not machine.left


def test_an_output_that_comes_after_the_end_is_waited_for(machine: FarMachine) -> None:
    """The last line is written by a process that the task left behind, after its exit status."""
    lines = [*Result("importer-late", DIGEST, "0.1.0", {"host": "h"}, {"passed": True}).to_lines()]
    (machine.root / "says").write_text("\n".join(lines))
    says = f"*run-task*) (sleep 1; cat {machine.root}/says) & ;; *) exec {sys.executable}"
    machine.python.write_text(f'#!/bin/sh\ncase "$*" in {says} "$@";; esac\n')
    launcher, target = get(parse_target(machine.target)), parse_target(machine.target)
    try:
        assert follow(launcher, task("late"), lambda _: None).report == {"passed": True}
    finally:
        end(launcher, RemoteRun.of("importer-late", target))


def test_a_python_that_is_not_there_is_told(machine: FarMachine) -> None:
    target = parse_target(machine.target.replace(str(machine.python), f"{machine.root}/nothing"))
    launcher = get(target)
    run = launcher.submit(task("nothing"))
    assert wait_until(lambda: isinstance(launcher.state(run), Failed))
    state = launcher.state(run)
    assert isinstance(state, Failed)
    assert (state.kind, "nothing" in state.says) == (FailureKind.ENVIRONMENT, True)
    end(launcher, run)


@pytest.mark.nightly
def test_a_connection_that_is_lost_is_followed_again(machine: FarMachine) -> None:
    sleeping(machine)
    launcher = get(parse_target(machine.target))
    run = launcher.submit(task("away"))
    assert wait_until(lambda: isinstance(launcher.state(run), Running))
    machine.stop()
    with pytest.raises(LauncherError) as told:
        launcher.state(run)
    assert told.value.kind == "cluster-unreachable"
    machine.start()
    assert isinstance(launcher.state(run), Running)
    end(launcher, run)


def test_a_host_with_another_key_is_not_spoken_to(machine: FarMachine) -> None:
    """Host keys are checked: what answers under another key gets no task."""
    before = machine.begun
    machine.trust((machine.root / "user.pub").read_text())
    try:
        with pytest.raises(LauncherError) as told:
            get(parse_target(machine.target)).submit(task("other"))
    finally:
        machine.trust((machine.root / "host.pub").read_text())
    assert (told.value.kind, machine.begun, machine.left) == ("cluster-unreachable", before, [])


def command(*words: str, home: Path) -> subprocess.Popen[str]:
    env = {**os.environ, "COLUMNS": "120"}
    return subprocess.Popen(
        [sys.executable, "-m", "importer", *words], env=env, cwd=home, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def done(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, errors = process.communicate(timeout=PATIENCE)
    return process.returncode, output + errors


@pytest.mark.nightly
def test_ctrl_c_leaves_the_run_and_a_word_ends_it(machine: FarMachine, tmp_path: Path) -> None:
    sleeping(machine)
    document = tmp_path / "x.yaml"
    document.write_text("name: x\nbackend: mlx\nparameters:\n  model: acme/x\n")
    words, before = ("validate", str(document), "--on", machine.target), machine.begun
    follower = command(*words, home=tmp_path)
    assert wait_until(lambda: machine.begun == before + 1 and _following(follower.pid))
    follower.send_signal(signal.SIGINT)
    code, said = done(follower)
    assert (code, "No longer followed: x goes on at ssh:" in said, "--on-cancel" in said) == (130, True, True)
    (run,) = machine.left
    code, said = done(command(*words, "--on-cancel", home=tmp_path))
    assert (code, f"ended {run}" in said, machine.left) == (0, True, []), said
    code, said = done(command(*words, "--on-cancel", home=tmp_path))
    assert (code, "no run at ssh:" in said) == (0, True), said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--on", "box"), "it has no scheme"),
        (("--on", "http:box"), "'http' is no scheme"),
        (("--on", "ssh:box", "--port", "1"), "--port: is not valid with --on"),
        (("--on", "ssh:box", "--against", "http://box"), "--against: is not valid with --on"),
        (("--on-cancel",), "--on-cancel: is valid with --on only"),
        (("--on", "slurm:gpu?cpus=x"), "'x' is no value of the option cpus"),
    ],
)
def test_a_target_that_is_none_is_one_sentence(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["validate", "x", *words]) == 2
    assert says in capsys.readouterr().err


def _following(pid: int) -> bool:
    """Whether a process has a child that speaks to the machine: its handlers are in place."""
    try:
        return any(one.name() == "ssh" for one in psutil.Process(pid).children())
    except psutil.Error:
        return False


def test_no_part_of_a_result_is_lost_in_a_log() -> None:
    assert last_step("x\nimporter-step a\nimporter-step b\n") == "b"
