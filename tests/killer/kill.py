"""Kills: a service whose server and worker are processes of their own, one of which dies, and what became."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.hubserver import Repo
from tests.killer.check import TOKEN, left, wrong
from tests.killer.points import Kind, Point
from tests.serving import Service, running

DEMO = Path(__file__).parents[2] / "importer" / "demo" / "model"
ALONE = ("--no-validate", "--imports", "0")  # a server that leaves all jobs to workers


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

    def at(self, point: Point) -> list[str]:
        """Kill a process at a point, begin it again, and return what is wrong then."""
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
        if point.process == "server":
            self.serve()
        else:
            mine = {p.pid for p in (self.server, self.worker) if p is not None and p.poll() is None}
            self.service.wait(lambda: not left(self.token, mine))
            self.work()
        return wrong(self.service, self.service.ended(str(job or self._again())))

    def _at_cancel(self, point: Point) -> list[str]:
        """A cancel whose server dies: asked again, the job has been cancelled, or it had ended meanwhile."""
        self.serve(at=point.at)
        self.work()
        job = self._ask("validation")
        self.service.wait(self.service.engines)
        self._post(f"/v1/jobs/{job}/cancel", None)
        self.service.wait(lambda: self.server.poll() is not None)
        self.serve()
        again = self._post(f"/v1/jobs/{job}/cancel", None)
        ended = self.service.ended(str(job))
        self.service.wait(lambda: not self.service.engines())
        late = point.at == "cancelled written" and again is not None and again.status_code == 409
        return wrong(self.service, ended, state="succeeded" if late else "cancelled")

    def _at_retry(self, point: Point) -> list[str]:
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
        self.serve()
        self._post(f"/v1/jobs/{job}/retry", None)
        return wrong(self.service, self.service.ended(job), attempt=2)

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

    def _ask(self, kind: Kind, reference: str = "") -> str | None:
        """Ask for a job; ``None`` where the server died before it could answer."""
        self._before = self._newest()
        if kind == "validation":
            self._asked: tuple[str, Any] = ("/v1/configs/demo/validate", None)
        else:
            self._asked = ("/v1/imports", {"reference": reference or self._model(), "backend": "mlx"})
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
