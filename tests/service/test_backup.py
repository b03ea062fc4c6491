"""A backup of a service in use, restored elsewhere."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.commandline import BASE, Desk, Ran, desk
from tests.hubserver import Fault, Repo
from tests.serving import Service, running

__all__ = ["desk"]
pytestmark = pytest.mark.slow


def importer(desk: Desk, service: Service, *words: str) -> Ran:
    for name in ("IMPORTER_SERVE_DATABASE", "IMPORTER_HOME"):
        desk.monkeypatch.setenv(name, service.env[name])
    desk.monkeypatch.chdir(service.folder)
    return desk(*words)


def copied(desk: Desk, service: Service) -> str:
    """The URL of a copy by ``importer admin backup``."""
    done = importer(desk, service, "admin", "backup", "copy.sqlite")
    assert done.code == 0, done.err
    again = importer(desk, service, "admin", "backup", "copy.sqlite")
    assert (again.code, "copy.sqlite could not be written: File exists." in again.err) == (5, True)
    return f"sqlite:///{service.folder / 'copy.sqlite'}"


def exported(desk: Desk, service: Service) -> list[dict[str, Any]]:
    done = importer(desk, service, "admin", "audit")
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def test_a_copy_of_a_service_in_use_goes_on_with_its_jobs(tmp_path: Path, desk: Desk) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir(), second.mkdir()
    with running(first, "--no-validate", **{"acme/late": Repo(BASE)}) as service:
        service.imported("acme/base", name="kept")
        service.approve("kept", note="as it is")
        before = service.config("kept")
        service.hub.faults.append(Fault("acme/late", 429, {"retry-after": "600"}, times=1000))
        late = service.client.post(
            "/v1/imports", json={"reference": "acme/late", "backend": "vllm", "name": "late"}
        ).json()["id"]
        service.wait(lambda: service.client.get(f"/v1/jobs/{late}").json()["state"] == "running")
        log, copy = exported(desk, service), copied(desk, service)
        assert service.stop() == 0
        service.hub.faults.clear()
        restored = Service(second, service.hub, database=copy)
        try:
            restored.start("--no-validate")
            job = restored.ended(late)
            assert (job["state"], job["attempt"]) == ("succeeded", 1)
            assert restored.client.get("/v1/configs/kept").json() == before
            there = exported(desk, restored)
            assert there[: len(log)] == log
            assert [one["action"] for one in there if one["target"] == "late"] == ["import"]  # once
            rest = importer(desk, restored, "admin", "audit", "--after", str(there[-2]["id"])).out
            assert json.loads(rest.splitlines()[0]) == there[-1]
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
