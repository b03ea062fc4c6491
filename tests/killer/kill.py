"""Kills: a service whose server and worker are processes of their own, one of which dies, and what became."""

from __future__ import annotations

import random
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.hubserver import Repo
from tests.killer.check import ENDS, TOKEN, left, released, story, wrong
from tests.killer.points import Kind, Point, Process
from tests.serving import Service, running

DEMO = Path(__file__).parents[2] / "importer" / "demo" / "model"
ALONE = ("--no-validate", "--imports", "0")  # a server that leaves all jobs to workers
LIST = 4  # references in a list
ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill and what became; times in seconds from the kill, ``None`` where there was nothing to wait for.

    ``step``  the one that the job, or the newest of a list, was at. ``gone``  until no process was left of
    the one that was killed. ``on``  until the job was gone on with. ``anew``  how often it was begun from its
    start, since another process came too late.
    """

    kind: Kind
    process: Process
    at: str
    step: str | None
    gone: float
    on: float | None
    wrong: list[str] = field(default_factory=list)
    anew: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """When a process is killed: so many events after a job began, and a little later."""

    kind: Kind
    process: Process
    events: int
    seconds: float


class Killer:
    """A service that has the demonstration model, and a worker for its jobs."""

    def __init__(self, service: Service, token: str) -> None:
        self.service, self.token, self._names = service, token, 0
        self.server = service.processes[-1]
        self.worker: subprocess.Popen[bytes] | None = None
        self.work()
        ended = service.imported(self._model("demo"), backend="mlx")
        assert ended["state"] == "succeeded", ended

    # What is killed at a point

    def at(self, point: Point) -> Kill:
        """Kill a process at a point, begin it again, and look what became."""
        if point.at.startswith("cancelled"):
            return self._at_cancel(point)
        if point.at.startswith("again"):
            return self._at_retry(point)
        if point.process == "server":
            self.serve(at=point.at)
        else:
            self.work(at=point.at)
        job = self._ask(point.kind)
        victim = self.server if point.process == "server" else self.worker
        assert victim is not None
        self.service.wait(lambda: victim.poll() is not None)
        assert victim.returncode == -9, (point, victim.returncode, self.service.log())
        return self._after(point.kind, point.process, point.at, job)

    def _at_cancel(self, point: Point) -> Kill:
        """A cancel whose server dies: asked again, the job has been cancelled, or it had ended meanwhile."""
        self.serve(at=point.at)
        self.work()
        job = self._ask("validation")
        self.service.wait(self.service.engines)
        self._post(f"/v1/jobs/{job}/cancel", None)
        self.service.wait(lambda: self.server.poll() is not None)
        killed = time.monotonic()
        self.serve()
        again = self._post(f"/v1/jobs/{job}/cancel", None)
        ended = self.service.ended(str(job))
        self.service.wait(lambda: not self.service.engines())
        gone = time.monotonic() - killed
        late = point.at == "cancelled written" and again is not None and again.status_code == 409
        state = "succeeded" if late else "cancelled"
        return Kill(
            point.kind, point.process, point.at, ended["step"], gone, None,
            wrong(self.service, ended, state=state),
        )  # fmt: skip

    def _at_retry(self, point: Point) -> Kill:
        """A retry whose server dies: asked again, it is the second attempt and no third."""
        self.serve(at=point.at)
        self.work()
        reference = self._model()
        repo = self.service.hub.repos.pop(reference)
        job = str(self._ask("import", reference))
        assert self.service.ended(job)["state"] == "failed"
        self.service.hub.repos[reference] = repo
        self._post(f"/v1/jobs/{job}/retry", None)
        self.service.wait(lambda: self.server.poll() is not None)
        killed = time.monotonic()
        self.serve()
        self._post(f"/v1/jobs/{job}/retry", None)
        ended = self.service.ended(job)
        on = time.monotonic() - killed
        found = wrong(self.service, ended, attempt=2)
        return Kill(point.kind, point.process, point.at, None, 0.0, on, found)

    # What is killed at a moment

    def sometime(self, moment: Moment) -> Kill:
        """Kill a process while a job is under way; of imports a list, so that some wait."""
        job = str(self._ask(moment.kind, several=moment.kind == "import"))
        self.service.wait(lambda: _so_far(story(self.service, job), moment.events))
        time.sleep(moment.seconds)
        self.service.kill(self.server if moment.process == "server" else self.worker)
        return self._after(moment.kind, moment.process, f"{moment.events} events", job)

    def events(self, kind: Kind) -> int:
        """How many events such a job has when nobody is killed."""
        job = str(self._ask(kind, several=kind == "import"))
        assert self.service.ended(job)["state"] == "succeeded"
        return len(story(self.service, job))

    # What becomes

    def _after(self, kind: Kind, process: Process, at: str, job: str | None) -> Kill:
        killed = time.monotonic()
        said = story(self.service, job) if job else []
        steps = [e["data"]["step"] for e in said if e["type"] == "step"]
        over = any(e["job"] == job and e["type"] in ENDS for e in said)
        step = ENDED if over else steps[-1] if steps else None
        mine = {p.pid for p in (self.server, self.worker) if p is not None and p.poll() is None}
        if process == "worker":
            self.service.wait(lambda: not left(self.token, mine))
        gone = time.monotonic() - killed
        if process == "server":
            self.serve()
        else:
            self.work()
        job = job or self._again()
        assert job is not None
        on = None
        if process == "worker" and not over:
            self.service.wait(lambda: len(story(self.service, job)) > len(said))
            on = time.monotonic() - killed
        ended = self.service.ended(job)
        found = wrong(self.service, ended)
        return Kill(kind, process, at, step, gone, on, found, released(self.service, ended))

    # Its processes

    def serve(self, at: str = "") -> None:
        """Another server in the place of the one there is."""
        if self.server.poll() is None:
            self.service.kill(self.server)
        self.service.start(*ALONE, **_run(at))
        self.server = self.service.processes[-1]

    def work(self, at: str = "") -> None:
        """Another worker in the place of the one there is."""
        if self.worker is not None and self.worker.poll() is None:
            self.service.kill(self.worker)
        self.service.start(command="worker", **_run(at))
        self.worker = self.service.processes[-1]

    # Its jobs

    def _ask(self, kind: Kind, reference: str = "", *, several: bool = False) -> str | None:
        """Ask for a job; ``None`` where the server died before it could answer."""
        self._before = self._newest()
        if kind == "validation":
            self._asked: tuple[str, Any] = ("/v1/configs/demo/validate", None)
        else:
            names = [reference or self._model() for _ in range(LIST if several else 1)]
            which = {"references": names} if several else {"reference": names[0]}
            self._asked = ("/v1/imports", {**which, "backend": "mlx"})
        return self._again()

    def _model(self, name: str = "") -> str:
        """One more model on the Hub."""
        self._names += 1
        reference = f"acme/{name or f'model{self._names}'}"
        self.service.hub.repos[reference] = Repo(DEMO)
        return reference

    def _again(self) -> str | None:
        """The same request, unless the server had taken it when it died."""
        if (newest := self._newest()) != self._before:
            return newest
        answer = self._post(*self._asked)
        return None if answer is None else str(answer.json()["id"])

    def _newest(self) -> str:
        return str(self.service.client.get("/v1/jobs", params={"limit": 1}).json()["items"][0]["id"])

    def _post(self, path: str, body: Any) -> httpx.Response | None:
        try:
            return self.service.client.post(path, json=body)
        except httpx.TransportError:
            return None


def _run(at: str) -> dict[str, Any]:
    return {"by": "tests.killer.victim", "env": {"KILL_AT": at}} if at else {}


@contextmanager
def killing(folder: Path, database: str | None = None) -> Iterator[Killer]:
    """A service to kill, in an empty folder."""
    token = secrets.token_hex(8)
    with running(folder, *ALONE, engines=True, database=database, env={TOKEN: token}) as service:
        yield Killer(service, token)


def moments(seed: int, count: int, kind: Kind, events: int) -> list[Moment]:
    """Moments of a job that has so many events: of its worker, and one in five of its server."""
    chance = random.Random(f"{seed}/{kind}")
    return [
        Moment(
            kind, "server" if number % 5 == 4 else "worker", chance.randrange(1, events),
            chance.uniform(0, 0.5),
        )
        for number in range(count)
    ]  # fmt: skip


def _so_far(said: list[dict[str, Any]], events: int) -> bool:
    return len(said) >= events or said[-1]["type"] in ENDS
