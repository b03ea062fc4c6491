"""Rechecks over REST: what an import of each document would change, on the document and in the job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.commandline import BASE, CHAT
from tests.hubserver import Fault, Repo
from tests.publishing import published
from tests.rechecking import WARM
from tests.serving import Service, problem, running

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("recheck"), "--no-validate", "--rate", "0") as one:
        yield one


def imported(service: Service, name: str, files: Any = BASE, **options: Any) -> Repo:
    """A document of a repository of its own."""
    repo = service.hub.repos[f"acme/{name}"] = Repo(files)
    job = service.imported(f"acme/{name}", name=name, **options)
    assert job["state"] == "succeeded", job
    return repo


def rechecked(service: Service, *names: str, **asked: Any) -> dict[str, Any]:
    """A recheck that has ended: its documents by name."""
    answer = service.client.post("/v1/recheck", json={"names": [*names], **asked})
    assert (answer.status_code, answer.json()["kind"]) == (202, "recheck"), answer.text
    job = service.ended(answer.json()["id"])
    assert job["state"] == "succeeded", job
    found = service.client.get(f"/v1/recheck/{job['id']}").json()
    assert found["counts"] == job["result"]["outcomes"]
    return {item["name"]: item for item in found["items"]}


def shown(service: Service, name: str) -> Any:
    """The last recheck, as a reviewer of the document has it."""
    return service.client.get(f"/v1/configs/{name}/review").json()["recheck"]


def differing(service: Service) -> set[str]:
    found = service.client.get("/v1/configs", params={"attention": "differs"}).json()
    return {one["name"] for one in found["items"]}


def test_what_an_import_would_change_stands_on_the_document_until_it_is_imported(service: Service) -> None:
    name = "moved"
    repo = imported(service, name)
    published(service, name)
    before = service.config(name)
    assert (rechecked(service, name)[name]["outcome"], shown(service, name)) == ("unchanged", None)
    new = repo.commit(WARM)
    found = rechecked(service, name)[name]
    now = service.config(name)
    assert (found["outcome"], now["attention"], differing(service)) == ("differs", ["differs"], {name})
    for told in ("attention", "checked_at"):
        before[told] = now[told]
    assert now == before  # a recheck changes no working copy, and nothing that is served
    assert shown(service, name) == found
    assert (found["version"], found["found"]["engine_version"]) == (before["version"], None)
    changes = {one["path"]: one for one in found["found"]["changes"]}
    preview = service.client.post(
        "/v1/imports/preview", json={"reference": f"acme/{name}", "backend": "vllm", "name": name}
    ).json()
    assert [one | {"why": changes[one["path"]]["why"]} for one in preview["changes"]] == [*changes.values()]
    assert changes["parameters.temperature"]["after"] == 0.7

    service.edit(name, {"parameters": {"top_p": 0.4}}).raise_for_status()
    assert (differing(service), shown(service, name)["version"]) == ({name}, before["version"])
    assert service.imported(f"acme/{name}", name=name)["state"] == "succeeded"
    assert (differing(service), shown(service, name)) == (set(), None)
    after = service.config(name)["data"]
    assert (after["parameters"]["temperature"], after["importer"]["revision"]) == (0.7, new)


def test_a_conflict_is_reported_in_advance(service: Service) -> None:
    name = "clash"
    repo = imported(service, name)
    service.edit(name, {"parameters": {"temperature": 0.5}}).raise_for_status()
    repo.commit(WARM)
    found = rechecked(service, name)[name]["found"]
    assert [(c["path"], c["mine"], c["theirs"]) for c in found["conflicts"]] == [
        ("parameters.temperature", 0.5, 0.7)
    ]
    assert {one["path"]: one["after"] for one in found["edits"]} == {"parameters.temperature": 0.5}
    asked = {"reference": f"acme/{name}", "backend": "vllm", "name": name}
    preview = service.client.post("/v1/imports/preview", json=asked).json()
    assert (preview["conflicts"], preview["edits"]) == (found["conflicts"], found["edits"])
    assert [one["path"] for one in preview["changes"]] == [one["path"] for one in found["changes"]]


def test_another_version_of_the_engine(service: Service) -> None:
    imported(service, "gemma-4-1b-it", CHAT, engine_version="0.14.1")
    imported(service, "small", BASE, backend="mlx")
    found = rechecked(service, "gemma-4-1b-it", "small", engine_version="0.33.0")
    assert {name: one["outcome"] for name, one in found.items()} == {
        "gemma-4-1b-it": "differs", "small": "left-out",
    }  # fmt: skip
    gemma = found["gemma-4-1b-it"]["found"]
    paths = {one["path"]: one.get("after") for one in gemma["changes"]}
    assert (paths["options.tool_parser"], gemma["engine_version"]) == ("gemma4", "0.33.0")
    assert "gemma-4-1b-it" in differing(service)
    refused = service.client.post("/v1/recheck", json={"engine_version": "0.99"})
    assert problem(refused, 422, "bad-value")["errors"][0]["pointer"] == "/engine_version"


def test_each_document_has_an_outcome_of_its_own(service: Service) -> None:
    for name in ("lost", "stays"):
        imported(service, name)
    del service.hub.repos["acme/lost"]
    found = rechecked(service, "lost", "stays")
    assert {name: one["outcome"] for name, one in found.items()} == {"lost": "differs", "stays": "unchanged"}
    assert shown(service, "lost")["found"]["refused"]["kind"] == "private"  # it needs a person, too
    service.client.delete("/v1/configs/lost", headers={"If-Match": "*"}).raise_for_status()
    wrong = service.client.post("/v1/recheck", json={"names": ["stays", "nothing"]})
    assert problem(wrong, 422, "bad-request")["errors"][0]["pointer"] == "/names/1"
    wrong = service.client.post("/v1/recheck", json={"backend": "zz"})
    assert problem(wrong, 422, "bad-value")["errors"][0]["pointer"] == "/backend"
    first = service.client.post("/v1/recheck", json={"q": "stays"})
    service.ended(first.json()["id"])
    url = f"/v1/recheck/{first.json()['id']}"
    page = service.client.get(url, params={"limit": 1}).json()
    assert (page["total"], page["next"], page["counts"]) == (1, None, {"unchanged": 1})
    assert service.client.get(url, params={"outcome": "differs"}).json()["items"] == []
    for path in (url, "/v1/jobs"):
        wrong = service.client.get(path, params={"cursor": "-----"})
        assert problem(wrong, 422, "bad-request")["errors"][0]["pointer"] == "/query/cursor"
    assert service.client.get(url, params={"cursor": "stays"}).json()["items"] == []
    problem(service.client.get("/v1/recheck/none"), 404, "no-such-job")


def test_a_hub_that_does_not_answer_costs_the_others_nothing(service: Service) -> None:
    imported(service, "unreachable")
    imported(service, "reachable")
    away = {"Location": "http://169.254.169.254/"}
    service.hub.faults.append(Fault("/api/models/acme/unreachable", 302, away))
    found = rechecked(service, "unreachable", "reachable")
    assert {name: one["outcome"] for name, one in found.items()} == {
        "unreachable": "failed", "reachable": "unchanged",
    }  # fmt: skip
    assert found["unreachable"]["error"]["kind"] == "refused-host"
