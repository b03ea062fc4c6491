"""Runs on a real Ray cluster: kills in the middle, a node that is lost, a queue without an end, refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from importer.demo import MODEL
from importer.engines.install import Installed
from importer.errors import LauncherError
from importer.launchers import get
from importer.launchers.base import Absent, RemoteRun, RemoteTask, Resources, Running, parse_target
from importer.launchers.follow import follow
from tests.launchers.test_ssh import command, done
from tests.ray_cluster import RayCluster, ray_cluster
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.engine, pytest.mark.slow, pytest.mark.xdist_group("ray"),
]  # fmt: skip
DIGEST = f"sha256:{'a' * 64}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, mlx_engine: Installed) -> Iterator[RayCluster]:
    del mlx_engine
    with ray_cluster(tmp_path_factory.mktemp("ray")) as one:
        yield one


def task(name: str, resources: Resources = Resources()) -> RemoteTask:  # noqa: B008 - frozen
    return RemoteTask(f"importer-{name}", b"{}", DIGEST, "mlx", resources)


def imported(folder: Path) -> None:
    options = ("--name", "demo", "--backend", "mlx", "--dir", "d", "--yes", "--no-validate")
    code, said = done(command(str(MODEL), *options, home=folder))
    assert code == 0, said


def test_the_demo_is_validated_once_though_its_follower_is_killed(
    cluster: RayCluster, tmp_path: Path
) -> None:
    imported(tmp_path)
    words = ("validate", "demo", "--dir", "d", "--on", cluster.target)
    before = cluster.begun
    killed = command(*words, home=tmp_path)
    assert wait_until(lambda: cluster.begun == before + 1 or killed.poll() is not None)
    killed.kill()
    assert "refused" not in done(killed)[1]
    code, said = done(command(*words, home=tmp_path))
    assert (code, "validated on ray://" in said) == (0, True), said
    receipt: dict[str, Any] = json.loads((tmp_path / "d" / "demo.receipt.json").read_text())
    run = receipt["validation"]
    assert (run["passed"], run["digest"], run["remote"]["ray"]) == (True, receipt["digest"], "2.60.0")
    assert cluster.begun == before + 1
    target = parse_target(cluster.target)
    assert get(target).state(RemoteRun.of(run["remote"]["run"], target)) == Absent()  # nothing is left


@pytest.mark.nightly
def test_a_queue_without_an_end_has_one(cluster: RayCluster) -> None:
    """No node has a card: the state says what it waits for, and the end of the wait cancels it.

    Ray drops a job that waits when it could start, or a quarter of an hour after its submission.
    """
    target, said, before = parse_target(cluster.target), list[str](), cluster.begun
    launcher, wants = get(target), task("cards", Resources(gpus=4))
    with pytest.raises(LauncherError) as told:
        follow(launcher, wants, said.append, queue_seconds=8)
    assert told.value.kind == "queued-too-long"
    assert any("1 CPU, 4 GPUs" in text for text in said)
    assert (told.value.details["waits_for"], cluster.begun) != ("", before + 1)


@pytest.mark.nightly
def test_a_node_that_is_lost_is_told(cluster: RayCluster, tmp_path: Path) -> None:
    """A task that sleeps runs on a node of its own, which is killed with all of its processes."""
    cluster.join("lost", "--resources", '{"lost": 1}')
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nsleep 600\n")
    slow.chmod(0o700)
    for name in ("worker-1", "worker-2"):
        cluster.lose(name)
    target = parse_target(cluster.target.partition("?")[0] + f"?python={slow}")
    launcher, wants = get(target), task("lost")
    run = launcher.submit(wants)
    assert wait_until(lambda: isinstance(launcher.state(run), Running))
    cluster.lose("lost")
    with pytest.raises(LauncherError) as told:
        follow(launcher, wants, lambda _: None)
    assert told.value.kind == "node-lost"
    launcher.remove(run)
    cluster.join("worker-1")
