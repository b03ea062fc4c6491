"""Rechecks over REST: what an import of a document would change, on the document and in the job."""

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


def asked(service: Service, name: str, **said: Any) -> dict[str, Any]:
    """A recheck that has ended."""
    answer = service.client.post(f"/v1/configs/{name}/recheck", json=said)
    assert (answer.status_code, answer.json()["kind"]) == (202, "recheck"), answer.text
    return service.ended(answer.json()["id"])


def rechecked(service: Service, name: str, **said: Any) -> str:
    """The outcome of a recheck."""
    job = asked(service, name, **said)
    assert job["state"] == "succeeded", job
    return str(job["result"]["outcome"])


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
    assert (rechecked(service, name), shown(service, name)) == ("unchanged", None)
    new = repo.commit(WARM)
    outcome, found = rechecked(service, name), shown(service, name)
    now = service.config(name)
    assert (outcome, now["attention"], differing(service)) == ("differs", ["differs"], {name})
    for told in ("attention", "checked_at"):
        before[told] = now[told]
    assert now == before  # a recheck changes no working copy, and nothing that is served
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
    assert rechecked(service, name) == "differs"
    found = shown(service, name)["found"]
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
    found = {name: rechecked(service, name, engine_version="0.33.0") for name in ("gemma-4-1b-it", "small")}
    assert found == {"gemma-4-1b-it": "differs", "small": "left-out"}
    gemma = shown(service, "gemma-4-1b-it")["found"]
    paths = {one["path"]: one.get("after") for one in gemma["changes"]}
    assert (paths["options.tool_parser"], gemma["engine_version"]) == ("gemma4", "0.33.0")
    assert "gemma-4-1b-it" in differing(service)
    refused = service.client.post("/v1/configs/small/recheck", json={"engine_version": "0.99"})
    said = problem(refused, 422, "bad-value")
    assert (said["errors"][0]["pointer"], "mlx" in said["detail"]) == ("/engine_version", True)


def test_a_model_that_is_gone_is_a_difference_and_a_hub_that_fails_is_a_failure(service: Service) -> None:
    for name in ("lost", "unreachable"):
        imported(service, name)
    del service.hub.repos["acme/lost"]
    assert rechecked(service, "lost") == "differs"
    assert shown(service, "lost")["found"]["refused"]["kind"] == "private"  # it needs a person, too
    service.client.delete("/v1/configs/lost", headers={"If-Match": "*"}).raise_for_status()
    problem(service.client.post("/v1/configs/lost/recheck"), 404, "no-such-document")
    away = {"Location": "http://169.254.169.254/"}
    service.hub.faults.append(Fault("/api/models/acme/unreachable", 302, away))
    failed = asked(service, "unreachable")
    assert (failed["state"], failed["error"]["kind"]) == ("failed", "refused-host")
