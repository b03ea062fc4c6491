"""``python -m benchmarks organisation --workers 1,2,4,8``: one organisation, workers beside one PostgreSQL.

The Hub has no limits here. Each number of workers has a database and a home of its own, with the proofs of a
first run, so that it imports models of known kinds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import psycopg

from benchmarks.organisation_repositories import NAME, repositories
from benchmarks.row import Row
from tests.hubserver import HubServer
from tests.postgres import Postgres, serving
from tests.serving import Service

BODY = {"organisation": NAME, "backend": "mlx"}
SLOTS = "4"  # imports at a time in each worker


def rows(number: int, workers: Sequence[int], engine: str | None) -> Iterator[Row]:
    """Yield throughput and processor time for each number of workers."""
    repos, gone = repositories(number)
    with serving() as postgres, HubServer(repos) as hub, tempfile.TemporaryDirectory() as folder:
        hub.hidden = gone
        first = 0.0
        for count in workers:
            seconds, processor = _run(Path(folder), hub, postgres, count, engine)
            first = first or seconds
            what = f"{count} workers: models a second, to one worker, processor time"
            cost = f"{processor / number * 1000:.0f} ms"
            yield Row(what, f"{number / seconds:.1f}, {first / seconds:.2f} x, {cost}", "")


def _run(
    folder: Path, hub: HubServer, postgres: Postgres, count: int, engine: str | None
) -> tuple[float, float]:
    """Return seconds of the whole, and processor seconds of the workers and their children."""
    database, own = postgres.fresh(), folder / str(count)
    own.mkdir()
    env = {"IMPORTER_HOME": str(folder / "home")} | (
        {} if engine is None else {"IMPORTER_MLX_PYTHON": engine}
    )
    service = Service(own, hub, database=database, env=env)
    try:
        service.start("--no-validate", "--imports", "0")
        for _ in range(count):
            service.start("--no-validate", "--imports", SLOTS, command="worker")
        service.wait(lambda: _processes(database) == count + 1)
        running = [psutil.Process(process.pid) for process in service.processes[1:]]
        before, begun = _processor(running), time.perf_counter()
        job = service.client.post("/v1/imports", json=BODY).json()["id"]
        while service.client.get(f"/v1/jobs/{job}").json()["state"] in ("queued", "running"):
            time.sleep(0.2)
        return time.perf_counter() - begun, _processor(running) - before
    finally:
        service.close()


def _processes(database: str) -> int:
    with psycopg.connect(database) as connection:
        found = connection.execute("SELECT count(*) FROM executors").fetchone()
    return 0 if found is None else int(found[0])


def _processor(running: Sequence[psutil.Process]) -> float:
    """Return the processor seconds of processes and of their children, those that have ended included."""
    total = 0.0
    for one in running:
        for process in (one, *one.children(recursive=True)):
            times = process.cpu_times()
            total += times.user + times.system
        total += one.cpu_times().children_user + one.cpu_times().children_system
    return total
