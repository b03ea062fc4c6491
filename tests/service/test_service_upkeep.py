"""Upkeep over REST: earlier versions and deleted documents that come back, and equal validations."""

from __future__ import annotations

from typing import Any

import pytest

from tests.commandline import BASE
from tests.hubserver import Repo
from tests.publishing import published
from tests.serving import Service, problem

pytestmark = pytest.mark.slow
ANY = {"If-Match": "*"}


def imported(service: Service, name: str) -> Repo:
    """A document of a repository of its own."""
    repo = service.hub.repos[f"acme/{name}"] = Repo(BASE)
    job = service.imported(f"acme/{name}", name=name)
    assert job["state"] == "succeeded", job
    return repo


def test_an_earlier_version_is_restored_and_a_rejection_of_it_stays(service: Service) -> None:
    name = "restored"
    imported(service, name)
    first = service.config(name)
    published(service, name)
    served = service.config(name)["release"]
    service.edit(name, {"parameters": {"temperature": 0.1}})
    url = f"/v1/configs/{name}/versions/1/restore"
    problem(service.client.post(url), 428, "precondition-required")
    problem(service.client.post(url, headers={"If-Match": '"1"'}), 412, "precondition-failed")
    problem(service.client.post(url.replace("/1/", "/99/"), headers=ANY), 404, "no-such-version")
    back = service.client.post(url, json={"note": "better"}, headers={"If-Match": service.etag(name)})
    assert back.status_code == 200, back.text
    now = service.config(name)
    assert (now["text"], now["digest"], now["release"]) == (first["text"], first["digest"], served)
    assert now["review"] == "draft"  # an importer's key brings no approval back
    history = service.client.get(f"/v1/configs/{name}/history").json()
    assert history["versions"][0]["action"] == "restore"
    assert len(history["reviews"]) == 1
    service.client.post(f"/v1/configs/{name}/reject", json={"note": "no"}).raise_for_status()
    service.edit(name, {"parameters": {"temperature": 0.3}})
    service.client.post(url, headers=ANY).raise_for_status()
    assert service.config(name)["state"] == "rejected"


def test_a_deleted_document_is_brought_back(service: Service) -> None:
    name = "undeleted"
    imported(service, name)
    published(service, name)
    before = service.config(name)
    service.client.delete(f"/v1/configs/{name}", headers=ANY).raise_for_status()

    def deleted() -> list[dict[str, Any]]:
        found = service.client.get("/v1/configs", params={"deleted": True}).json()
        return [one for one in found["items"] if one["name"] == name]

    [row] = deleted()
    assert (row["name"], row["state"], row["release"]) == (name, "deleted", None)
    url = f"/v1/configs/{name}/versions/{row['version']}/restore"
    problem(service.client.post(url, headers={"If-Match": '"1"'}), 412, "precondition-failed")
    answer = service.client.post(url, json={"note": "a mistake"}, headers={"If-Match": f'"{row["version"]}"'})
    assert answer.status_code == 200, answer.text
    after = service.config(name)
    assert (after["text"], after["review"], after["release"]) == (before["text"], "approved", None)
    assert deleted() == []
    service.client.delete(f"/v1/configs/{name}", headers=ANY).raise_for_status()
    older = service.client.post(url.replace(f"/{row['version']}/", "/1/"), headers=ANY).json()
    assert (older["review"], older["release"]) == ("draft", None)  # an earlier version begins anew
    nothing = service.client.post("/v1/configs/nothing/versions/1/restore", headers=ANY)
    problem(nothing, 404, "no-such-document")


def test_equal_validations_are_one_job_while_it_waits(service: Service) -> None:
    name = "once"
    imported(service, name)
    url = f"/v1/configs/{name}/validate"
    first, second = (service.client.post(url).json() for _ in range(2))
    assert (second["id"], first.get("merged"), second["merged"]) == (first["id"], None, True)
    other = service.client.post(url, json={"fetch": False}).json()
    assert other["id"] != first["id"]
    thorough = service.client.post(url, json={"thorough": True}).json()
    assert thorough["id"] not in (first["id"], other["id"])
    assert service.client.post(url, json={"thorough": True}).json()["merged"] is True
    problem(service.client.post(url, json={"thorough": "often"}), 422, "bad-request")
    service.edit(name, {"parameters": {"temperature": 0.1}})
    assert service.client.post(url).json()["id"] not in (first["id"], other["id"])  # other data
    service.client.post(f"/v1/jobs/{first['id']}/cancel").raise_for_status()
