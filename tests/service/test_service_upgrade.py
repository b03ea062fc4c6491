"""Another version of an engine over REST: a job, findings by cause, many accepted or rejected together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.commandline import CHAT
from tests.hubserver import Repo
from tests.serving import Service, problem, running

pytestmark = pytest.mark.slow
GEMMAS = 3


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server with three equal models of a family that vLLM 0.14.1 has no parser for, and one without."""
    repos = {f"google/gemma-4-{n}b-it": Repo(CHAT) for n in range(GEMMAS)}
    with running(tmp_path_factory.mktemp("upgrade"), "--no-validate", "--rate", "0", **repos) as one:
        for repo in repos:
            assert one.imported(repo, engine_version="0.14.1")["state"] == "succeeded"
        assert one.imported("acme/base", engine_version="0.14.1")["state"] == "succeeded"
        yield one


def begun(service: Service, **said: Any) -> str:
    answer = service.client.post("/v1/recheck", json={"engine": "vllm@0.32.0", **said})
    assert (answer.status_code, answer.json()["kind"]) == (202, "recheck"), answer.text
    return str(answer.json()["id"])


def rechecked(service: Service, **said: Any) -> dict[str, Any]:
    job = service.ended(begun(service, **said))
    assert job["state"] == "succeeded", job
    return job


def groups(service: Service, **filters: Any) -> dict[str, dict[str, Any]]:
    answer = service.client.get("/v1/upkeep/groups", params=filters)
    assert answer.status_code == 200, answer.text
    return {",".join(g["cause"].get("keys", [])) or g["cause"]["what"]: g for g in answer.json()["groups"]}


def test_findings_by_cause_are_accepted_and_rejected_together(service: Service) -> None:
    asked = service.hub.asked
    job = rechecked(service)
    assert service.hub.asked == asked  # from caches alone
    assert (job["result"]["documents"], job["result"]["outcomes"]) == (4, {"found": 4})
    found = groups(service, job=job["id"])
    better, memory = found["tool_parser"], found["fit"]  # each version has rules of its own
    assert (better["cause"]["what"], better["cause"]["after"]) == ("parser-better", "gemma4")
    assert (better["documents"], better["conflicts"], better["refused"]) == (GEMMAS, 0, 0)
    assert memory["documents"] == GEMMAS + 1
    (base,) = (one for one in service.client.get("/v1/upkeep").json()["items"] if one["name"] == "base")
    listed = service.client.get("/v1/upkeep", params={"cause": "parser-better"}).json()
    assert {one["name"] for one in listed["items"]} == {f"gemma-4-{n}b-it" for n in range(GEMMAS)}
    assert listed["items"][0]["kinds"][0] == "parser-better"

    first, *others = better["findings"]
    whole = service.client.get(f"/v1/upkeep/{first}").json()
    assert "tool_parser:gemma4" in whole["proposals"]["any"]["text"]
    service.client.post(f"/v1/upkeep/{first}/reject", json={"note": "not now"}).raise_for_status()
    accepted = [service.client.post(f"/v1/upkeep/{one}/accept") for one in (*others, base["id"])]
    assert groups(service) == {}
    for answer in accepted:
        config = service.config(answer.raise_for_status().json()["finding"]["name"])
        assert (config["data"]["importer"]["engine"]["version"], config["state"]) == ("0.32.0", "draft")
    assert rechecked(service)["result"]["outcomes"] == {"rejected": 1, "unchanged": GEMMAS}


def test_a_value_that_the_version_refuses_is_not_accepted(service: Service) -> None:
    patch = {"engine_args": {"max_num_seqs": 4, "speculative_config": {"method": "medusa"}}}
    assert service.imported("acme/chat", engine_version="0.32.0")["state"] == "succeeded"
    service.edit("chat", patch).raise_for_status()
    rechecked(service, engine="vllm@0.33.0", names=["chat"])
    [one] = service.client.get("/v1/upkeep", params={"name": "chat"}).json()["items"]
    assert one["kinds"] == ["argument-changed", "refused"]
    assert "medusa" in one["refused"]["message"]
    problem(service.client.post(f"/v1/upkeep/{one['id']}/accept"), 422, "cannot-edit")
