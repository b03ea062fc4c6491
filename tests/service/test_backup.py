"""Backup while the service writes, restored elsewhere; upgrades, and downgrades that are refused."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import threading
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.commandline import BASE, Desk, Ran, desk
from tests.hubserver import Fault, Repo
from tests.postgres import Postgres, here, postgres
from tests.serving import Service, running
from tests.storing import database, empty

__all__ = ["database", "desk", "empty", "postgres"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]


def importer(desk: Desk, service: Service, *words: str) -> Ran:
    for name in ("IMPORTER_SERVE_DATABASE", "IMPORTER_HOME"):
        desk.monkeypatch.setenv(name, service.env[name])
    desk.monkeypatch.chdir(service.folder)
    return desk(*words)


def dumped(service: Service, server: Postgres) -> str:
    """The URL of a new database with what ``pg_dump`` found in the one in use."""
    programs, file = here(), service.folder / "gallery.dump"
    assert programs is not None
    fresh = server.fresh()
    old = service.env["IMPORTER_SERVE_DATABASE"]
    subprocess.run([programs / "pg_dump", "--format=custom", f"--file={file}", old], check=True)
    subprocess.run(
        [programs / "pg_restore", "--no-owner", "--exit-on-error", f"--dbname={fresh}", file], check=True
    )
    return fresh


def copied(desk: Desk, service: Service) -> str:
    """The URL of a copy by ``importer admin backup``."""
    done = importer(desk, service, "admin", "backup", "copy.sqlite")
    assert done.code == 0, done.err
    again = importer(desk, service, "admin", "backup", "copy.sqlite")
    assert (again.code, "copy.sqlite could not be written: File exists." in again.err) == (5, True)
    return f"sqlite:///{service.folder / 'copy.sqlite'}"


class Writer:
    """Makes keys one after the other until the block ends; ``made`` are those that were answered."""

    def __init__(self, service: Service) -> None:
        self.made: list[str] = []
        self._service, self._ending = service, threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Writer:
        self._thread.start()
        self._service.wait(lambda: len(self.made) > 3)
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _write(self) -> None:
        for number in count():
            if self._ending.is_set():
                return
            body = {"reference": "acme/base", "backend": "vllm", "name": f"writer-{number}"}
            answer = self._service.client.post("/v1/imports", json=body)
            if answer.status_code == 202:
                self.made.append(answer.json()["id"])


def exported(desk: Desk, service: Service) -> list[dict[str, Any]]:
    done = importer(desk, service, "admin", "audit")
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def test_nothing_that_was_answered_before_a_backup_is_lost(
    kind: str, tmp_path: Path, desk: Desk, request: pytest.FixtureRequest
) -> None:
    server: Postgres | None = request.getfixturevalue("postgres") if kind == "postgresql" else None
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir(), second.mkdir()
    url = server.fresh() if server else None
    with running(first, "--no-validate", "--rate", "0", database=url, **{"acme/late": Repo(BASE)}) as service:
        service.imported("acme/base", name="kept")
        service.approve("kept", note="as it is")
        before = service.config("kept")
        service.hub.faults.append(Fault("acme/late", 429, {"retry-after": "600"}, times=1000))
        late = service.client.post(
            "/v1/imports", json={"reference": "acme/late", "backend": "vllm", "name": "late"}
        ).json()["id"]
        service.wait(lambda: service.client.get(f"/v1/jobs/{late}").json()["state"] == "running")
        with Writer(service) as writer:
            answered = [*writer.made]
            log = exported(desk, service)
            copy = dumped(service, server) if server else copied(desk, service)
            then = len(writer.made)
            service.wait(lambda: len(writer.made) > then)  # the copy held nobody up
        if server:
            refused = importer(desk, service, "admin", "backup", "copy.sqlite")
            assert (refused.code, "pg_dump" in refused.err) == (2, True)
        assert service.stop() == 0
        service.hub.faults.clear()
        restored = Service(second, service.hub, database=copy)
        try:
            restored.start("--no-validate")
            job = restored.ended(late)
            assert (job["state"], job["attempt"]) == ("succeeded", 1)
            assert restored.client.get("/v1/configs/kept").json() == before
            assert all(restored.client.get(f"/v1/jobs/{one}").status_code == 200 for one in answered)
            there = exported(desk, restored)
            assert there[: len(log)] == log
            assert [one["action"] for one in there if one["target"] == "late"] == ["import"]  # once
            [approved] = [one for one in there if one["action"] == "approve"]
            assert (approved["target"], approved["digest"]) == ("kept", before["digest"])
            assert approved["request"]
            assert [e["id"] for e in there] == sorted(e["id"] for e in there)
            rest = importer(desk, restored, "admin", "audit", "--after", str(there[-2]["id"])).out
            assert json.loads(rest.splitlines()[0]) == there[-1]  # imports of the writer go on
        finally:
            restored.close()


def test_a_backup_that_fails_leaves_nothing(desk: Desk) -> None:
    file = desk.folder / "gallery.sqlite"
    desk.monkeypatch.setenv("IMPORTER_SERVE_DATABASE", f"sqlite:///{file}")
    gone = desk("admin", "backup", "copy.sqlite")
    assert (gone.code, "there is no such file" in gone.err) == (7, True)
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE t (n)")
    other.close()
    foreign = desk("admin", "backup", "copy.sqlite")
    assert (foreign.code, "it holds no gallery" in foreign.err) == (7, True)
    file.write_bytes(os.urandom(8192))
    torn = desk("admin", "backup", "copy.sqlite")
    assert (torn.code, "not a database" in torn.err) == (7, True)
    assert desk("admin", "backup", "not/there.sqlite").code == 5
    assert not (desk.folder / "copy.sqlite").exists()
