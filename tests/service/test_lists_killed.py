"""A list whose server is killed: it was accepted once, and each of its lines is imported once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select

from importer.storage import tables
from tests.commandline import BASE
from tests.hubserver import Repo
from tests.publishing import gallery_of
from tests.serving import Service, running

pytestmark = pytest.mark.slow
SIZE = 8
WORDS = ("--no-validate", "--imports", "2")


def test_each_line_is_imported_once(tmp_path: Path) -> None:
    repos: dict[str, Any] = {f"acme/m{number}": Repo(BASE) for number in range(SIZE)}
    with running(tmp_path, *WORDS, **repos) as service:
        service.stop()
        service.start(*WORDS, by="tests.killer.victim", env={"KILL_AT": "asked"})
        with pytest.raises(httpx.TransportError):
            _ask(service)
        assert service.wait(service.processes[-1].poll) == -9
        service.start(*WORDS)
        [job] = service.client.get("/v1/jobs").json()["items"]
        assert (len(job["request"]["references"]), len(job["refused"])) == (SIZE, 1)
        service.wait(lambda: _counts(service, job["id"]).get("succeeded", 0))
        service.kill()
        service.start(*WORDS)
        ended = service.ended(job["id"])
        assert (ended["state"], ended["counts"]) == ("succeeded", {"succeeded": SIZE})
        with gallery_of(service) as gallery, gallery.database.reading() as connection:
            versions = select(tables.versions.c.name, func.count()).group_by(tables.versions.c.name)
            assert dict(connection.execute(versions).all()) == {f"m{number}": 1 for number in range(SIZE)}  # type: ignore[arg-type]
            assert connection.execute(select(func.count()).select_from(tables.steps)).scalar_one() == 0


def _ask(service: Service) -> httpx.Response:
    references = [*(f"acme/m{number}" for number in range(SIZE)), "no owner"]
    return service.client.post("/v1/imports", json={"references": references, "backend": "vllm"})


def _counts(service: Service, job: str) -> dict[str, int]:
    found: dict[str, int] = service.client.get(f"/v1/jobs/{job}").json()["counts"]
    return found
