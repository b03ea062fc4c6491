"""A server that is killed in its schedule or a recheck: there is one job, and each document is compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select, update

from importer.storage import tables
from tests import impatient
from tests.commandline import BASE
from tests.hubserver import Repo
from tests.impatient import ENDS, waits
from tests.publishing import gallery_of
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


def killed(service: Service, at: str) -> None:
    """Start a server that dies at a point."""
    service.wait(lambda: _scheduled(service))  # the first look makes the schedule
    service.stop()
    _set(service, tables.schedules, due=0.0)
    service.start(*WORDS, by="tests.killer.victim", env={"KILL_AT": at}, ready=False)
    victim = service.processes[-1]
    assert service.wait(victim.poll) == -9
    service.start(*WORDS, by=impatient.NAME)


def _scheduled(service: Service) -> bool:
    with gallery_of(service) as gallery, gallery.database.reading() as connection:
        return connection.execute(select(tables.schedules)).first() is not None


def _set(service: Service, table: Any, *where: Any, **values: Any) -> None:
    with gallery_of(service) as gallery, gallery.database.writing() as connection:
        connection.execute(update(table).where(*where).values(**values))


def by_schedule(service: Service) -> list[dict[str, Any]]:
    items = service.client.get("/v1/jobs", params={"kind": "recheck"}).json()["items"]
    return [one for one in items if one["by"] == "schedule"]


nightly = pytest.mark.nightly
POINTS = [
    "document compared",
    *(pytest.param(at, marks=nightly) for at in ("schedule written", "comparison written")),
]  # fmt: skip


@pytest.mark.parametrize("at", POINTS)
def test_what_was_due_is_done_once(service: Service, at: str) -> None:
    name = at.replace(" ", "-")
    moved(service, name)
    before = len(by_schedule(service))
    killed(service, at)
    service.wait(lambda: len(by_schedule(service)) > before)
    job = service.ended(by_schedule(service)[0]["id"])
    assert (job["state"], len(by_schedule(service))) == ("succeeded", before + 1)
    assert "waiting" not in job["result"]["outcomes"]
    rows = [service.client.get(f"/v1/recheck/{job['id']}").json()["items"] for job in by_schedule(service)]
    assert [one["outcome"] for one in rows[0] if one["name"] == name] == ["differs"]
