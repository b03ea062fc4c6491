"""The runner of one process: what it gives back, what it gives up, and a database that goes away."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from importer.service.domain.gallery import Gallery
from importer.service.jobs.runner import Runner
from importer.service.settings import Settings
from importer.storage import jobs, processes, queue
from importer.storage.database import Database
from importer.storage.jobs import Job
from importer.storage.schema import open_database
from tests import impatient
from tests.commandline import BASE
from tests.hubserver import HubServer, Repo
from tests.impatient import ENDS, waits
from tests.killer.check import story
from tests.postgres import Postgres
from tests.publishing import gallery_of
from tests.serving import Service, running
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
SETTINGS = Settings(validate=False, imports=1)
NOWHERE = {"reference": "no/such", "backend": "vllm"}


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """An empty gallery, whose jobs ask a Hub that has nothing."""
    monkeypatch.setenv("IMPORTER_HOME", str(tmp_path))
    url = f"sqlite:///{tmp_path / 'gallery.sqlite'}"
    with HubServer({}) as hub, closing(open_database(url)) as one:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield one


def created(database: Database) -> Job:
    with database.writing() as connection:
        return jobs.create(connection, "import", NOWHERE, "ann")


def ended(database: Database, ident: str) -> Job:
    def over() -> Job | None:
        with database.reading() as connection:
            job = jobs.get(connection, ident)
        return job if job.state in jobs.ENDED else None

    found = wait_until(over)
    assert found is not None
    return found


def row(service: Service, ident: str) -> Job:
    with gallery_of(service) as gallery, gallery.database.reading() as connection:
        return jobs.get(connection, ident)


def test_a_job_that_is_held_and_does_not_run_is_given_back(database: Database) -> None:
    job = created(database)
    runner = Runner(Gallery(database), SETTINGS)
    with database.writing() as connection:
        processes.heartbeat(connection, runner.me)
        assert queue.claim(connection, runner.me, "import") is not None
    with runner:
        found = ended(database, job.id)
    assert (found.state, found.claims, found.attempt) == ("failed", 2, 1)


def test_a_job_that_nobody_may_claim_any_more_is_given_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "MAX_CLAIMS", 0)
    job = created(database)
    with Runner(Gallery(database), SETTINGS):
        found = ended(database, job.id)
    assert (found.state, found.step) == ("failed", None)
    assert found.error is not None
    assert found.error["kind"] == "gave-up"


def test_a_process_that_ends_in_order_gives_its_jobs_back(tmp_path: Path) -> None:
    with running(tmp_path, "--no-validate", "--imports", "1", env=waits(ENDS), by=impatient.NAME) as service:
        service.hub.latency = 3
        body = {"reference": "acme/base", "backend": "vllm"}
        ident = service.client.post("/v1/imports", json=body).json()["id"]
        service.wait(lambda: row(service, ident).step == "resolve")
        held = row(service, ident)
        assert held.executor is not None
        assert service.stop() == 0
        left = row(service, ident)
        assert (left.executor, left.state, left.claims) == (None, "running", held.claims)
        service.hub.latency = 0
        service.start("--no-validate")
        ended = service.ended(ident)
        assert (ended["state"], ended["attempt"], ended["result"]["version"]) == ("succeeded", 1, 1)
        assert "Traceback" not in service.log()


def test_jobs_survive_a_database_that_drops_its_connections(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.fresh()
    name = url.rpartition("/")[2]
    repos = {f"acme/model{n}": Repo(BASE) for n in range(6)}
    with running(tmp_path, "--no-validate", "--imports", "2", database=url, **repos) as service:
        body = {"references": [*repos], "backend": "vllm"}
        ident = service.client.post("/v1/imports", json=body).json()["id"]
        for _ in range(8):
            postgres.admin(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
            time.sleep(0.2)
        found: dict[str, Any] = service.wait(lambda: over(service, ident))
        assert found["counts"] == {"succeeded": len(repos)}, story(service, ident)
        numbers = [event["number"] for event in story(service, ident)]
        assert numbers == [*range(1, len(numbers) + 1)]


def over(service: Service, ident: str) -> dict[str, Any] | None:
    answer: httpx.Response = service.client.get(f"/v1/jobs/{ident}")
    found: dict[str, Any] = answer.json()
    return found if answer.status_code == 200 and found["state"] in jobs.ENDED else None
