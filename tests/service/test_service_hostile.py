"""The service under hostile texts: other routes answer meanwhile, jobs end, and a signal ends the server."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests import impatient
from tests.commandline import BASE
from tests.hubserver import Repo
from tests.impatient import ENDS, waits
from tests.security.test_yaml_reader import MERGES
from tests.serving import PATIENCE, Service, running
from tests.waiting import FreeTime, family_seconds, gone, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]
EACH = 0.05  # seconds between two questions to each route
WORST = 5.0  # seconds of processor of the server and its sandbox during one answer; held up ten and more
ENDING = 10.0  # seconds with a free processor for the server to end; a job in it has five
SPIN = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"


def table(length: int) -> str:
    return "|a|b|\n|" + "-" * length + "x"


HOSTILE = {
    "acme/table": Repo({**BASE, "README.md": table(100_000)}),
    "acme/tables": Repo({**BASE, "README.md": table(400_000)}),
    "acme/merges": Repo({**BASE, "README.md": f"---\n{MERGES}---\n"}),
    "acme/spins": Repo({**BASE, "chat_template.jinja": SPIN}),
}


@dataclass
class Watch:
    """What other routes answered meanwhile, and the processor time of the server's family in each answer."""

    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def worst(self) -> float:
        return max(self.seconds)

    def __str__(self) -> str:
        ordered = sorted(self.seconds)
        p99 = ordered[int(len(ordered) * 0.99)]
        return f"{len(ordered)} answers, p99 {p99 * 1000:.0f} ms, worst {self.worst * 1000:.0f} ms"


@contextmanager
def watched(service: Service) -> Iterator[Watch]:
    """Ask two routes again and again, each on a connection of its own."""
    watch, over, family = Watch(), threading.Event(), server(service)

    def ask(path: str) -> None:
        with httpx.Client(base_url=service.url, timeout=PATIENCE, trust_env=False) as client:
            while not over.wait(EACH):
                began = family_seconds(family)
                status = client.get(path).status_code
                watch.seconds.append(family_seconds(family) - began)
                if status != 200:
                    watch.wrong.append(f"{path}: {status}")

    threads = [threading.Thread(target=ask, args=(path,)) for path in ("/healthz", "/v1/configs")]
    for thread in threads:
        thread.start()
    try:
        yield watch
    finally:
        over.set()
        for thread in threads:
            thread.join()
        print(watch)


def server(service: Service) -> psutil.Process:
    return psutil.Process(service.processes[-1].pid)


def children(service: Service) -> list[psutil.Process]:
    """The sandbox of the server."""
    return [c for c in server(service).children() if any("importer.sandbox.serve" in w for w in _argv(c))]


def _argv(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def asked(service: Service, reference: str) -> str:
    answer = service.client.post("/v1/imports", json={"reference": reference, "backend": "vllm"})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def stored(job: Mapping[str, Any]) -> dict[str, Any]:
    """The job with the times of its steps alone."""
    return {**job, "progress": [(one["step"], one["seconds"]) for one in job["progress"]["steps"]]}


def ended_in(service: Service) -> float:
    """Seconds with a free processor from SIGTERM to the end, with every process of it."""
    family = server(service).children(recursive=True)
    clock = FreeTime()
    assert service.stop() == 0, service.log()
    took = clock.seconds
    assert wait_until(lambda: all(gone(one.pid) for one in family))
    print(f"ended in {took:.2f} s")
    return took


def test_hostile_repositories_end_as_jobs_and_other_routes_answer(tmp_path: Path) -> None:
    with running(tmp_path, **HOSTILE) as service:
        with watched(service) as watch:
            jobs = {reference: asked(service, reference) for reference in HOSTILE}
            told = {reference: service.ended(job) for reference, job in jobs.items()}
        assert watch.wrong == []
        assert watch.worst < WORST, str(watch)
        print({r: (t["state"], (t["error"] or {}).get("kind")) for r, t in told.items()})
        for reference, job in told.items():
            assert job["state"] == "succeeded" or job["error"]["kind"] == "too-costly", (reference, job)
        assert ended_in(service) < ENDING
        service.start()
        service.imported("acme/base", name="later")
        after = {reference: service.client.get(f"/v1/jobs/{job}").json() for reference, job in jobs.items()}
        assert {r: stored(job) for r, job in after.items()} == {r: stored(job) for r, job in told.items()}
        assert "Traceback" not in service.log()


@pytest.mark.nightly
@pytest.mark.parametrize("stopped", [False, True], ids=["busy", "standing still"])
def test_a_signal_ends_the_server_whatever_its_sandbox_does(tmp_path: Path, stopped: bool) -> None:
    with running(tmp_path, env=waits(ENDS), by=impatient.NAME, **HOSTILE) as service:
        job = asked(service, "acme/spins")
        service.wait(lambda: _busy(service))
        for child in children(service) if stopped else ():
            child.suspend()
        assert ended_in(service) < ENDING
        service.start()
        assert service.ended(job)["state"] in ("succeeded", "failed")
        assert "Traceback" not in service.log()


def _busy(service: Service) -> bool:
    """Whether a text is being read: loading takes half of that processor time, the template twice of it."""
    return any(c.cpu_times().user > 1.1 for c in children(service))
