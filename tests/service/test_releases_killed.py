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
# What is asked, and which of three versions is served before and after it.
CHANGES = {"release": ("release", 2, 3), "roll back": ("release", 2, 1), "withdraw": ("withdraw", 2, None)}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("killed")) as one:
        yield one


def with_two_releases(service: Service, name: str) -> tuple[str, list[int]]:
    """A document with two releases and a third version that is ready; its digest, the releases' numbers."""
    assert service.imported("acme/base", name=name)["state"] == "succeeded"
    numbers = []
    for value in (0.1, 0.2, 0.3):
        patch = {"parameters": {"temperature": value}}
        service.edit(name, patch).raise_for_status()
        validated(service, name)
        numbers.append(service.approve(name, publish=value < 0.3).raise_for_status().json()["version"])
    return str(service.config(name)["digest"]), numbers


def served(service: Service, name: str) -> tuple[int | None, float | None]:
    """The version that is served, and what the index has of it; the tables agree."""
    number = service.client.get(f"/v1/configs/{name}/history").json()["served"]
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
    digest, numbers = with_two_releases(service, name)
    values = {1: 0.1, 2: 0.2, 3: 0.3, None: None}
    assert served(service, name) == (numbers[1], values[before])
    bodies: dict[str, Any] = {"release": {"digest": digest}, "roll back": {"version": numbers[0]}}
    noted_before = noted(service, name, action)

    def ask() -> httpx.Response:
        return service.client.post(f"/v1/configs/{name}/{path}", json=bodies.get(action))

    def there(which: int | None) -> tuple[int | None, float | None]:
        return {1: numbers[0], 2: numbers[1], 3: numbers[2] + 1, None: None}[which], values[which]

    service.stop()
    service.start(*WORDS, by="tests.killer.victim", env={"KILL_AT": f"{action} {when}"})
    with pytest.raises(httpx.TransportError):
        ask()
    victim = service.processes[-1]
    assert service.wait(victim.poll) == -9
    service.start()
    assert served(service, name) == there(before if when == "written" else after)
    again = ask()
    assert again.status_code == 200, again.text
    assert served(service, name) == there(after)
    assert noted(service, name, action) == noted_before + 1
