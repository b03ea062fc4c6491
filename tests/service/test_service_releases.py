"""Releases: the version that the gallery serves, withdrawals and roll-backs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml

from tests.publishing import keys_by_scopes, published, validated
from tests.serving import Service, fresh, problem, running

pytestmark = pytest.mark.slow
SCOPES = ("read", "import", "import+approve")
ALL = SCOPES[-1]
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


def test_a_version_is_served_until_another_one_is(service: Service) -> None:
    name = fresh(service, "steps")
    digest = approved(service, name, 0.1)
    assert entry(service, name) is None
    made = ask(service, ALL, "POST", f"{name}/release", json={"digest": digest, "note": "a day in staging"})
    first = made.json()
    assert (made.status_code, first["state"], first["reason"]) == (200, "published", None)
    assert first["release"] == first["version"]
    assert made.headers["ETag"] == service.etag(name) == f'"{first["version"]}"'
    assert temperature(service, name) == 0.1
    again = ask(service, ALL, "POST", f"{name}/release", json={"digest": digest})
    assert (again.status_code, again.json()) == (200, first)

    edited(service, name, 0.2)
    assert (service.config(name)["state"], temperature(service, name)) == ("stale", 0.1)
    second = approved(service, name, 0.3)
    assert temperature(service, name) == 0.1
    newer = ask(service, ALL, "POST", f"{name}/release", headers={"If-Match": service.etag(name)}).json()
    assert (temperature(service, name), newer["release"]) == (0.3, newer["version"])

    back = ask(service, ALL, "POST", f"{name}/release", json={"version": first["release"], "note": "loops"})
    assert (back.status_code, back.json()["release"]) == (200, first["release"])
    assert (temperature(service, name), service.config(name)["state"]) == (0.1, "ready")
    assert service.config(name)["digest"] == second  # the working copy stays as it is
    sheet = ask(service, "read", "GET", f"{name}/review").json()
    assert sheet["next"] == {"kind": "rolled-back", "fields": {"left": newer["release"]}}
    assert sheet["served"]["version"] == first["release"]
    history = ask(service, "read", "GET", f"{name}/history").json()
    assert history["served"] == first["release"]
    taken = ask(service, ALL, "POST", f"{name}/withdraw", json={"note": "loops"})
    assert (taken.status_code, taken.json()["release"]) == (200, None)
    assert entry(service, name) is None
    assert service.client.get(f"/gallery/{name}.yaml").status_code == 404
    assert ask(service, ALL, "POST", f"{name}/withdraw").json() == taken.json()  # nothing more to take
    versions = ask(service, "read", "GET", f"{name}/history").json()["versions"]
    actions = [
        (v["action"], v["why"]) for v in versions if v["action"] not in ("edit", "approve", "validate")
    ]
    assert actions[:-1] == [
        ("withdraw", "loops"), ("roll back", "loops"), ("release", None), ("release", "a day in staging"),
    ]  # fmt: skip
    logged = [e.details["release"] for e in service.audit() if e.target == name and "release" in e.details]
    assert logged == [first["release"], newer["release"], first["release"], first["release"]]


def test_a_roll_back_is_judged_as_a_release_is(service: Service) -> None:
    """Only a version that was approved and validated, or served already, and that nobody rejected since."""
    name = fresh(service, "judged")
    path = f"{name}/release"
    published(service, name)
    good = service.config(name)["release"]
    edited(service, name, 0.4)
    draft = service.config(name)["version"]
    edited(service, name, 0.5)
    said = problem(ask(service, ALL, "POST", path, json={"version": draft}), 409, "not-ready-to-release")
    assert "edited since" in said["detail"]
    assert said["detail"].startswith(f"version {draft} of {name} cannot be released")
    unvalidated = {"version": draft, "unvalidated": True}
    problem(ask(service, ALL, "POST", path, json=unvalidated), 409, "not-ready-to-release")
    problem(ask(service, ALL, "POST", path, json={"version": 99}), 404, "no-such-version")
    assert service.config(name)["release"] == good
    ask(service, ALL, "POST", f"{name}/withdraw").raise_for_status()
    assert ask(service, ALL, "POST", path, json={"version": good}).json()["release"] == good
    ask(service, "import", "POST", f"{name}/versions/{good}/restore", headers=ANY).raise_for_status()
    ask(service, ALL, "POST", f"{name}/withdraw").raise_for_status()
    ask(service, ALL, "POST", f"{name}/reject", json={"note": "loops"}).raise_for_status()
    edited(service, name, 0.6)
    said = problem(ask(service, ALL, "POST", path, json={"version": good}), 409, "not-ready-to-release")
    assert "loops" in said["detail"]
    assert entry(service, name) is None


def test_a_run_that_failed_since_keeps_an_earlier_version_of_the_same_data_out(service: Service) -> None:
    """Version by version the same text: the last run of it counts, whoever names an older one."""
    name = fresh(service, "failing")
    published(service, name)
    good = service.config(name)["release"]
    ask(service, ALL, "POST", f"{name}/withdraw").raise_for_status()
    validated(service, name, "the call came back as text")
    for body in ({"version": good}, {"version": good, "unvalidated": True}):
        answer = ask(service, ALL, "POST", f"{name}/release", json=body, headers=ANY)
        said = problem(answer, 409, "not-ready-to-release")
        assert "tool-call" in said["detail"]
    assert entry(service, name) is None
    ask(service, ALL, "DELETE", name, headers=ANY).raise_for_status()
    listed = service.client.get("/v1/configs", params={"deleted": "true"}).json()["items"]
    assert not [one for one in listed if one["name"] == name and "entry" in one["links"]]


def test_an_approver_may_release_without_a_validation_and_it_is_recorded(service: Service) -> None:
    """Most models are imported where their hardware is not; who decided it stands in the audit log."""
    name = fresh(service, "cardless")
    asked = {"unvalidated": True, "note": "ran on the card of ann"}

    def release(scopes: str = ALL, **asked: Any) -> httpx.Response:
        digest = service.config(name)["digest"]
        return ask(service, scopes, "POST", f"{name}/release", json={"digest": digest, **asked})

    problem(release(**asked), 409, "not-ready-to-release")
    service.approve(name, publish=False).raise_for_status()
    problem(release(), 409, "not-ready-to-release")
    problem(release("import", **asked), 403, "wrong-scope")
    assert entry(service, name) is None
    made = release(**asked).json()
    assert (made["state"], made["validation"]) == ("published", "never")
    assert "It is not validated." in entry(service, name)["description"]
    assert release(**asked).json()["release"] == made["release"]
    validated(service, name)
    assert "It is not validated." in entry(service, name)["description"]  # until it is released again
    made = release().json()
    assert "It is not validated." not in entry(service, name)["description"]
    assert release().json()["release"] == made["release"] == made["version"]
    edited(service, name, 0.4)
    service.approve(name, publish=False).raise_for_status()
    problem(release(), 409, "not-ready-to-release")
    assert release(**asked).json()["release"] != made["release"]
    rows = [row.details for row in service.audit() if row.target == name and row.action == "release"]
    assert [row.get("unvalidated") for row in rows if "release" in row] == [True, False, True]
    back = ask(service, ALL, "POST", f"{name}/release", json={"version": made["release"]})
    assert back.json()["release"] == made["release"]  # the decision holds for what was served


def test_a_release_keeps_what_was_reviewed(service: Service) -> None:
    name = fresh(service, "whole")
    published(service, name)
    receipt, before = ask(service, "read", "GET", f"{name}/receipt").json(), service.config(name)
    file = service.client.get(f"/gallery/{name}.yaml").text
    edited(service, name, 0.9)
    service.client.post(f"/v1/configs/{name}/reject", json={"note": "no"}).raise_for_status()
    number = service.config(name)["release"]
    assert ask(service, "read", "GET", f"{name}/versions/{number}").json()["text"] == before["text"]
    assert ask(service, "read", "GET", f"{name}/receipt", params={"version": number}).json() == receipt
    assert service.client.get(f"/gallery/{name}.yaml").text == file


def test_only_what_was_seen_is_released(service: Service) -> None:
    name = fresh(service, "seen")
    path, old = f"{name}/release", service.config(name)["digest"]
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
    first = ask(service, ALL, "POST", path, json={"digest": digest})
    second = ask(service, ALL, "POST", path, json={"digest": digest})
    assert (first.status_code, second.text) == (200, first.text)  # and no other version


def test_a_key_that_may_not_approve_changes_nothing_that_is_served(service: Service) -> None:
    name = fresh(service, "kept")
    published(service, name)
    before = entry(service, name)
    for scopes in ("read", "import"):
        for path in ("release", "withdraw", "approve", "reject"):
            body = {"note": "no"}
            refused = problem(ask(service, scopes, "POST", f"{name}/{path}", json=body), 403, "wrong-scope")
            assert "approve" in refused["hint"]
        problem(ask(service, scopes, "DELETE", name, headers=ANY), 403, "wrong-scope")
    edited(service, name, 0.5)
    patch = {"reference": "acme/base", "backend": "vllm", "name": name, "set": {"top_k": 7}}
    key = {"x-api-key": service.keys["import"]}
    job = service.client.post("/v1/imports", json=patch, headers=key).json()["id"]
    assert service.ended(job)["state"] == "succeeded"
    pending = service.client.patch(
        f"/v1/configs/{name}", json={"description": "mine"}, headers=key | {"If-Match": "*"}
    )
    assert pending.status_code == 200
    assert entry(service, name) == before
    number = service.config(name)["release"]
    assert ask(service, ALL, "POST", f"{name}/reject", json={"note": "no"}).json()["release"] == number
    assert entry(service, name) == before
    assert ask(service, ALL, "DELETE", name, headers=ANY).status_code == 204
    assert entry(service, name) is None
    fresh(service, name)  # another document under the same name
    assert service.config(name)["release"] is None


def test_an_approval_releases_what_is_validated(service: Service) -> None:
    name = fresh(service, "both")
    never = service.approve(name).json()
    assert (never["state"], never["release"]) == ("approved", None)  # nothing to release yet
    digest = service.config(name)["digest"]
    must = {"digest": digest, "publish": True}
    problem(ask(service, ALL, "POST", f"{name}/approve", json=must), 409, "not-ready-to-release")
    validated(service, name)
    assert service.config(name)["state"] == "ready"  # a validation alone releases nothing
    done = service.approve(name, note="fine").json()
    assert (done["state"], done["release"]) == ("published", done["version"])
    log = [e.action for e in service.audit() if e.target == name and e.action in ("approve", "release")]
    assert log[-2:] == ["release", "approve"]
    assert service.approve(name).json()["release"] == done["release"]  # served already


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
    refused = problem(ask(service, ALL, "POST", f"{name}/release", json=said), 409, "not-ready-to-release")
    assert "commit" in refused["detail"]
    assert refused["hint"].startswith("Correct that, or import the model again")


def test_a_commit_of_another_model_is_none(service: Service) -> None:
    name = fresh(service, "elsewhere")
    patch = {"parameters": {"model": "other/base"}}
    ask(service, "import", "PATCH", name, json=patch, headers=ANY).raise_for_status()
    validated(service, name)
    service.approve(name).raise_for_status()
    found = service.config(name)
    assert (found["state"], found["release"]) == ("validated", None)
    assert "commit" in found["reason"]
