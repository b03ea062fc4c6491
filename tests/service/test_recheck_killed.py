"""A server that is killed in a recheck: there is one job, and each document is compared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import impatient
from tests.commandline import BASE
from tests.hubserver import Repo
from tests.impatient import ENDS, waits
from tests.rechecking import WARM
from tests.serving import Service, running

pytestmark = pytest.mark.slow
WORDS = ("--no-validate",)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("recheck-killed")
    with running(folder, *WORDS, env=waits(ENDS), by=impatient.NAME) as one:
        yield one


def moved(service: Service, name: str) -> None:
    """A document whose repository has another commit."""
    repo = service.hub.repos[f"acme/{name}"] = Repo(BASE)
    assert service.imported(f"acme/{name}", name=name)["state"] == "succeeded"
    repo.commit(WARM)


def killed(service: Service, at: str) -> str:
    """Ask a server for a recheck that dies at a point, and start another one; the job."""
    service.stop()
    service.start(*WORDS, by="tests.killer.victim", env={"KILL_AT": at})
    victim = service.processes[-1]
    job = str(service.client.post("/v1/recheck").json()["id"])
    assert service.wait(victim.poll) == -9
    service.start(*WORDS, by=impatient.NAME)
    return job


POINTS = ["document compared", pytest.param("comparison written", marks=pytest.mark.nightly)]


@pytest.mark.parametrize("at", POINTS)
def test_each_document_is_compared_once(service: Service, at: str) -> None:
    name = at.replace(" ", "-")
    moved(service, name)
    job = service.ended(killed(service, at))
    assert (job["state"], job["kind"], "waiting" in job["result"]["outcomes"]) == (
        "succeeded",
        "recheck",
        False,
    )
    rows = service.client.get(f"/v1/recheck/{job['id']}").json()["items"]
    assert [one["outcome"] for one in rows if one["name"] == name] == ["differs"]
