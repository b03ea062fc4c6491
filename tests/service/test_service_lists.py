"""Lists of imports: a result for each line, and events with their figures."""

from __future__ import annotations

from typing import Any

import pytest

from tests.serving import Service, events, fresh, problem, service

__all__ = ["service"]
pytestmark = pytest.mark.slow


def ask(service: Service, **body: Any) -> Any:
    return service.client.post("/v1/imports", json={"backend": "vllm", **body})


def test_a_refused_line_refuses_only_itself(service: Service) -> None:
    lines: list[Any] = ["acme/base", "no owner", "", 5, "x" * 5000, "/etc", " other/base "]
    answer = ask(service, references=lines)
    assert answer.status_code == 207, answer.text
    job = answer.json()
    assert answer.headers["Location"] == job["links"]["self"]["href"]
    found = job["lines"]
    assert [line["line"] for line in found] == [1, 2, 3, 4, 5, 6, 7]
    assert [line["status"] for line in found] == [202, 422, 422, 422, 422, 422, 202]
    assert [line["job"] is None for line in found] == [False, True, True, True, True, True, False]
    for place, line in enumerate(found):
        if line["error"] is not None:
            assert {one["pointer"] for one in line["error"]["errors"]} == {f"/references/{place}"}
            assert line["error"]["status"] == line["status"]
    assert found[5]["error"]["kind"] == "no-directories"
    done = service.ended(job["id"])
    assert (done["state"], done["counts"]) == ("succeeded", {"succeeded": 2})
    assert done["request"] == {"backend": "vllm", "references": ["acme/base", "other/base"]}
    assert [line["line"] for line in done["refused"]] == [2, 3, 4, 5, 6]
    assert [line["error"] for line in done["refused"]] == [line["error"] for line in found[1:6]]


def test_a_list_without_a_line_that_can_be_imported_is_refused(service: Service) -> None:
    before = service.client.get("/v1/jobs").json()["items"]
    nothing = problem(ask(service, references=["no owner", "none either"]), 422, "bad-reference")
    assert [one["pointer"] for one in nothing["errors"]] == ["/references/0", "/references/1"]
    odd = problem(ask(service, references=["acme/base", "no owner"], device="tpu"), 422, "unknown-device")
    assert [one["pointer"] for one in odd["errors"]] == ["/device"]
    assert service.client.get("/v1/jobs").json()["items"] == before


def test_events_have_the_step_its_place_and_what_is_done(service: Service) -> None:
    job = ask(service, references=["acme/base", "no owner", "other/base"]).json()
    with service.client.stream("GET", f"/v1/jobs/{job['id']}/events") as stream:
        found = [*events(stream)]
    steps = [one["data"] for one in found if one["event"] == "step" and one["data"]["job"] != job["id"]]
    assert {(one["step"], one["number"], one["of"]) for one in steps} == {
        ("resolve", 1, 4), ("decide", 2, 4), ("prove", 3, 4), ("store", 4, 4),
    }  # fmt: skip
    own = [one["data"] for one in found if one["event"] == "progress" and one["data"]["job"] == job["id"]]
    shown = [(one["done"], one["total"], one["unit"], one["passed"], one["failed"]) for one in own]
    assert shown == [(1, 2, "items", 1, 0), (2, 2, "items", 2, 0)]
    inner = [one["data"] for one in found if one["event"] == "progress" and one["data"]["job"] != job["id"]]
    assert all(one["step"] and one["message"] for one in inner)


def test_each_conflict_has_a_choice_of_its_own(service: Service) -> None:
    name = fresh(service, "conflicting", set={"temperature": 0.5, "top_p": 0.5})
    patch = {"parameters": {"temperature": 0.1, "top_p": 0.1}}
    service.edit(name, patch).raise_for_status()
    again = {"name": name, "set": {"temperature": 0.9, "top_p": 0.9}}
    failed = service.imported("acme/base", **again)
    assert (failed["state"], failed["error"]["kind"]) == ("waiting", "conflict")
    paths = ["parameters.temperature", "parameters.top_p"]
    assert failed["error"]["conflicts"] == [
        {"path": p, "base": 0.5, "mine": 0.1, "theirs": 0.9} for p in paths
    ]
    assert "/tmp" not in str(failed["error"])
    half = service.imported("acme/base", **again, on_conflict={paths[0]: "theirs"})
    assert [one["path"] for one in half["error"]["conflicts"]] == [paths[1]]
    retried = service.client.post(
        f"/v1/jobs/{failed['id']}/retry", json={"take": "theirs", "on_conflict": {paths[1]: "mine"}}
    )
    assert service.ended(retried.json()["id"])["state"] == "succeeded"
    parameters = service.config(name)["data"]["parameters"]
    assert (parameters["temperature"], parameters["top_p"]) == (0.9, 0.1)
    wrong = ask(service, reference="acme/base", on_conflict={paths[0]: "yours"})
    assert [one["pointer"] for one in problem(wrong, 422, "bad-request")["errors"]] == [
        f"/on_conflict/{paths[0]}"
    ]
