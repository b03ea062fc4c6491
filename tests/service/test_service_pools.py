"""Validations on pools: who may use which, and one run for a job whatever is killed, over real OpenSSH."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from importer.demo import MODEL
from importer.engines.install import Installed
from importer.errors import ImporterError
from importer.service.domain.grants import Caller
from importer.service.domain.validations import usable
from importer.service.settings import Settings
from importer.storage import jobs
from tests.commandline import Desk, desk
from tests.far_machine import FarMachine, far_machine
from tests.hubserver import Repo
from tests.killer.check import wrong
from tests.publishing import gallery_of
from tests.serving import Service, problem, running

__all__ = ["desk"]
ALONE = ("--no-validate",)  # of its own it validates nothing
SLEEPS = '#!/bin/sh\ncase "$*" in *run-task*) echo $$ >> {begun}; sleep 600;; esac\nexec {python} "$@"\n'


class Far:
    """A service, and a machine that is its pool."""

    def __init__(self, service: Service, machine: FarMachine, words: tuple[str, ...]) -> None:
        self.service, self.machine, self._words, self._names = service, machine, words, 0

    def imported(self) -> str:
        """The name of a new document of the demonstration model, without its validation."""
        self._names += 1
        name = f"model{self._names}"
        self.service.hub.repos[f"acme/{name}"] = Repo(MODEL)
        assert self.service.imported(f"acme/{name}", backend="mlx")["state"] == "succeeded"
        return name

    def asked(self, name: str, **said: Any) -> str:
        answer = self.service.client.post(f"/v1/configs/{name}/validate", json={"on": "far", **said})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def again(self, at: str = "") -> None:
        """Another server in the place of the one there is; it dies ``at`` that point."""
        if self.service.processes[-1].poll() is None:
            self.service.kill()
        by = {"by": "tests.killer.victim", "env": {"KILL_AT": at}} if at else {}
        self.service.start(*self._words, **by)  # type: ignore[arg-type]

    def clean(self) -> bool:
        """Whether nothing is left, at the far end and in the database."""
        with gallery_of(self.service) as gallery, gallery.database.reading() as connection:
            return not jobs.all_remains(connection) and not self.machine.left


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory, mlx_engine: Installed) -> Iterator[Far]:
    del mlx_engine
    folder = tmp_path_factory.mktemp("pools")
    with far_machine(folder / "machine") as machine:
        words = (*ALONE, "--pool", f"far={machine.target}", "--pool", f"kept:admin={machine.target}")
        with running(folder, *words, engines=True) as service:
            machine.prepare({name: service.env[name] for name in ("HF_ENDPOINT", "HF_HOME")})
            yield Far(service, machine, words)


@pytest.mark.slow
@pytest.mark.engine
def test_a_validation_goes_on_with_the_same_run_after_a_kill(far: Far) -> None:
    name, before = far.imported(), far.machine.begun
    job = far.asked(name)
    far.service.wait(lambda: far.machine.begun == before + 1)
    far.again()
    ended = far.service.ended(job)
    assert (ended["state"], ended["error"]) == ("succeeded", None)
    assert (ended["device"], ended["result"]["passed"]) == ("pool:far", True)
    run = far.service.client.get(f"/v1/configs/{name}/receipt").json()["validation"]
    assert (run["remote"]["launcher"], run["remote"]["run"]) == ("ssh", f"importer-{job}-1")
    assert "python" not in run["remote"]["where"]  # options stay with the operator
    far.service.wait(far.clean)
    assert not wrong(far.service, ended)
    assert far.machine.begun == before + 1


POINTS = (
    "weights kept", "run begun", "run submitted", "run done", "run kept", "succeeded written", "store kept",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.nightly
@pytest.mark.parametrize("at", POINTS)
def test_a_kill_anywhere_loses_nothing_and_runs_nothing_twice(far: Far, at: str) -> None:
    name, before = far.imported(), far.machine.begun
    far.again(at)
    job = far.asked(name)
    victim = far.service.processes[-1]
    far.service.wait(lambda: victim.poll() is not None)
    assert victim.returncode == -9, far.service.log()
    far.again()
    ended = far.service.ended(job)
    assert (ended["state"], ended["error"]) == ("succeeded", None)
    far.service.wait(far.clean)
    assert not wrong(far.service, ended)
    assert far.machine.begun == before + 1


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize("killed", [False, True])
def test_a_cancelled_job_ends_its_run_also_after_a_kill(far: Far, killed: bool) -> None:
    name, before = far.imported(), far.machine.begun
    real = far.machine.python.read_text()
    far.machine.python.write_text(SLEEPS.format(begun=far.machine.root / "begun", python=real.split()[-2]))
    try:
        if killed:
            far.again("cancelled")  # the cancel is committed, the run goes on
        job = far.asked(name)
        far.service.wait(lambda: far.machine.begun == before + 1)
        if killed:
            victim = far.service.processes[-1]
            with pytest.raises(Exception, match="disconnected"):
                far.service.client.post(f"/v1/jobs/{job}/cancel")
            far.service.wait(lambda: victim.poll() is not None)
            far.again()
        else:
            assert far.service.client.post(f"/v1/jobs/{job}/cancel").status_code == 200
        assert far.service.ended(job)["state"] == "cancelled"
        far.service.wait(far.clean)
        assert far.machine.begun == before + 1
    finally:
        far.machine.python.write_text(real)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server with pools that nothing is ever sent to."""
    words = (
        "--no-validate", "--pool-runs", "0", "--pool", "near=ssh:localhost", "--pool",
        "own:admin=ssh:localhost",
    )  # fmt: skip
    with running(tmp_path_factory.mktemp("small"), *words) as one:
        assert one.imported("acme/base")["state"] == "succeeded"
        yield one


def keyed(service: Service, scope: str) -> dict[str, str]:
    answer = service.client.post("/v1/keys", json={"name": f"of-{scope}", "scopes": [scope]})
    return {"Authorization": f"Bearer {answer.json()['key']}"}


@pytest.mark.slow
def test_a_request_names_a_pool_and_no_address(small: Service) -> None:
    """Addresses come from the settings alone; a pool with a scope needs it."""
    path = "/v1/configs/base/validate"
    for on in ("ssh:localhost", "ray://10.0.0.1:8265", "k8s:a/b", "far", "near?python=/tmp/x", "../near"):
        told = problem(small.client.post(path, json={"on": on}), 422, "unknown-pool")
        assert told["errors"][0]["pointer"] == "/on"
        assert told["hint"].startswith("Pools: near, own.")
    ann = keyed(small, "import")
    problem(small.client.post(path, json={"on": "own"}, headers=ann), 403, "wrong-scope")
    first = small.client.post(path, json={"on": "near"}, headers=ann)
    assert (first.status_code, first.json()["device"]) == (202, "pool:near")
    assert small.client.post(path, json={"on": "near"}, headers=ann).json()["merged"]
    other = small.client.post(path, json={"on": "own"})
    assert other.json()["id"] != first.json()["id"]
    for job in (first, other):
        assert small.client.post(f"/v1/jobs/{job.json()['id']}/cancel").status_code == 200
    refused = small.client.post(f"/v1/jobs/{other.json()['id']}/retry", headers=ann)
    problem(refused, 403, "wrong-scope")  # a retry grants no more than a request
    again = small.client.post(f"/v1/jobs/{first.json()['id']}/retry")
    assert (again.status_code, again.json()["device"]) == (202, "pool:near")


def test_any_target_is_for_administrators_where_the_operator_allows_it() -> None:
    ann, ivo = Caller("ann", frozenset({"admin"})), Caller("ivo", frozenset({"approve"}))
    closed = Settings(pool=["near=ssh:localhost"])
    opened = replace(closed, any_target=True)
    assert usable(opened, "ssh:box", ann) == "ssh:box"
    for settings, who, on, kind in (
        (closed, ann, "ssh:box", "unknown-pool"),
        (opened, ivo, "ssh:box", "wrong-scope"),
        (opened, ivo, "nothing", "wrong-scope"),
        (opened, ann, "nothing", "bad-target"),
    ):
        with pytest.raises(ImporterError) as told:
            usable(settings, on, who)
        assert told.value.kind == kind


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("far", "NAME=TARGET"), ("far=nowhere", "schemes"), ("far:root=ssh:box", "no scope"),
        ("far=ssh:box?shell=x", "no option"), ("Far=ssh:box", "NAME=TARGET"),
    ],
)  # fmt: skip
def test_a_pool_that_is_none_is_told_before_the_server_starts(desk: Desk, value: str, says: str) -> None:
    ran = desk("serve", "--port", "0", "--pool", value)
    assert (ran.code, says in ran.err) == (7, True), ran
