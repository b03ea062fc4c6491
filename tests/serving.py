"""The service as it runs: processes of their own, asked over HTTP; a Hub beside them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from socketserver import BaseServer
from typing import Any

import httpx
import pytest
from sqlalchemy import Connection

from importer import config
from importer.service.problems import explained
from importer.storage import audit, keys
from importer.storage.audit import AuditContext, AuditEvent
from importer.storage.database import Database
from tests.commandline import BASE, CHAT, REPO, TOKEN
from tests.hubserver import HubServer, Repo
from tests.waiting import PATIENCE, wait_until

__all__ = ["PATIENCE"]
ROOT = AuditContext("root", "create key")


@contextmanager
def listening(server: BaseServer) -> Iterator[None]:
    """Serve in a thread until the block ends."""
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def engine_variables() -> dict[str, str]:
    """Variables by which another process, or a login, finds the engines of this one."""
    named = {n: v for n, v in os.environ.items() if n.startswith("IMPORTER_") and n.endswith("_PYTHON")}
    return {"IMPORTER_HOME": str(config.home()), **named}


class Service:
    """A folder for the service's data, its processes, and a client."""

    def __init__(
        self,
        folder: Path,
        hub: HubServer,
        *,
        engines: bool = False,
        database: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self.hub, self.port = folder, hub, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE, trust_env=False)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.keys: dict[str, str] = {}  # that a test made, by their scopes
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "IMPORTER_"))}
        home = engine_variables() if engines else {"IMPORTER_HOME": str(folder / "home")}
        self.env = {
            **kept, **home, "IMPORTER_PARSERS": "off",
            "HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "hf"), "PYTHONPATH": str(REPO),
            "IMPORTER_SERVE_DATABASE": database or f"sqlite:///{folder / 'gallery.sqlite'}",
            **(env or {}),
        }  # fmt: skip

    def start(
        self,
        *words: str,
        command: str = "serve",
        env: Mapping[str, str] | None = None,
        by: str = "importer",
        ready: bool = True,
    ) -> Service:
        """Start a server and wait until it is ready, or a worker; ``by`` is the module that runs it."""
        argv = [sys.executable, "-m", by, *([] if command == "serve" else ["admin"]), command, *words]
        argv += ["--port", str(self.port)] if command == "serve" else []
        with (self.folder / f"{command}-{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                argv, env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.folder,
            )  # fmt: skip
        self.processes.append(process)
        if command == "serve" and ready:
            self.wait(lambda: self.ready(process))
        return self

    def ready(self, process: subprocess.Popen[bytes]) -> bool:
        assert process.poll() is None, self.log()
        try:
            return self.client.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def log(self, name: str = "*.log") -> str:
        return "\n".join(p.read_text(errors="replace")[-6000:] for p in sorted(self.folder.glob(name)))

    def wait(self, done: Any) -> Any:
        """What ``done`` gives, once it gives something."""
        return wait_until(done, self.log)

    def kill(self, process: subprocess.Popen[bytes] | None = None) -> None:
        """``kill -9``."""
        chosen = process or self.processes[-1]
        chosen.kill()
        chosen.wait()

    def stop(self, process: subprocess.Popen[bytes] | None = None) -> int:
        """End it in order; its exit status."""
        chosen = process or self.processes[-1]
        chosen.send_signal(signal.SIGTERM)
        return chosen.wait(PATIENCE)

    def close(self) -> None:
        """End all of it at once: an end in order takes seconds, and is for tests of that."""
        self.client.close()
        for process in self.processes:
            if process.poll() is None:
                self.kill(process)

    def engines(self) -> list[int]:
        """Processes that serve a model of this service's cache, their supervisors included."""
        found = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = entry.read_bytes()
            except OSError:
                continue
            if f"{self.folder}/hf/".encode() in words:
                found.append(int(entry.parent.name))
        return found

    def ended(self, job: str) -> dict[str, Any]:
        """The job, once it has ended."""

        def over() -> dict[str, Any] | None:
            found: dict[str, Any] = self.client.get(f"/v1/jobs/{job}").json()
            return found if found["state"] in ("waiting", "succeeded", "failed", "cancelled") else None

        found: dict[str, Any] = self.wait(over)
        return found

    def imported(self, reference: str, **said: Any) -> dict[str, Any]:
        """Import a model; the job as it ended."""
        answer = self.client.post("/v1/imports", json={"reference": reference, "backend": "vllm", **said})
        assert answer.status_code == 202, answer.text
        return self.ended(answer.json()["id"])

    def approve(self, name: str, **said: Any) -> httpx.Response:
        """Approve a document as it is at this moment."""
        digest = self.client.get(f"/v1/configs/{name}").json()["digest"]
        return self.client.post(f"/v1/configs/{name}/approve", json={"digest": digest, **said})

    def config(self, name: str) -> dict[str, Any]:
        """The document as it is at this moment."""
        found: dict[str, Any] = self.client.get(f"/v1/configs/{name}").json()
        return found

    def edit(self, name: str, change: Any, **params: str) -> httpx.Response:
        """Change the document as it is at this moment."""
        tag = {"If-Match": self.etag(name)}
        return self.client.patch(f"/v1/configs/{name}", json=change, headers=tag, params=params)

    def made_key(self, name: str, *scopes: str) -> dict[str, str]:
        """A new key with its id, as the command makes one while the server runs."""
        with self._rows() as connection:
            key = keys.create(connection, name, scopes or ["read"], ROOT)
        return {"id": key.split("_")[1], "key": key}

    def revoke(self, ident: str) -> None:
        with self._rows() as connection:
            keys.revoke(connection, ident, ROOT)

    def audit(self) -> list[AuditEvent]:
        """The audit log, the oldest entry first."""
        with self._rows() as connection:
            return [*audit.exported(connection)]

    @contextmanager
    def _rows(self) -> Iterator[Connection]:
        with (
            closing(Database(self.env["IMPORTER_SERVE_DATABASE"])) as database,
            database.writing() as connection,
        ):
            yield connection

    def etag(self, name: str) -> str:
        return self.client.get(f"/v1/configs/{name}").headers["ETag"]


def events(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """The events of a stream as they arrive."""
    event: dict[str, Any] = {}
    for line in response.iter_lines():
        if not line and event:
            yield event
            event = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            if name:
                event[name] = json.loads(value) if name == "data" else int(value) if name == "id" else value


@contextmanager
def running(
    folder: Path,
    *words: str,
    engines: bool = False,
    database: str | None = None,
    env: Mapping[str, str] | None = None,
    by: str = "importer",
    **repos: Any,
) -> Iterator[Service]:
    """A server with a Hub that has a few small models."""
    found = {"acme/base": Repo(BASE), "other/base": Repo(BASE), "acme/chat": Repo(CHAT), **repos}
    with HubServer(found, tokens=(TOKEN,)) as hub:
        service = Service(folder, hub, engines=engines, database=database, env=env)
        try:
            yield service.start(*words, by=by)
        finally:
            service.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One server for all tests of a module, that validates nothing; each uses documents of its own."""
    with running(tmp_path_factory.mktemp("service"), "--no-validate", "--rate", "0", "--reads", "0") as one:
        yield one


@pytest.fixture(scope="module")
def own_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The same as it is started by default: it has limits, and validates where an engine is."""
    with running(tmp_path_factory.mktemp("service")) as one:
        yield one


def problem(answer: Any, status: int, kind: str) -> dict[str, Any]:
    """The problem's details, as RFC 9457 has them."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    said: dict[str, Any] = answer.json()
    assert (said["status"], said["kind"], said["type"]) == (status, kind, f"/problems/{kind}")
    page = explained(kind)
    assert page is not None
    assert said["detail"].startswith(str(page["sentence"]).partition("{")[0])
    assert said["request_id"] == answer.headers["x-request-id"]
    return said


def fresh(service: Service, name: str, **said: Any) -> str:
    """A document of its own for one test."""
    job = service.imported("acme/base", name=name, **said)
    assert job["state"] == "succeeded", job
    return name
