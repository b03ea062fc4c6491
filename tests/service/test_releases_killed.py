"""A server that is killed while it releases, rolls back or withdraws: it has done so once, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml
from sqlalchemy import select

from importer.storage import tables
from tests.publishing import gallery_of, validated
from tests.serving import Service, running

pytestmark = pytest.mark.slow
WORDS = ("--no-validate", "--imports", "0")
# What is asked, and the release that is served before and after it.
CHANGES = {
    "release": ("releases", 2, 3),
    "roll back": ("releases/1/rollback", 2, 1),
    "withdraw": ("releases/2/withdraw", 2, None),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("killed")) as one:
        yield one


def with_two_releases(service: Service, name: str) -> str:
    """A document with two releases and a third version that is ready; its digest."""
    assert service.imported("acme/base", name=name)["state"] == "succeeded"
    for value in (0.1, 0.2, 0.3):
        patch = {"parameters": {"temperature": value}}
        service.edit(name, patch).raise_for_status()
        validated(service, name)
        service.approve(name, publish=value < 0.3).raise_for_status()
    return str(service.config(name)["digest"])


def served(service: Service, name: str) -> tuple[int | None, float | None]:
    """The release that is served, and what the index has of it; the tables agree."""
    found = service.client.get(f"/v1/configs/{name}/releases").json()
    number = found["served"]
    assert [r["release"] for r in found["items"] if r["served"]] == ([] if number is None else [number])
    assert [r["release"] for r in found["items"]] == [*range(found["total"], 0, -1)]
    assert service.config(name)["release"] == number
    items = yaml.safe_load(service.client.get("/gallery/index.yaml").text)
    values = [i["config_file"]["parameters"]["temperature"] for i in items if i["name"] == name]
    assert len(values) == (number is not None)
    return number, next(iter(values), None)


def noted(service: Service, name: str, action: str) -> int:
    """How many entries the audit log has of it."""
    with gallery_of(service) as gallery, gallery.database.reading() as connection:
        log = tables.audit.c
        query = select(log.id).where(
            log.subject == name, log.action == action, log.details.contains("release")
        )
        return len(connection.execute(query).all())


@pytest.mark.parametrize("when", ["written", "committed"])
@pytest.mark.parametrize("action", [*CHANGES])
def test_it_is_served_once_or_as_before(service: Service, action: str, when: str) -> None:
    path, before, after = CHANGES[action]
    name = f"{action.replace(' ', '-')}-{when}"
    digest = with_two_releases(service, name)
    values = {1: 0.1, 2: 0.2, 3: 0.3, None: None}
    assert served(service, name) == (before, values[before])
    body: dict[str, Any] = {"json": {"digest": digest}} if action == "release" else {}
    noted_before = noted(service, name, action)

    def ask() -> httpx.Response:
        key = {"Idempotency-Key": f"once {name}"}
        return service.client.post(f"/v1/configs/{name}/{path}", headers=key, **body)

    service.stop()
    service.start(*WORDS, by="tests.killer.victim", env={"KILL_AT": f"{action} {when}"})
    with pytest.raises(httpx.TransportError):
        ask()
    victim = service.processes[-1]
    assert service.wait(victim.poll) == -9
    service.start()
    number = before if when == "written" else after
    assert served(service, name) == (number, values[number])
    again = ask()
    assert again.status_code == (201 if action == "release" else 200), again.text
    assert ("Idempotency-Replayed" in again.headers) == (when == "committed")
    assert served(service, name) == (after, values[after])
    assert noted(service, name, action) == noted_before + 1
