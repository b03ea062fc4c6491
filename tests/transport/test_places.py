"""Validations over real OpenSSH, Slurm, Ray and a ``kubectl`` of the tests; then the client is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from importer.demo import MODEL
from importer.engines.install import Installed
from tests import consumers, kubectl, slurm_cluster
from tests.far_machine import FarPython, far_machine
from tests.ray_cluster import ray_cluster
from tests.tiers import one_of_each
from tests.waiting import PATIENCE, gone, wait_until

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.xdist_group("elsewhere")]


class Place(NamedTuple):
    """A place with the text of ``--on``, the Python there, and variables of the client."""

    target: str
    python: FarPython
    env: dict[str, str]


@contextmanager
def ssh(root: Path) -> Iterator[Place]:
    with far_machine(root) as machine:
        yield Place(machine.target, machine.python, {})


@contextmanager
def slurm(root: Path) -> Iterator[Place]:
    python = FarPython(root, {})
    with slurm_cluster.cluster() as config:
        yield Place(f"slurm:debug -- {python.words}", python, {"SLURM_CONF": str(config)})


@contextmanager
def ray(root: Path) -> Iterator[Place]:
    python = FarPython(root, {})
    with ray_cluster(root) as cluster:
        path = f"{cluster.folder}:{os.environ['PATH']}"
        yield Place(f"ray:{cluster.address} num_cpus=1 -- {python.words}", python, {"PATH": path})


@contextmanager
def k8s(root: Path) -> Iterator[Place]:
    python = FarPython(root, {})
    kubectl.put(root / "bin", consumers.kubectl())
    target = f"k8s:registry.example/importer:1 --namespace=ml -- {python.words}"
    yield Place(target, python, {"PATH": f"{root}/bin:{os.environ['PATH']}"})


PLACES: dict[str, Callable[[Path], AbstractContextManager[Place]]] = {
    "ssh": ssh, "slurm": slurm, "k8s": k8s, "ray": ray,
}  # fmt: skip


@pytest.fixture(scope="module", params=PLACES)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, mlx_engine: Installed
) -> Iterator[Place]:
    del mlx_engine
    with PLACES[request.param](tmp_path_factory.mktemp(request.param)) as one:
        yield one


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    words = ("--name", "demo", "--backend", "mlx", "--dir", "d", "--yes", "--no-validate")
    code, said = done(command(folder, {}, str(MODEL), *words))
    assert code == 0, said
    return folder


def command(folder: Path, env: dict[str, str], *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "importer", *words], env={**os.environ, **env}, cwd=folder, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def done(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, errors = process.communicate(timeout=PATIENCE)
    return process.returncode, output + errors


def validating(place: Place, desk: Path, *words: str) -> subprocess.Popen[str]:
    return command(desk, place.env, "validate", "demo", "--dir", "d", "--on", place.target, *words)


def test_the_demo_is_validated(place: Place, desk: Path) -> None:
    """By every probe over SSH; the other places carry the same streams, so two probes will do."""
    before, name = len(place.python.begun), place.target.split()[0]
    whole = name.startswith("ssh")
    code, said = done(validating(place, desk, *([] if whole else ["--probe", "plain-chat", "tool-call"])))
    assert (code, f"on {name}" in said) == (0, True), said
    receipt = json.loads((desk / "d" / "demo.receipt.json").read_text())
    run = receipt["validation" if whole else "partial"]
    assert (run["passed"], run["digest"], run["remote"]["where"]) == (True, receipt["digest"], name)
    assert "-P" not in json.dumps(run["remote"])  # other words may hold secrets
    assert len(place.python.begun) == before + 1
    wait_until(lambda: not place.python.family())


@pytest.mark.parametrize("number", one_of_each([signal.SIGKILL, signal.SIGINT]))
def test_a_client_that_ends_leaves_nothing(place: Place, desk: Path, number: signal.Signals) -> None:
    """Neither the engine, which has begun, nor the program that carries the streams."""
    before = len(place.python.begun)
    client = validating(place, desk)
    wait_until(lambda: client.poll() is not None or len(place.python.begun) > before)
    wait_until(lambda: client.poll() is not None or len(place.python.family()) > 2)
    near = psutil.Process(client.pid).children(recursive=True)
    far = place.python.family()
    client.send_signal(number)
    code, said = done(client)
    assert code == (-9 if number == signal.SIGKILL else 130), said
    assert near
    wait_until(
        lambda: all(gone(one.pid) for one in [*near, *far]), lambda: [one for one in far if one.is_running()]
    )
