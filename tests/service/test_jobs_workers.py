"""Several processes on one real PostgreSQL: who takes what, in which order, and what becomes of the dead."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from importer.engines.install import Installed
from tests.hubserver import Repo
from tests.killer.check import story, wrong
from tests.killer.kill import ALONE, DEMO
from tests.postgres import Postgres
from tests.serving import Service, running

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.xdist_group("postgres")]
GROUP = "acme/model"
DOCUMENTS = ("demo", "other")


@pytest.fixture
def service(tmp_path: Path, postgres: Postgres, mlx_engine: Installed) -> Iterator[Service]:
    """A server that leaves all jobs to workers, and the demonstration model in its gallery."""
    del mlx_engine
    repos = {"acme/demo": Repo(DEMO)}
    with running(tmp_path, *ALONE, engines=True, database=postgres.fresh(), **repos) as one:
        worker(one, "none", "--no-validate")
        for name in DOCUMENTS:
            assert one.imported("acme/demo", backend="mlx", name=name)["state"] == "succeeded"
        yield one


def worker(service: Service, device: str, *words: str) -> subprocess.Popen[bytes]:
    service.start("--device", device, *words, command="worker")
    return service.processes[-1]


def validations(service: Service) -> list[str]:
    """Jobs of two documents: equal validations would be one job."""
    return [service.client.post(f"/v1/configs/{name}/validate").json()["id"] for name in DOCUMENTS]


def job(service: Service, ident: str) -> dict[str, Any]:
    found: dict[str, Any] = service.client.get(f"/v1/jobs/{ident}").json()
    return found


def on(service: Service, device: str) -> list[str]:
    """Jobs that a device runs, as the server tells."""
    open_ones = service.client.get("/v1/jobs", params={"kind": "validation", "state": "running"}).json()
    return [j["id"] for j in open_ones["items"] if str(j["device"]).endswith(f"/{device}")]


@pytest.mark.nightly
def test_validations_survive_workers_that_die_and_workers_that_were_only_slow(service: Service) -> None:
    slow = worker(service, "a", "--imports", "0")
    worker(service, "b", "--imports", "0")
    small = worker(service, "small", "--imports", "0", "--memory", "1MiB")
    idents = validations(service)
    nobody = service.client.post("/v1/configs/demo/validate", json={"engine": "vllm-cuda"}).json()["id"]
    first = service.wait(lambda: on(service, "a"))[0]
    service.wait(lambda: any(e["data"].get("step") == "run" for e in story(service, first)))
    os.kill(slow.pid, signal.SIGSTOP)
    try:  # silent for longer than its lease: another takes its job
        service.wait(lambda: job(service, first)["attempt"] == 2)
    finally:
        os.kill(slow.pid, signal.SIGCONT)
    service.wait(lambda: job(service, first)["state"] != "queued")  # by either of them
    service.kill(slow)
    ended = [service.ended(ident) for ident in idents]
    assert {j["state"] for j in ended} == {"succeeded"}
    assert not [problem for j in ended for problem in wrong(service, j, kills=2)]
    assert sum(j["attempt"] for j in ended) in (3, 4)  # one was slow; one died, if it had work by then
    assert job(service, nobody)["state"] == "queued"
    assert small.poll() is None
    assert {str(j["device"]).rpartition("/")[2] for j in ended} == {"b"}
    times = sorted((j["device"], j["started_at"], j["ended_at"]) for j in ended if j["attempt"] == 1)
    for one, other in pairwise(times):
        assert one[0] != other[0] or one[2] <= other[1]
    service.wait(lambda: not service.engines())


def test_a_list_is_done_in_order_by_all_and_once_though_one_dies(service: Service) -> None:
    two = [worker(service, f"w{n}", "--no-validate", "--imports", "2") for n in range(2)]
    names = [f"{GROUP}{n}" for n in range(8)]
    service.hub.repos.update({name: Repo(DEMO) for name in names})
    asked = service.client.post("/v1/imports", json={"references": names, "backend": "mlx"}).json()["id"]
    service.wait(lambda: job(service, asked)["counts"].get("succeeded", 0) >= 2)
    service.kill(two[0])
    ended = service.ended(asked)
    assert ended["counts"] == {"succeeded": len(names)}
    assert not wrong(service, ended, kills=1)
    inside = service.client.get("/v1/jobs", params={"parent": asked, "limit": 200}).json()["items"]
    begun = [j["started_at"] for j in inside]
    at_once = 4  # two workers, two imports each: these begin in any order
    assert all(early <= late for early, late in zip(begun, begun[at_once:], strict=False))
