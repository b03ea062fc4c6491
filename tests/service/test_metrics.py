"""Figures of the database for Prometheus: made by the parts themselves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from importer.hub import client, rate_limit
from importer.service.telemetry import Metrics
from importer.storage import jobs, processes
from importer.storage.database import Database
from importer.storage.processes import Executor
from importer.storage.schema import open_database
from tests.hubserver import Fault, HubServer


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    found = open_database(f"sqlite:///{tmp_path}/gallery.sqlite")
    yield found
    found.close()


def figures(database: Database, name: str) -> list[str]:
    lines = Metrics().text(database).decode().splitlines()
    return [line.removeprefix(name) for line in lines if line.startswith(name) and not line.startswith("#")]


def test_what_the_hub_leaves_is_that_of_the_process_that_has_least(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HubServer({}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        hub.faults.append(
            Fault("api", 200, {"ratelimit": '"api";r=7;t=55, "resolvers";r=3;t=0, "odd one";r=9;t=50'})
        )
        client.get(f"{hub.url}/api/models", limit=100)
    assert rate_limit.left() == {"api": 7, "other": 9}  # the second window has ended
    for name, left in (("a", rate_limit.left()), ("b", {"api": 400})):
        with database.writing() as connection:
            processes.heartbeat(connection, Executor(name, "here", "vm", 1, "", 0.0), left)
    assert figures(database, "importer_hub_requests_left") == ['{quota="api"} 7.0', '{quota="other"} 9.0']


def test_validations_are_counted_by_engine_and_result(database: Database) -> None:
    for engine, state, passed in (
        ("mlx", "succeeded", True), ("mlx", "succeeded", False), ("mlx", "failed", None),
        ("vllm", "succeeded", True), ("vllm", "cancelled", None),
    ):  # fmt: skip
        with database.writing() as connection:
            job = jobs.create(connection, "validation", {}, "ann", engine=engine)
            result = None if passed is None else {"passed": passed, "probes": {}}
            assert jobs.end(connection, job, state, result=result)  # type: ignore[arg-type]
    assert sorted(figures(database, "importer_validations")) == [
        '{engine="mlx",result="failed"} 1.0', '{engine="mlx",result="not-passed"} 1.0',
        '{engine="mlx",result="passed"} 1.0', '{engine="vllm",result="cancelled"} 1.0',
        '{engine="vllm",result="passed"} 1.0',
    ]  # fmt: skip


def test_the_oldest_heartbeat_and_the_age_of_each_queue(database: Database) -> None:
    with database.writing() as connection:
        processes.heartbeat(connection, Executor("a", "here", "vm", 1, "", time.time()))
        jobs.create(connection, "recheck", {}, "ann")
    time.sleep(1.1)  # times of jobs are whole seconds
    ages = dict(line.rsplit(" ", 1) for line in figures(database, "importer_oldest_queued_seconds"))
    assert float(ages['{kind="recheck"}']) > 0
    assert (ages['{kind="import"}'], ages['{kind="validation"}']) == ("0.0", "0.0")
    [oldest] = figures(database, "importer_oldest_heartbeat_seconds")
    assert float(oldest) > 1
