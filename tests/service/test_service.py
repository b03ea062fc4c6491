"""The service over HTTP: imports as jobs, documents with their versions, reviews, how failures are told."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
import yaml

from importer.service.http.query import JSON
from importer.service.problems import explained
from importer.service.security import json_fault
from tests.commandline import BASE
from tests.hubserver import Repo
from tests.serving import Service, events, fresh, problem, service

__all__ = ["service"]
pytestmark = pytest.mark.slow


def test_an_import_is_a_job_with_links_and_events(service: Service) -> None:
    answer = service.client.post("/v1/imports", json={"reference": "acme/chat", "backend": "vllm"})
    assert answer.status_code == 202
    job = answer.json()
    assert answer.headers["Location"] == job["links"]["self"]["href"] == f"/v1/jobs/{job['id']}"
    with service.client.stream("GET", job["links"]["events"]["href"]) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        seen = [*events(stream)]
    assert [e["data"]["step"] for e in seen if e["event"] == "step"] == [
        "resolve", "decide", "prove", "store",
    ]  # fmt: skip
    assert (seen[0]["event"], seen[-1]["event"]) == ("queued", "succeeded")
    numbers = [e["id"] for e in seen]
    assert numbers == sorted(set(numbers))
    ended = service.ended(job["id"])
    assert ended["result"]["config"] == "/v1/configs/chat"
    assert (ended["result"]["version"], ended["result"]["state"], ended["result"]["written"]) == (
        1, "draft", True,
    )  # fmt: skip

    behind = {"Last-Event-ID": str(numbers[2])}
    with service.client.stream("GET", job["links"]["events"]["href"], headers=behind) as stream:
        assert [e["id"] for e in events(stream)] == numbers[3:]
    for last in (numbers[-1], 2**31, 10**19):
        over = service.client.get(job["links"]["events"]["href"], headers={"Last-Event-ID": str(last)})
        assert over.status_code == 204


def test_the_document_is_the_one_that_the_command_line_writes(service: Service) -> None:
    fresh(service, "same")
    found = service.config("same")
    assert yaml.safe_load(found["text"]) == found["data"]
    assert found["data"]["parameters"] == {"model": "acme/base", "temperature": 0.6, "top_p": 0.9}
    receipt = service.client.get("/v1/configs/same/receipt").json()
    assert (receipt["schema"], receipt["digest"]) == (1, found["digest"])
    assert receipt["base"] == found["text"]
    told = service.client.get("/v1/configs/same/decisions").json()
    assert told["decisions"] == receipt["decisions"]
    assert any(e["rule"] == "generation-config" for e in told["evidence"])


def test_an_import_that_several_backends_could_take_asks(service: Service) -> None:
    answer = service.client.post("/v1/imports", json={"reference": "other/base", "name": "asked"})
    job = service.ended(answer.json()["id"])
    assert (job["state"], job["error"]["kind"]) == ("waiting", "ambiguous")
    assert [c["backend"] for c in job["error"]["candidates"]] == ["vllm", "mlx"]
    assert all(c["message"] and c["engine"] for c in job["error"]["candidates"])
    assert "retry" in job["error"]["hint"]
    listed = service.client.get("/v1/jobs", params={"state": "waiting"}).json()["items"]
    found = next(j for j in listed if j["id"] == job["id"])
    assert found == {key: value for key, value in job.items() if key != "progress"}
    shown = service.client.post("/v1/imports/preview", json={"reference": "other/base", "name": "asked"})
    assert problem(shown, 409, "ambiguous")["candidates"] == job["error"]["candidates"]
    assert service.client.get("/v1/configs/asked").status_code == 404
    again = service.client.post(job["links"]["retry"]["href"], json={"backend": "mlx"})
    assert again.status_code == 202
    ended = service.ended(job["id"])
    assert (ended["state"], ended["attempt"], ended["result"]["backend"]) == ("succeeded", 2, "mlx")
    stream = job["links"]["events"]["href"]
    with service.client.stream("GET", stream) as latest:
        seen = [(e["event"], e["data"]["attempt"]) for e in events(latest)]
    assert (seen[0], seen[-1]) == (("queued", 2), ("succeeded", 2))
    assert {attempt for _, attempt in seen} == {2}
    with service.client.stream("GET", stream, headers={"Last-Event-ID": "0"}) as whole:
        everything = [(e["event"], e["data"]["attempt"]) for e in events(whole)]
    assert everything.index(("waiting", 1)) < everything.index(("queued", 2))
    assert everything[-len(seen) :] == seen


def test_a_preview_writes_nothing(service: Service) -> None:
    said = {"reference": "acme/base", "name": "seen", "backend": "vllm", "set": {"temperature": 0}}
    found = service.client.post("/v1/imports/preview", json=said)
    assert found.status_code == 200, found.text
    assert found.json()["document"]["parameters"]["temperature"] == 0
    assert (found.json()["new"], found.json()["kept"]) == (True, {})
    assert service.client.get("/v1/configs/seen").status_code == 404
    assert service.imported(said.pop("reference"), **said)["state"] == "succeeded"
    again = {"reference": "acme/base", "name": "seen", "backend": "vllm"}
    kept = service.client.post("/v1/imports/preview", json=again).json()["kept"]
    assert kept == {"parameters.temperature": 0}
    let_go = service.client.post("/v1/imports/preview", json=again | {"unset": [*kept]}).json()
    assert (let_go["kept"], let_go["document"]["parameters"]["temperature"]) == ({}, 0.6)


def test_a_list_is_one_job_with_a_job_for_each(service: Service) -> None:
    references = ["acme/base", "no/such", "other/base"]
    answer = service.client.post("/v1/imports", json={"references": references, "backend": "vllm"})
    job = service.ended(answer.json()["id"])
    assert (job["kind"], job["state"], job["counts"]) == ("imports", "failed", {"failed": 1, "succeeded": 2})
    inside = service.client.get("/v1/jobs", params={"parent": job["id"], "limit": 2}).json()
    rest = service.client.get("/v1/jobs", params={"parent": job["id"], "cursor": inside["next"]}).json()
    found = inside["items"] + rest["items"]
    assert [j["request"]["reference"] for j in found] == references
    assert [j["state"] for j in found] == ["succeeded", "failed", "succeeded"]
    with service.client.stream("GET", job["links"]["events"]["href"]) as stream:
        seen = [*events(stream)]
    assert (seen[-1]["event"], seen[-1]["data"]["job"]) == ("failed", job["id"])
    assert {e["data"]["job"] for e in seen} == {job["id"], *(j["id"] for j in found)}


@pytest.mark.parametrize(
    ("body", "status", "kind", "pointer"),
    [
        ("{", 400, "bad-json", None),
        ({"reference": "../x"}, 422, "no-directories", "/reference"),
        ({"reference": "a/b/c"}, 422, "bad-reference", "/reference"),
        ({"reference": "a/b", "backend": "vllm", "set": {"engine_args.max_num_sqs": 1}}, 422,
         "unknown-setting", "/set/engine_args.max_num_sqs"),
        ({"reference": "a/b", "set": {"seed": 1, "top_p": "hot"}}, 422, "bad-value", "/set/top_p"),
        ({"reference": "a/b", "set": {"seed": 2**63}}, 422, "bad-value", "/set/seed"),
        ({"reference": "a/b", "on_conflict": {"parameters.temprature": "mine"}}, 422, "bad-request",
         "/on_conflict/parameters.temprature"),
        ('{"reference": "a/b", "reference": "a/c"}', 400, "bad-json", None),
        ('\ufeff{"reference": "a/b"}', 400, "bad-json", None),
        ({"reference": "a/b", "revision": "x..y"}, 422, "bad-value", "/revision"),
        ({"reference": "a/b@x..y"}, 422, "bad-reference", "/reference"),
        ({"reference": "a/b", "set": {"description": "a\0b"}}, 422, "bad-value", "/set/description"),
        ({"reference": "a/b", "device": "abacus"}, 422, "unknown-device", "/device"),
        ({"reference": "a/b", "backend": "mlx", "set": {"tool_parser": "hermess"}}, 422,
         "unknown-parser", "/set"),
        ({"reference": "a/b", "template": "/etc/passwd"}, 422, "bad-request", "/template"),
        ({"reference": "a/b", "odd": 1}, 422, "bad-request", "/odd"),
        ({"reference": "a/b", "references": ["a/b"]}, 422, "bad-request", ""),
    ],
)  # fmt: skip
def test_a_request_that_cannot_be_meant(
    service: Service, body: Any, status: int, kind: str, pointer: str
) -> None:
    headers = {"Content-Type": "application/json"}
    content = body if isinstance(body, str) else json.dumps(body)
    answer = service.client.post("/v1/imports", content=content, headers=headers)
    said = problem(answer, status, kind)
    assert pointer is None or said["errors"][0]["pointer"] == pointer
    assert service.client.get(said["type"]).json() == explained(kind)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"reference": "acme/base@v9"}, "/reference"),
        ({"reference": "acme/base", "revision": "v9"}, "/revision"),
    ],
)
def test_a_missing_revision_is_of_the_field_that_names_it(
    service: Service, body: dict[str, str], pointer: str
) -> None:
    said = problem(service.client.post("/v1/imports/preview", json=body), 404, "revision-not-found")
    assert said["errors"][0]["pointer"] == pointer


def test_what_is_not_there(service: Service) -> None:
    problem(service.client.get("/v1/nothing"), 404, "no-such-page")
    problem(service.client.delete("/v1/imports"), 405, "wrong-method")
    problem(service.client.get("/v1/jobs/none"), 404, "no-such-job")
    problem(service.client.get("/v1/configs/none"), 404, "no-such-document")
    problem(service.client.post("/v1/configs/none/approve"), 404, "no-such-document")


def test_a_job_is_cancelled_and_tried_again(service: Service) -> None:
    service.hub.latency = 3
    try:
        answer = service.client.post(
            "/v1/imports", json={"reference": "acme/base", "name": "c", "backend": "vllm"}
        )
        job = answer.json()["id"]
        done = service.client.post(f"/v1/jobs/{job}/cancel")
        assert (done.status_code, done.json()["state"]) == (200, "cancelled")
        problem(service.client.post(f"/v1/jobs/{job}/cancel"), 409, "has-ended")
    finally:
        service.hub.latency = 0
    assert service.client.get("/v1/configs/c").status_code == 404
    assert service.client.post(f"/v1/jobs/{job}/retry").status_code == 202
    assert service.ended(job)["state"] == "succeeded"
    assert service.client.get("/v1/configs/c").status_code == 200


def test_what_failed_of_a_list_is_tried_again(service: Service) -> None:
    body = {"references": ["acme/later", "acme/base", "acme/last"], "backend": "vllm"}
    job = service.client.post("/v1/imports", json=body).json()["id"]
    ended = service.ended(job)
    assert (ended["state"], ended["counts"]) == ("failed", {"failed": 2, "succeeded": 1})
    service.hub.repos |= {name: Repo(BASE) for name in ("acme/later", "acme/last")}
    again = service.client.post(ended["links"]["retry"]["href"])
    assert (again.status_code, again.json()["counts"]) == (202, {"queued": 2, "succeeded": 1})
    assert service.ended(job)["counts"] == {"succeeded": 3}
    items = service.client.get("/v1/jobs", params={"parent": job}).json()["items"]
    assert [one["attempt"] for one in items] == [2, 1, 2]
    of_one = service.client.get("/v1/jobs", params={"config": "later"}).json()["items"]
    assert [one["id"] for one in of_one] == [items[0]["id"]]
    assert "retry" not in items[0]["links"]
    problem(service.client.post(f"/v1/jobs/{job}/retry"), 409, "not-ended")


def test_a_stream_takes_any_last_event(service: Service) -> None:
    job = service.imported("acme/base", name="any")
    for last in ("99999999999999999999999999", "77"):
        answer = service.client.get(f"/v1/jobs/{job['id']}/events", headers={"Last-Event-ID": last})
        assert answer.status_code == 204
    for last in ("what somebody else's server called it", "-1", "1.5", "\u0663".encode()):
        with service.client.stream(
            "GET", f"/v1/jobs/{job['id']}/events", headers={"Last-Event-ID": last}
        ) as stream:
            assert next(events(stream))["id"] == 1


def test_a_gallerys_list_has_a_name_of_its_own(service: Service) -> None:
    service.hub.repos["acme/index"] = Repo(BASE)
    assert service.imported("acme/index")["config"] == "acme--index"
    body = {"reference": "acme/base", "backend": "vllm", "name": "index"}
    told = problem(service.client.post("/v1/imports", json=body), 422, "bad-value")
    assert told["errors"][0]["pointer"] == "/name"


def test_a_body_has_a_size_and_a_type(service: Service) -> None:
    body = {"reference": "acme/base", "backend": "vllm"}
    large = service.client.post("/v1/imports", content=b" " * 2_000_001)
    problem(large, 413, "body-too-large")
    chunks = service.client.post("/v1/imports", content=iter([b" " * 1_000_000] * 3))
    problem(chunks, 413, "body-too-large")
    odd = service.client.put(
        "/v1/configs/x", content="x", headers={"If-Match": "*", "Content-Type": "text/plain"}
    )
    problem(odd, 415, "wrong-type")
    form = {"Content-Type": "application/x-www-form-urlencoded"}  # what curl -d says by itself
    told = service.client.post("/v1/imports", content=json.dumps(body), headers=form)
    assert problem(told, 415, "wrong-type")["hint"] == "Send application/json."


def test_a_key_that_was_revoked_opens_nothing(service: Service) -> None:
    made = service.made_key("reader", "read")
    key = {"Authorization": f"Bearer {made['key']}"}
    assert service.client.get("/v1/configs", headers=key).status_code == 200
    service.revoke(made["id"])
    problem(service.client.get("/v1/configs", headers=key), 401, "no-key")


def test_a_body_is_plain_json_in_utf_8(service: Service) -> None:
    """What proxies, caches and logs read must be what the service reads."""
    body, send = b'{"reference": "a/b", "backend": "mlx"}', service.client.post
    for kind in ("application/merge-patch+json", "text/json", "text/plain"):
        problem(send("/v1/imports", content=body, headers={"Content-Type": kind}), 415, "wrong-type")
    for coded in (body.decode().encode("utf-16"), b'{"reference": "a/\xff"}'):
        problem(send("/v1/imports", content=coded, headers={"Content-Type": JSON}), 400, "bad-json")
    packed = {"Content-Type": JSON, "Content-Encoding": "gzip"}
    refused = problem(send("/v1/imports", content=gzip.compress(body), headers=packed), 415, "wrong-type")
    assert "Content-Encoding" in refused["detail"]
    typed = {"Content-Type": "Application/JSON; charset=utf-8", "Content-Encoding": "identity"}
    problem(send("/v1/imports", content=b'{"reference": 5}', headers=typed), 422, "bad-request")
    assert json_fault(b'{"a": [{"b": 1, "c": 2, "b": 3}]}') == "the key 'b' stands twice in one object"
    assert json_fault(b'[{"b": 1}, {"b": 2}]') is None
    problem(service.client.get("/v1/configs/"), 404, "no-such-page")


def test_an_edit_that_the_model_rules_out(service: Service) -> None:
    name = fresh(service, "of-four-heads")
    path, match = f"/v1/configs/{name}", {"If-Match": "*"}
    wrong = {"tensor_parallel_size": 3, "max_model_len": 10**7}
    refused = problem(service.client.patch(path, json=wrong, headers=match), 422, "invalid")
    assert sorted(e["pointer"] for e in refused["errors"]) == ["/max_model_len", "/tensor_parallel_size"]
    text = service.client.get(path).json()["text"] + "tensor_parallel_size: 3\n"
    written = {**match, "Content-Type": "application/yaml"}
    (put,) = problem(service.client.put(path, content=text, headers=written), 422, "invalid")["errors"]
    assert (put["pointer"], put["line"]) == ("/tensor_parallel_size", len(text.splitlines()))
    checked = service.client.post(f"{path}/check", content=text, headers=written)
    assert checked.json()["errors"] == [put]
    assert service.client.patch(path, json={"tensor_parallel_size": 4}, headers=match).status_code == 200


def test_an_edit_names_a_parser_that_the_engine_has_and_another_model_is_listed(service: Service) -> None:
    name = fresh(service, "slips")
    path, match = f"/v1/configs/{name}", {"If-Match": "*"}
    wrong = {"options": ["tool_parser:hermess", "reasoning_parser:qwen3"]}
    details = problem(service.client.patch(path, json=wrong, headers=match), 422, "unknown-parser")
    assert ("hermes" in details["hint"], details["errors"][0]["pointer"]) == (True, "/options/0")
    text = service.client.get(path).json()["text"] + "options: ['tool_parser:hermess']\n"
    (found,) = service.client.post(
        f"{path}/check", content=text, headers={"Content-Type": "application/yaml"}
    ).json()["errors"]
    assert (found["pointer"], found["line"]) == ("/options/0", len(text.splitlines()))
    assert "Did you mean hermes" in found["detail"]
    right = {"options": ["tool_parser:hermes"], "parameters": {"model": "other/base"}}
    assert service.client.patch(path, json=right, headers=match).json()["model"] == "other/base"
