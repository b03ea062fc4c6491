"""Validations on pools: who may use which, and nothing runs twice whatever is killed, over real OpenSSH."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from importer.demo import MODEL
from importer.engines.install import Installed
from importer.errors import ImporterError
from importer.service.domain.grants import Caller
from importer.service.domain.validations import usable
from importer.service.settings import Settings
from tests.commandline import Desk, desk
from tests.far_machine import FarMachine, far_machine
from tests.hubserver import Repo
from tests.killer.check import wrong
from tests.serving import Service, problem, running
from tests.waiting import gone

__all__ = ["desk"]
ALONE = ("--no-validate",)  # of its own it validates nothing


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

    def begun(self, before: int) -> None:
        """Wait until the newest run has started its engine."""
        python = self.machine.python
        self.service.wait(lambda: len(python.begun) > before and len(python.family()) > 2)

    def clean(self) -> bool:
        """Whether nothing of any run is left at the far end."""
        return all(gone(pid) for pid in self.machine.python.begun)


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory, mlx_engine: Installed) -> Iterator[Far]:
    del mlx_engine
    folder = tmp_path_factory.mktemp("pools")
    with far_machine(folder / "machine") as machine:
        words = (*ALONE, "--pool", f"far={machine.target}", "--pool", f"kept:approve={machine.target}")
        with running(folder, *words, engines=True) as service:
            machine.python.prepare({name: service.env[name] for name in ("HF_ENDPOINT", "HF_HOME")})
            yield Far(service, machine, words)


@pytest.mark.slow
@pytest.mark.engine
def test_a_validation_runs_again_after_a_kill(far: Far) -> None:
    """The run of the killed process has ended by itself: its stdin has closed."""
    name, before = far.imported(), len(far.machine.python.begun)
    job = far.asked(name)
    far.begun(before)
    old = far.machine.python.family()
    far.again()
    far.service.wait(lambda: all(gone(one.pid) for one in old))
    ended = far.service.ended(job)
    assert (ended["state"], ended["error"]) == ("succeeded", None)
    assert (ended["device"], ended["result"]["passed"]) == ("pool:far", True)
    run = far.service.client.get(f"/v1/configs/{name}/receipt").json()["validation"]
    assert run["remote"]["where"] == "pool:far"  # its command stays with the operator
    assert str(far.machine.root) not in str(run)
    far.service.wait(far.clean)
    assert not wrong(far.service, ended)
    assert len(far.machine.python.begun) == before + 2


POINTS = ("weights kept", "run begun", "run done", "run kept", "succeeded written", "store kept")


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.nightly
@pytest.mark.parametrize("at", POINTS)
def test_a_kill_anywhere_loses_nothing(far: Far, at: str) -> None:
    name, before = far.imported(), len(far.machine.python.begun)
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
    assert len(far.machine.python.begun) == before + (2 if at == "run done" else 1)


@pytest.mark.slow
@pytest.mark.engine
def test_a_cancelled_job_ends_its_run(far: Far) -> None:
    name, before = far.imported(), len(far.machine.python.begun)
    job = far.asked(name)
    far.begun(before)
    old = far.machine.python.family()
    assert far.service.client.post(f"/v1/jobs/{job}/cancel").status_code == 200
    assert far.service.ended(job)["state"] == "cancelled"
    far.service.wait(lambda: all(gone(one.pid) for one in old))
    assert len(far.machine.python.begun) == before + 1


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server with pools that nothing is ever sent to."""
    words = (
        "--no-validate", "--pool-runs", "0", "--pool", "near=ssh:localhost", "--pool",
        "own:approve=ssh:localhost",
    )  # fmt: skip
    with running(tmp_path_factory.mktemp("small"), *words) as one:
        assert one.imported("acme/base")["state"] == "succeeded"
        yield one


def keyed(service: Service, scope: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {service.made_key(f'of-{scope}', scope)['key']}"}


@pytest.mark.slow
def test_a_request_names_a_pool_and_no_address(small: Service) -> None:
    """Addresses come from the settings alone; a pool with a scope needs it."""
    path = "/v1/configs/base/validate"
    for on in ("ssh:localhost", "sh -c id", "k8s:a/b", "far", "near -- id", "../near"):
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


def test_a_pool_is_known_by_its_name_and_needs_its_scope() -> None:
    ann, ivo = Caller("ann", frozenset({"import", "approve"})), Caller("ivo", frozenset({"import"}))
    settings = Settings(pool=["near=ssh:localhost", "own:approve=ssh:localhost"])
    assert usable(settings, "own", ann) == "own"
    for who, on, kind in ((ann, "ssh:localhost", "unknown-pool"), (ivo, "own", "wrong-scope")):
        with pytest.raises(ImporterError) as told:
            usable(settings, on, who)
        assert told.value.kind == kind


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("far", "NAME=COMMAND"), ("far=moon:dark", "presets"), ("far:root=ssh:box", "no scope"),
        ("far=ssh 'box", "quotation"), ("Far=ssh:box", "NAME=COMMAND"),
    ],
)  # fmt: skip
def test_a_pool_that_is_none_is_told_before_the_server_starts(desk: Desk, value: str, says: str) -> None:
    ran = desk("serve", "--port", "0", "--pool", value)
    assert (ran.code, says in ran.err) == (7, True), ran
