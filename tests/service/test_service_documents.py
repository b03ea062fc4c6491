"""Documents over HTTP: edits, reviews, versions, merges, exports."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx
import pytest
import yaml
from sqlalchemy import text

from importer.storage.database import Database
from tests.serving import PATIENCE, Service, fresh, problem, service

__all__ = ["service"]
pytestmark = pytest.mark.slow


def test_an_edit_says_which_version_it_is_of(service: Service) -> None:
    name = fresh(service, "edited")
    path, patch = f"/v1/configs/{name}", {"parameters": {"temperature": 0.5}}
    problem(service.client.patch(path, json=patch), 428, "precondition-required")
    tag = service.etag(name)
    done = service.client.patch(path, json=patch, headers={"If-Match": tag}, params={"why": "too hot"})
    assert done.status_code == 200, done.text
    assert "temperature: 0.5" in done.json()["text"]
    assert "# yaml-language-server" in done.json()["text"]
    assert done.headers["ETag"] != tag == '"1"'
    problem(service.client.patch(path, json=patch, headers={"If-Match": tag}), 412, "precondition-failed")
    text = done.json()["text"].replace("top_p: 0.9", "top_p: 0.8")
    yaml_type = {"Content-Type": "application/yaml", "If-Match": done.headers["ETag"]}
    put = service.client.put(path, content=text, headers=yaml_type)
    assert (put.status_code, put.json()["data"]["parameters"]["top_p"]) == (200, 0.8)
    seen = service.client.get(path, headers={"If-None-Match": put.headers["ETag"]})
    assert (seen.status_code, seen.content) == (304, b"")
    versions = service.client.get(f"{path}/history").json()["versions"]
    assert [(v["version"], v["action"], v["why"]) for v in versions] == [
        (3, "edit", None), (2, "edit", "too hot"), (1, "import", None),
    ]  # fmt: skip
    assert versions[1]["changes"] == [{"path": "parameters.temperature", "before": 0.6, "after": 0.5}]
    page = service.client.get(f"{path}/history", params={"limit": 2}).json()
    assert (page["versions"], page["total"], page["next"]) == (versions[:2], 3, 2)
    rest = service.client.get(f"{path}/history", params={"limit": 2, "cursor": page["next"]}).json()
    assert (rest["versions"], rest["total"], rest["next"]) == (versions[2:], 3, None)
    assert rest["reviews"] == page["reviews"]
    assert "temperature: 0.6" in service.client.get(f"{path}/versions/1").json()["text"]


def test_a_mistake_in_an_edit_is_told_with_its_key_and_its_line(service: Service) -> None:
    name = fresh(service, "wrong")
    before = service.config(name)
    headers = {"If-Match": service.etag(name), "Content-Type": "application/yaml"}
    text = before["text"].replace("temperature: 0.6", "temperature: 6").replace("dtype", "dtipe")
    said = problem(service.client.put(f"/v1/configs/{name}", content=text, headers=headers), 422, "invalid")
    wrong = next(e for e in said["errors"] if e["pointer"] == "/parameters/temperature")
    assert text.splitlines()[wrong["line"] - 1].strip().startswith("temperature: 6")
    broken = service.client.put(f"/v1/configs/{name}", content="name: [", headers=headers)
    assert problem(broken, 422, "invalid")["errors"][0]["line"] == 1
    for old, new in (("temperature: 0.6", "temperature: .inf"), ("name:", "? .nan\n: 1\nname:")):
        odd = before["text"].replace(old, new, 1)
        said = problem(
            service.client.put(f"/v1/configs/{name}", content=odd, headers=headers), 422, "invalid"
        )
        assert said["errors"][0]["fields"] in ({"value": "inf"}, {"key": "nan"})
    renamed = service.client.patch(
        f"/v1/configs/{name}", json={"name": "x"}, headers={"If-Match": headers["If-Match"]}
    )
    assert problem(renamed, 422, "invalid")["errors"][0]["pointer"] == "/name"
    for odd in ("1e999", "NaN", '"\\ud800"'):  # what Python's reader of JSON takes
        patch = f'{{"parameters": {{"temperature": {odd}}}}}'
        sent = {"If-Match": headers["If-Match"], "Content-Type": "application/json"}
        said = problem(
            service.client.patch(f"/v1/configs/{name}", content=patch, headers=sent), 422, "invalid"
        )
        assert said["errors"][0]["pointer"] == "/parameters/temperature"
    long = before["text"] + "#" * 200_000
    said = problem(service.client.put(f"/v1/configs/{name}", content=long, headers=headers), 422, "invalid")
    assert "64,000" in said["detail"]
    assert service.config(name) == before


def test_a_review_makes_states(service: Service) -> None:
    name = fresh(service, "reviewed")
    path = f"/v1/configs/{name}"
    state = lambda: service.client.get(path).json()["state"]  # noqa: E731
    assert state() == "draft"
    problem(service.client.post(f"{path}/reject", json={}), 422, "bad-request")
    other = {"digest": "sha256:" + "0" * 64}
    problem(service.client.post(f"{path}/approve", json=other), 409, "changed")
    for unseen in ({}, {"json": {"note": "fine"}}, {"headers": {"If-Match": "*"}}):
        said = problem(service.client.post(f"{path}/approve", **unseen), 428, "digest-required")
        assert said["errors"][0]["pointer"] == "/digest"
    problem(service.client.post(f"{path}/approve", headers={"If-Match": '"9"'}), 412, "precondition-failed")
    done = service.client.post(
        f"{path}/approve", json={"note": "fine"}, headers={"If-Match": service.etag(name)}
    )
    assert (done.status_code, done.json()["state"]) == (200, "approved")
    assert done.json()["reason"] == "it was never validated"
    patch = {"parameters": {"temperature": 0.4}}
    service.client.patch(path, json=patch, headers={"If-Match": service.etag(name)})
    assert state() == "stale"
    service.client.post(f"{path}/reject", json={"note": "no"})
    assert state() == "rejected"
    onward = service.client.get(f"{path}/review").json()["next"]
    assert (onward["kind"], onward["fields"]["by"], onward["fields"]["note"]) == ("rejected", "local", "no")
    words = service.client.get(f"{path}/history").json()["reviews"]
    assert [(w["state"], w["by"], w["note"]) for w in words] == [
        ("approved", "local", "fine"), ("rejected", "local", "no"),
    ]  # fmt: skip


def test_a_validation_on_an_engine_without_the_parsers_is_refused(service: Service) -> None:
    name = fresh(service, "apple", backend="mlx")
    service.edit(name, {"options": ["tool_parser:json_tools"]}).raise_for_status()
    asked = service.client.post(f"/v1/configs/{name}/validate", json={"engine": "vllm-cpu"})
    said = problem(asked, 409, "other-backend")
    assert (said["errors"][0]["pointer"], "Import the model for vllm" in said["hint"]) == ("/engine", True)


def test_a_reimport_keeps_an_edit(service: Service) -> None:
    name = fresh(service, "merged")
    path = f"/v1/configs/{name}"
    edit = {"parameters": {"temperature": 0.5}}
    service.client.patch(path, json=edit, headers={"If-Match": service.etag(name)})
    kept = service.imported("acme/base", name=name)
    assert (kept["state"], kept["result"]["written"]) == ("succeeded", False)
    assert service.client.get(path).json()["data"]["parameters"]["temperature"] == 0.5


def test_a_document_that_is_taken_away_leaves_its_history(service: Service) -> None:
    name = fresh(service, "gone")
    path = f"/v1/configs/{name}"
    assert service.client.delete(path, headers={"If-Match": '"1"'}).status_code == 204
    problem(service.client.get(path), 404, "no-such-document")
    assert [v["action"] for v in service.client.get(f"{path}/history").json()["versions"]] == [
        "delete",
        "import",
    ]
    job = service.imported("other/base", name=name)
    assert (job["state"], job["result"]["version"], job["result"]["model"]) == ("succeeded", 3, "other/base")


DAMAGES = {
    "hash": "UPDATE versions SET receipt_hash = 'deadbeef' WHERE name = :name",
    "pieces": "UPDATE receipts SET pieces = '[]' WHERE hash IN "
    "(SELECT receipt_hash FROM versions WHERE name = :name)",
}
PARTS = ("review", "receipt", "decisions", "memory", "export/vllm-config", "report/json", "history")


def damage(service: Service, name: str, statement: str) -> None:
    with closing(Database(service.env["IMPORTER_SERVE_DATABASE"])) as database, database.writing() as rows:
        rows.execute(text(statement), {"name": name})


@pytest.mark.parametrize("part", DAMAGES)
def test_a_damaged_receipt_is_told_and_mended_by_an_import(service: Service, part: str) -> None:
    name = fresh(service, f"damaged-{part}")
    path = f"/v1/configs/{name}"
    damage(service, name, DAMAGES[part])
    asked = [service.client.get(f"{path}/{one}") for one in PARTS]
    asked += [service.client.post(f"{path}/validate", json={}), service.approve(name)]
    for answer in asked:
        said = problem(answer, 409, "no-receipt")
        assert said["detail"].endswith("it is damaged."), said
    assert service.imported("acme/base", name=name)["state"] == "succeeded"
    service.client.get(f"{path}/review").raise_for_status()
    versions = service.client.get(f"{path}/history").json()["versions"]
    assert [one["version"] for one in versions] == [2, 1]
    damage(service, name, DAMAGES[part])
    service.client.delete(path, headers={"If-Match": "*"}).raise_for_status()


def test_damaged_data_are_read_from_the_text(service: Service) -> None:
    name = fresh(service, "damaged-data")
    document, before = (service.client.get(f"/v1/configs/{name}{part}").json() for part in ("", "/review"))
    for data in ("{}", "{"):
        damage(service, name, f"UPDATE versions SET data = '{data}' WHERE name = :name")
        assert service.client.get(f"/v1/configs/{name}/review").json() == before
        assert service.client.get(f"/v1/configs/{name}").json() == document
    damage(service, name, "UPDATE versions SET text = '{' WHERE name = :name")
    problem(service.client.get(f"/v1/configs/{name}"), 422, "invalid")


def test_an_export_is_a_file_and_what_it_lacks(service: Service) -> None:
    name = fresh(service, "exported")
    found = service.client.get(f"/v1/configs/{name}/export/vllm-config")
    assert found.status_code == 200, found.text
    assert yaml.safe_load(next(iter(found.json()["files"].values())))["model"] == "acme/base"
    problem(service.client.get(f"/v1/configs/{name}/export/odd"), 404, "unknown-format")
    path = f"/v1/configs/{name}/export/localai?approved_only=true"
    problem(service.client.get(path), 409, "not-approved")


def test_edits_of_any_version_are_all_kept(service: Service) -> None:
    url = f"{service.url}/v1/configs/{fresh(service, 'many')}"
    one = {"If-Match": service.etag("many")}

    def patch(number: int, headers: dict[str, str]) -> int:
        body = {"chat_template_kwargs": {f"key-{number}": number}}
        return httpx.patch(url, json=body, headers=headers, trust_env=False, timeout=PATIENCE).status_code

    with ThreadPoolExecutor(6) as pool:
        assert [*pool.map(lambda n: patch(n, {"If-Match": "*"}), range(6))] == [200] * 6
        assert [*pool.map(lambda n: patch(n, one), range(6, 9))] == [412] * 3
        now = {"If-Match": service.etag("many")}
        assert sorted(pool.map(lambda n: patch(n, now), range(9, 12))) == [200, 412, 412]
    kept = httpx.get(url, trust_env=False).json()["data"]["chat_template_kwargs"]
    assert {f"key-{n}" for n in range(6)} <= kept.keys()


def test_a_version_that_is_not_there(service: Service) -> None:
    problem(service.client.get(f"/v1/configs/{fresh(service, 'few')}/versions/7"), 404, "no-such-version")
    for path in (f"versions/{2**31}", f"report/json?version={2**31}"):  # PostgreSQL has no such number
        problem(service.client.get(f"/v1/configs/few/{path}"), 422, "bad-request")
    released = service.client.post("/v1/configs/few/release", json={"version": 2**63})
    problem(released, 422, "bad-request")
    job = service.client.post(
        "/v1/imports", json={"reference": "acme/base", "name": "few", "backend": "vllm"}
    ).json()
    service.ended(job["id"])
    problem(service.client.post(f"/v1/jobs/{job['id']}/retry"), 409, "not-ended")
