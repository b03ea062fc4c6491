"""Upkeep over REST: rechecks, findings that are accepted or rejected, restores, and equal validations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from importer.storage import documents
from tests.commandline import BASE
from tests.hubserver import Repo
from tests.publishing import gallery_of, published
from tests.rechecking import WARM
from tests.serving import Service, problem, running

pytestmark = pytest.mark.slow
ANY = {"If-Match": "*"}
COLD = {**BASE, "generation_config.json": {"temperature": 0.2, "top_p": 0.9}}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server whose workers validate nothing, so that validations wait."""
    with running(tmp_path_factory.mktemp("upkeep"), "--no-validate", "--rate", "0") as one:
        yield one


def imported(service: Service, name: str) -> Repo:
    """A document of a repository of its own."""
    repo = service.hub.repos[f"acme/{name}"] = Repo(BASE)
    job = service.imported(f"acme/{name}", name=name)
    assert job["state"] == "succeeded", job
    return repo


def rechecked(service: Service, *names: str) -> dict[str, Any]:
    """A recheck that has ended: its documents by name."""
    answer = service.client.post("/v1/recheck", json={"names": [*names]})
    assert (answer.status_code, answer.json()["kind"]) == (202, "recheck"), answer.text
    job = service.ended(answer.json()["id"])
    assert job["state"] == "succeeded", job
    found = service.client.get(f"/v1/recheck/{job['id']}").json()
    assert found["counts"] == job["result"]["outcomes"]
    return {item["name"]: item for item in found["items"]}


def findings(service: Service, **filters: Any) -> list[dict[str, Any]]:
    answer = service.client.get("/v1/upkeep", params=filters)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def temperature(service: Service, name: str) -> float:
    return float(service.config(name)["data"]["parameters"]["temperature"])


def test_what_moved_waits_in_the_queue_and_is_accepted(service: Service) -> None:
    name = "moved"
    repo = imported(service, name)
    published(service, name)
    before, old = service.config(name), repo.sha
    assert rechecked(service, name)[name]["outcome"] == "unchanged"
    assert findings(service, name=name) == []
    new = repo.commit(WARM)
    found = rechecked(service, name)[name]
    assert found["outcome"] == "found"
    now = service.config(name)
    assert (now["findings"], now["attention"]) == (1, ["finding"])
    for told in ("findings", "attention", "checked_at"):
        before[told] = now[told]
    assert now == before  # a recheck changes no working copy, and nothing that is served
    [one] = findings(service, name=name, cause="commit")
    assert (one["id"], one["version"], one["kinds"]) == (found["finding"], before["version"], ["commit"])
    files = ["generation_config.json"]
    assert one["causes"] == [{"what": "commit", "before": old, "after": new, "files": files}]
    assert [(d["key"], d["before"], d["after"]) for d in one["decisions"]] == [
        ("parameters.temperature", 0.6, 0.7)
    ]
    assert findings(service, name=name, cause="weights") == []
    whole = service.client.get(f"/v1/upkeep/{one['id']}").json()
    assert whole["text"] == before["text"]
    proposal = whole["proposals"]["any"]
    assert yaml.safe_load(proposal["text"])["parameters"]["temperature"] == 0.7
    assert {c["path"] for c in proposal["changes"]} >= {"parameters.temperature", "importer.revision"}

    assert rechecked(service, name)[name] | {"at": None} == found | {"outcome": "known", "at": None}
    accepted = service.client.post(f"/v1/upkeep/{one['id']}/accept", json={"note": "warmer"})
    assert accepted.status_code == 200, accepted.text
    after = service.config(name)
    assert (after["text"], after["digest"]) == (proposal["text"], proposal["digest"])
    assert accepted.headers["ETag"] == service.etag(name)
    assert accepted.json()["finding"]["state"] == "accepted"
    assert (after["release"], after["state"], after["revision"]) == (1, "draft", new)
    [version, *_] = service.client.get(f"/v1/configs/{name}/history").json()["versions"]
    assert (version["action"], version["why"]) == ("accept", "warmer")
    problem(service.client.post(f"/v1/upkeep/{one['id']}/accept"), 409, "finding-settled")
    assert rechecked(service, name)[name]["outcome"] == "unchanged"


def test_what_was_rejected_is_shown_again_after_another_change(service: Service) -> None:
    name = "turned-down"
    repo = imported(service, name)
    repo.commit(WARM)
    first = rechecked(service, name)[name]["finding"]
    rejected = service.client.post(f"/v1/upkeep/{first}/reject", json={"note": "too warm"}).json()
    assert (rejected["state"], rejected["why"]) == ("rejected", "too warm")
    assert rechecked(service, name)[name]["outcome"] == "rejected"
    patch = {"parameters": {"top_p": 0.5}}  # an edit is no other change of the model
    service.edit(name, patch).raise_for_status()
    assert rechecked(service, name)[name]["outcome"] == "rejected"
    assert findings(service, name=name) == []
    repo.commit(COLD)
    assert rechecked(service, name)[name]["outcome"] == "found"
    states = [one["state"] for one in findings(service, name=name, state=["open", "rejected"])]
    assert states == ["open", "rejected"]
    repo.commit({**COLD, "LICENSE": "x"})
    assert rechecked(service, name)[name]["outcome"] == "found"  # another commit
    assert [o["state"] for o in findings(service, name=name, state=["superseded"])] == ["superseded"]


def test_a_conflict_needs_a_side_and_an_edit_outdates_a_finding(service: Service) -> None:
    name = "clash"
    repo = imported(service, name)
    patch = {"parameters": {"temperature": 0.5}}
    service.edit(name, patch).raise_for_status()
    repo.commit(WARM)
    ident = rechecked(service, name)[name]["finding"]
    whole = service.client.get(f"/v1/upkeep/{ident}").json()
    assert [c["path"] for c in whole["conflicts"]] == ["parameters.temperature"]
    texts = {side: yaml.safe_load(one["text"]) for side, one in whole["proposals"].items()}
    assert {s: t["parameters"]["temperature"] for s, t in texts.items()} == {"mine": 0.5, "theirs": 0.7}
    told = problem(service.client.post(f"/v1/upkeep/{ident}/accept"), 409, "conflict")
    assert told["conflicts"][0]["theirs"] == 0.7

    service.edit(name, {"parameters": {"top_p": 0.4}})
    assert findings(service, name=name)[0]["outdated"] is True
    late = {"take": "theirs"}
    problem(service.client.post(f"/v1/upkeep/{ident}/accept", json=late), 409, "finding-outdated")
    assert rechecked(service, name)[name] | {"at": None} == {
        "name": name, "outcome": "known", "finding": ident, "error": None, "at": None,
    }  # fmt: skip
    service.client.post(f"/v1/upkeep/{ident}/accept", json=late).raise_for_status()
    data = service.config(name)["data"]["parameters"]
    assert (data["temperature"], data["top_p"]) == (0.7, 0.4)
    problem(service.client.get("/v1/upkeep/none"), 404, "no-such-finding")


def test_each_document_has_an_outcome_of_its_own(service: Service) -> None:
    for name in ("lost", "stays"):
        imported(service, name)
    del service.hub.repos["acme/lost"]
    found = rechecked(service, "lost", "stays")
    assert {name: one["outcome"] for name, one in found.items()} == {"lost": "found", "stays": "unchanged"}
    (gone,) = findings(service, name="lost", cause="refused")  # that a model is gone waits for a person, too
    assert gone["refused"]["kind"] == "private"
    wrong = service.client.post("/v1/recheck", json={"names": ["stays", "nothing"]})
    assert problem(wrong, 422, "bad-request")["errors"][0]["pointer"] == "/names/1"
    key = {"Idempotency-Key": "a recheck"}
    first, second = (service.client.post("/v1/recheck", json={"q": "stays"}, headers=key) for _ in range(2))
    assert first.json()["id"] == second.json()["id"]
    assert "Idempotency-Replayed" in second.headers
    service.ended(first.json()["id"])
    page = service.client.get(f"/v1/recheck/{first.json()['id']}", params={"limit": 1}).json()
    assert (page["total"], page["next"], page["counts"]) == (1, None, {"unchanged": 1})
    problem(service.client.get("/v1/recheck/none"), 404, "no-such-job")


def test_the_queue_has_pages_and_filters(service: Service) -> None:
    names = [f"page-{n}" for n in range(3)]
    for repo in [imported(service, name) for name in names]:
        repo.commit(WARM)
    rechecked(service, *names)
    seen: list[str] = []
    cursor = None
    while True:
        page = service.client.get(
            "/v1/upkeep", params={"limit": 2, **({"cursor": cursor} if cursor else {})}
        ).json()
        seen += [one["name"] for one in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert [name for name in seen if name in names] == [*reversed(names)]
    assert len(seen) == page["total"]
    problem(service.client.get("/v1/upkeep", params={"cause": "weather"}), 422, "bad-request")


def test_an_earlier_version_is_restored_and_a_rejection_of_it_stays(service: Service) -> None:
    name = "restored"
    imported(service, name)
    first = service.config(name)
    published(service, name)
    service.edit(name, {"parameters": {"temperature": 0.1}})
    url = f"/v1/configs/{name}/versions/1/restore"
    problem(service.client.post(url), 428, "precondition-required")
    problem(service.client.post(url, headers={"If-Match": '"1"'}), 412, "precondition-failed")
    problem(service.client.post(url.replace("/1/", "/99/"), headers=ANY), 404, "no-such-version")
    back = service.client.post(url, json={"note": "better"}, headers={"If-Match": service.etag(name)})
    assert back.status_code == 200, back.text
    now = service.config(name)
    assert (now["text"], now["digest"], now["release"]) == (first["text"], first["digest"], 1)
    assert now["review"] == "draft"  # an importer's key brings no approval back
    history = service.client.get(f"/v1/configs/{name}/history").json()
    assert history["versions"][0]["action"] == "restore"
    assert len(history["reviews"]) == 1
    service.client.post(f"/v1/configs/{name}/reject", json={"note": "no"}).raise_for_status()
    service.edit(name, {"parameters": {"temperature": 0.3}})
    service.client.post(url, headers=ANY).raise_for_status()
    assert service.config(name)["state"] == "rejected"


def test_a_deleted_document_is_brought_back_until_it_is_purged(service: Service) -> None:
    name = "undeleted"
    imported(service, name)
    published(service, name)
    problem(service.client.post(f"/v1/configs/{name}/undelete"), 409, "not-deleted")
    before = service.config(name)
    service.client.delete(f"/v1/configs/{name}", headers=ANY).raise_for_status()
    assert [one["name"] for one in service.client.get("/v1/deleted").json()["items"]] == [name]
    answer = service.client.post(f"/v1/configs/{name}/undelete", json={"note": "a mistake"})
    assert answer.status_code == 200, answer.text
    after = service.config(name)
    assert (after["text"], after["review"], after["release"]) == (before["text"], "approved", None)
    assert service.client.get("/v1/deleted").json()["total"] == 0
    problem(service.client.post("/v1/configs/nothing/undelete"), 404, "no-such-document")

    service.client.delete(f"/v1/configs/{name}", headers=ANY).raise_for_status()
    with gallery_of(service) as gallery, gallery.database.writing() as connection:
        assert documents.purge(connection, "2020-01-01T00:00:00+00:00", 9) == (0, set())
        assert documents.purge(connection, "2999-01-01T00:00:00+00:00", 9)[0] == 1
    problem(service.client.post(f"/v1/configs/{name}/undelete"), 404, "no-such-document")


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
