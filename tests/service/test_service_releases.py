"""Releases: the working copy that is promoted, what the gallery serves, withdrawals and roll-backs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml

from importer.storage import audit
from tests.publishing import gallery_of, keys_by_scopes, published, validated
from tests.serving import Service, fresh, problem, running

pytestmark = pytest.mark.slow
SCOPES = ("read", "import", "import+approve", "publish", "import+approve+publish")
ALL = SCOPES[-1]
MOST = ("import", "import+approve")  # what changes nothing that is served
ANY = {"If-Match": "*"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server that needs keys."""
    folder = tmp_path_factory.mktemp("releases")
    made = keys_by_scopes(folder, *SCOPES)
    with running(folder, "--host", "0.0.0.0", "--rate", "0") as one:
        one.client.headers["x-api-key"] = made[ALL]
        one.keys = made
        yield one


def ask(service: Service, scopes: str, method: str, path: str, **said: Any) -> httpx.Response:
    headers = {"x-api-key": service.keys[scopes], **said.pop("headers", {})}
    return service.client.request(method, f"/v1/configs/{path}", headers=headers, **said)


def entry(service: Service, name: str) -> Any:
    """The item of the index, as LocalAI reads it; nothing without one."""
    items = yaml.safe_load(service.client.get("/gallery/index.yaml").text)
    return next((item for item in items if item["name"] == name), None)


def temperature(service: Service, name: str) -> float | None:
    """The value that LocalAI is given."""
    found = entry(service, name)
    return None if found is None else found["config_file"]["parameters"]["temperature"]


def edited(service: Service, name: str, value: float) -> None:
    patch = {"parameters": {"temperature": value}}
    ask(service, "import", "PATCH", name, json=patch, headers=ANY).raise_for_status()


def approved(service: Service, name: str, value: float) -> str:
    """An edit that was validated and approved, and not released; its digest."""
    edited(service, name, value)
    validated(service, name)
    service.approve(name, publish=False).raise_for_status()
    found = service.config(name)
    assert (found["state"], found["reason"]) == ("ready", "it is ready to be released")
    return str(found["digest"])


def test_the_last_release_is_served_until_another_one_is(service: Service) -> None:
    name = fresh(service, "steps")
    releases = f"{name}/releases"
    empty = {"items": [], "served": None, "total": 0, "next": None}
    assert ask(service, "read", "GET", releases).json() == empty
    digest = approved(service, name, 0.1)
    assert entry(service, name) is None
    made = ask(service, "publish", "POST", releases, json={"digest": digest, "note": "a day in staging"})
    assert (made.status_code, made.headers["Location"]) == (201, f"/v1/configs/{name}/releases/1")
    release, after = made.json()["release"], made.json()["config"]
    assert (release["release"], release["served"], release["by"]) == (1, True, "publish")
    assert (release["why"], release["digest"], release["changes"]) == ("a day in staging", digest, None)
    assert (after["state"], after["release"], after["reason"]) == ("published", 1, None)
    assert made.headers["ETag"] == service.etag(name) == f'"{release["version"]}"'
    assert temperature(service, name) == 0.1

    again = ask(service, "publish", "POST", releases, json={"digest": digest})
    assert (again.status_code, again.json()["release"]["release"]) == (200, 1)

    edited(service, name, 0.2)
    assert (service.config(name)["state"], temperature(service, name)) == ("stale", 0.1)
    second = approved(service, name, 0.3)
    assert temperature(service, name) == 0.1
    ask(service, "publish", "POST", releases, headers={"If-Match": service.etag(name)}).raise_for_status()
    assert temperature(service, name) == 0.3
    assert service.config(name)["release"] == 2

    back = ask(service, "publish", "POST", f"{releases}/1/rollback", json={"note": "loops"})
    assert (back.status_code, back.json()["release"]["served"]) == (200, True)
    assert (temperature(service, name), service.config(name)["state"]) == (0.1, "ready")
    assert service.config(name)["digest"] == second  # the working copy stays as it is
    ask(service, "publish", "POST", f"{releases}/2/withdraw", json={"note": "loops"}).raise_for_status()
    assert temperature(service, name) == 0.1
    problem(ask(service, "publish", "POST", f"{releases}/2/rollback"), 409, "withdrawn")
    problem(ask(service, "publish", "POST", f"{releases}/2/withdraw"), 409, "withdrawn")
    taken = ask(service, "publish", "POST", f"{releases}/1/withdraw")
    assert (taken.json()["release"]["served"], taken.json()["config"]["release"]) == (False, None)
    assert entry(service, name) is None
    assert service.client.get(f"/gallery/{name}.yaml").status_code == 404

    listed = ask(service, "read", "GET", releases).json()
    assert (listed["served"], listed["total"], listed["next"]) == (None, 2, None)
    assert [r["release"] for r in listed["items"]] == [2, 1]
    assert listed["items"][0]["withdrawn"]["why"] == "loops"
    assert listed["items"][0]["changes"] == [{"path": "parameters.temperature", "before": 0.1, "after": 0.3}]
    page = ask(service, "read", "GET", releases, params={"limit": 1}).json()
    assert (page["next"], page["items"]) == ("2", listed["items"][:1])
    rest = ask(service, "read", "GET", releases, params={"limit": 1, "cursor": 2}).json()
    assert (rest["next"], rest["items"]) == (None, listed["items"][1:])
    actions = [v["action"] for v in ask(service, "read", "GET", f"{name}/history").json()["versions"]]
    assert [a for a in actions if a not in ("edit", "approve", "validate", "import")] == [
        "withdraw", "roll back", "release", "release",
    ]  # fmt: skip


def test_an_approver_may_release_without_a_validation_and_it_is_recorded(service: Service) -> None:
    """Most models are imported where their hardware is not; who decided it stands in the audit log."""
    name = fresh(service, "cardless")
    releases, asked = f"{name}/releases", {"unvalidated": True, "note": "ran on the card of ann"}

    def release(scopes: str = ALL, **asked: Any) -> httpx.Response:
        return ask(
            service, scopes, "POST", releases, json={"digest": service.config(name)["digest"], **asked}
        )

    problem(release(**asked), 409, "not-ready-to-release")
    service.approve(name, publish=False).raise_for_status()
    problem(release(), 409, "not-ready-to-release")
    problem(release("publish", **asked), 403, "wrong-scope")
    assert entry(service, name) is None
    made = release(**asked)
    assert (made.status_code, made.json()["release"]["why"]) == (201, asked["note"])
    found = service.config(name)
    assert (found["state"], found["validation"], found["release"]) == ("published", "never", 1)
    assert "It is not validated." in entry(service, name)["description"]
    assert release(**asked).status_code == 200
    edited(service, name, 0.4)
    service.approve(name, publish=False).raise_for_status()
    problem(release(), 409, "not-ready-to-release")
    assert release(**asked).status_code == 201
    with gallery_of(service) as gallery, gallery.database.reading() as connection:
        rows = audit.page(connection, 20, chosen=audit.AuditFilter(action="release", subject=name))
    assert [row["details"].get("unvalidated") for row in rows if "release" in row["details"]] == [True, True]

    ask(service, ALL, "POST", f"{releases}/1/rollback").raise_for_status()
    word = {"digest": service.config(name)["digest"], "note": "loops"}
    ask(service, ALL, "POST", f"{name}/reject", json=word).raise_for_status()
    problem(ask(service, ALL, "POST", f"{releases}/2/rollback"), 409, "not-ready-to-release")


def test_a_release_keeps_what_was_reviewed(service: Service) -> None:
    name = fresh(service, "whole")
    published(service, name)
    receipt = ask(service, "read", "GET", f"{name}/receipt").json()
    before = service.config(name)
    edited(service, name, 0.9)
    service.client.post(f"/v1/configs/{name}/reject", json={"note": "no"}).raise_for_status()
    release = ask(service, "read", "GET", f"{name}/releases/1").json()
    assert (release["text"], release["data"]) == (before["text"], before["data"])
    assert release["revision"] == before["data"]["importer"]["revision"]
    assert ask(service, "read", "GET", f"{name}/releases/1/receipt").json() == receipt
    shown = service.client.get(f"/v1/configs/{name}/export/localai-gallery").json()
    assert release["losses"] == before["losses"]  # what a reviewer is shown
    assert [loss["message"] for loss in before["losses"]] == shown["lost"]
    assert {loss["effect"] for loss in before["losses"]} >= {"added"}
    problem(ask(service, "read", "GET", f"{name}/releases/2"), 404, "no-such-release")
    problem(ask(service, "read", "GET", "nothing/releases"), 404, "no-such-document")


def test_only_what_was_seen_is_released(service: Service) -> None:
    name = fresh(service, "seen")
    path, old = f"{name}/releases", service.config(name)["digest"]
    for unseen in ({}, {"json": {"note": "fine"}}, {"headers": ANY}):
        said = problem(ask(service, ALL, "POST", path, **unseen), 428, "digest-required")
        assert said["errors"][0]["pointer"] == "/digest"
        assert "GET /v1/configs/seen" in said["hint"]
    draft = problem(ask(service, ALL, "POST", path, json={"digest": old}), 409, "not-ready-to-release")
    assert "draft" in draft["detail"]
    tag = service.etag(name)
    digest = approved(service, name, 0.1)
    changed = problem(ask(service, ALL, "POST", path, json={"digest": old}), 409, "changed")
    assert changed["errors"][0]["pointer"] == "/digest"
    problem(ask(service, ALL, "POST", path, headers={"If-Match": tag}), 412, "precondition-failed")
    bad = problem(ask(service, ALL, "POST", path, json={"digest": "x"}), 422, "bad-request")
    assert bad["errors"][0]["pointer"] == "/digest"
    assert entry(service, name) is None
    key = {"Idempotency-Key": "once"}
    first = ask(service, ALL, "POST", path, json={"digest": digest}, headers=key)
    second = ask(service, ALL, "POST", path, json={"digest": digest}, headers=key)
    assert (first.status_code, second.text) == (201, first.text)
    assert second.headers["Idempotency-Replayed"] == "true"
    assert ask(service, "read", "GET", path).json()["total"] == 1


def test_a_key_that_may_not_publish_changes_nothing_that_is_served(service: Service) -> None:
    name = fresh(service, "kept")
    published(service, name)
    before = entry(service, name)
    for scopes in ("read", *MOST):
        for path in ("releases", "releases/1/withdraw", "releases/1/rollback"):
            refused = problem(ask(service, scopes, "POST", f"{name}/{path}", json={}), 403, "wrong-scope")
            assert "publish" in refused["hint"]
    for scopes in MOST:
        edited(service, name, 0.5)
        patch = {"reference": "acme/base", "backend": "vllm", "name": name, "set": {"top_k": 7}}
        key = {"x-api-key": service.keys[scopes]}
        job = service.client.post("/v1/imports", json=patch, headers=key).json()["id"]
        assert service.ended(job)["state"] == "succeeded"
        pending = service.client.patch(
            f"/api/models/config-json/{name}", json={"description": "mine"}, headers=key
        )
        assert pending.status_code == 200
        assert entry(service, name) == before
    validated(service, name)
    digest = service.config(name)["digest"]
    said = {"digest": digest, "publish": True}
    problem(ask(service, "import+approve", "POST", f"{name}/approve", json=said), 403, "wrong-scope")
    assert service.config(name)["review"] != "approved"
    done = ask(service, "import+approve", "POST", f"{name}/approve", json={"digest": digest})
    assert (done.json()["state"], done.json()["release"]) == ("ready", 1)
    refused = ask(service, "import+approve", "POST", f"{name}/reject", json={"note": "no"})
    assert refused.json()["state"] == "rejected"
    problem(ask(service, "import+approve", "DELETE", name, headers=ANY), 403, "wrong-scope")
    assert entry(service, name) == before
    assert ask(service, ALL, "DELETE", name, headers=ANY).status_code == 204
    assert entry(service, name) is None
    fresh(service, name)  # another document under the same name
    problem(ask(service, ALL, "POST", f"{name}/releases/1/rollback"), 409, "withdrawn")
    assert service.config(name)["release"] is None


def test_an_approval_by_a_key_that_may_publish_releases(service: Service) -> None:
    name = fresh(service, "both")
    never = service.approve(name).json()
    assert (never["state"], never["release"]) == ("approved", None)  # nothing to release yet
    digest = service.config(name)["digest"]
    must = {"digest": digest, "publish": True}
    problem(ask(service, ALL, "POST", f"{name}/approve", json=must), 409, "not-ready-to-release")
    validated(service, name)
    assert service.config(name)["state"] == "ready"  # a validation alone releases nothing
    done = service.approve(name, note="fine").json()
    assert (done["state"], done["release"]) == ("published", 1)
    release = ask(service, "read", "GET", f"{name}/releases/1").json()
    assert (release["by"], release["why"], release["version"]) == (ALL, "fine", done["version"])
    log = [e for e in gallery_log(service, name) if e["action"] in ("approve", "release")]
    assert [e["action"] for e in log[:2]] == ["approve", "release"]
    assert service.approve(name).json()["release"] == 1  # served already: no second release of it


def gallery_log(service: Service, name: str) -> list[dict[str, Any]]:
    """The entries of the audit log, the newest first."""
    from importer.storage import audit

    with gallery_of(service) as gallery, gallery.database.reading() as connection:
        return [e for e in audit.page(connection, 1000) if e["subject"] == name]


def test_a_document_without_a_commit_is_not_released(service: Service) -> None:
    name = fresh(service, "loose")
    text = service.config(name)["text"]
    data = yaml.safe_load(text)
    del data["importer"]["revision"]
    data.pop("artifacts", None)
    put = service.client.put(f"/v1/configs/{name}", json=data, headers=ANY)
    assert put.status_code == 200, put.text
    validated(service, name)
    service.approve(name).raise_for_status()
    found = service.config(name)
    assert (found["state"], found["release"]) == ("validated", None)
    said = {"digest": found["digest"]}
    refused = problem(ask(service, ALL, "POST", f"{name}/releases", json=said), 409, "not-ready-to-release")
    assert "commit" in refused["detail"]


def test_a_commit_of_another_model_is_none(service: Service) -> None:
    name = fresh(service, "elsewhere")
    patch = {"parameters": {"model": "other/base"}}
    ask(service, "import", "PATCH", name, json=patch, headers=ANY).raise_for_status()
    validated(service, name)
    service.approve(name).raise_for_status()
    found = service.config(name)
    assert (found["state"], found["release"]) == ("validated", None)
    assert "commit" in found["reason"]
