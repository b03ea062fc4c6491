"""Code and folders on a service: who may set them, what is run of them, by every route there is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from importer.app.session import ImportSession
from importer.document.receipt import ReviewEntry
from importer.document.store import StoredDocument
from importer.hub.local import AllowedFolders
from importer.service.domain.gallery import Gallery
from importer.service.jobs.live_jobs import LiveJob
from importer.service.jobs.validation_steps import ValidationSteps
from importer.storage import jobs
from importer.storage.audit import AuditContext
from importer.storage.database import Database
from importer.storage.jobs import Job
from importer.storage.schema import prepare
from tests.commandline import BASE
from tests.publishing import keys_by_scopes, stored
from tests.serving import Service, fresh, problem, running

__all__ = ["stored"]
slow = pytest.mark.slow
ANY = {"If-Match": "*"}
CODE = {"trust_remote_code": True}
SCOPES = ("read", "import", "approve", "import+approve")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server that needs keys, with a folder to import from and one that nobody may read."""
    folder = tmp_path_factory.mktemp("grants")
    for name in ("models/good", "outside/model"):
        (folder / name).mkdir(parents=True)
        for file, data in BASE.items():
            (folder / name / file).write_text(json.dumps(data))
        (folder / name / "marked.py").write_text("open('/tmp/never', 'w')")
    made = keys_by_scopes(folder, *SCOPES)
    words = ("--host", "0.0.0.0", "--directory", str(folder / "models"), "--rate", "0")
    with running(folder, *words) as one:
        one.client.headers["x-api-key"] = made["import+approve"]
        one.keys = made
        yield one


# A second model, at a commit of its own.
DRAFTER = {
    "speculative_config": {
        "method": "eagle3", "model": "acme/draft", "revision": "0" * 40, "num_speculative_tokens": 2,
    }
}  # fmt: skip


WRAPPER = "native -wrapper 'sh,-c,id>FILE'"
INDUCTOR = {"inductor_compile_config": {"cpp.march": WRAPPER}}


def ask(service: Service, scopes: str, method: str, path: str, **said: Any) -> httpx.Response:
    headers = {"x-api-key": service.keys[scopes], **ANY, **said.pop("headers", {})}
    return service.client.request(method, path, headers=headers, **said)


def good(service: Service) -> str:
    return str(service.folder / "models" / "good")


def grants(service: Service, name: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Every request that sets code or a folder."""
    config = f"/v1/configs/{name}"
    text = service.client.get(config).json()["text"]
    data = service.client.get(config).json()["data"]
    yaml = {"Content-Type": "application/yaml"}
    moved = text.replace("acme/base", good(service))
    uri = {"uri": good(service), "preferences": {"backend": "vllm", "name": "led"}}
    importing = {"reference": "acme/base", "backend": "vllm", "name": "led"}
    return [
        ("PUT", config, {"content": text + "trust_remote_code: true\n", "headers": yaml}),
        ("PUT", config, {"content": moved, "headers": yaml}),
        ("PUT", config, {"json": data | CODE}),
        ("PUT", config, {"json": data | {"engine_args": DRAFTER}}),
        ("PATCH", config, {"json": {"env": {"TORCHINDUCTOR_CPP_MARCH": WRAPPER}}}),
        ("PATCH", config, {"json": {"engine_args": {"compilation_config": INDUCTOR}}}),
        ("POST", "/v1/imports", {"json": {**importing, "set": {"env.TORCH_LOGS": "evil"}}}),
        ("POST", "/v1/imports", {"json": {**importing, "set": {"compilation_config": INDUCTOR}}}),
        ("PATCH", config, {"json": CODE}),
        ("PATCH", config, {"json": {"importer": {"model_id": good(service)}}}),
        ("POST", "/models/import-uri", {"json": uri}),
        ("POST", "/models/import-uri", {"json": {**uri, "uri": f"file://{good(service)}"}}),
        ("POST", "/v1/imports", {"json": {**importing, "set": CODE}}),
        ("POST", "/v1/imports", {"json": {**importing, "set": DRAFTER}}),
        ("POST", "/v1/imports", {"json": {**importing, "reference": good(service)}}),
        ("POST", "/v1/imports", {"json": {"references": [good(service)], "backend": "vllm"}}),
        ("POST", "/v1/imports", {"json": {"references": ["acme/base"], "backend": "vllm", "set": CODE}}),
        ("POST", "/v1/imports/preview", {"json": {**importing, "set": CODE}}),
        ("POST", "/v1/imports/preview", {"json": {**importing, "reference": good(service)}}),
    ]  # fmt: skip


@slow
def test_code_and_folders_need_the_scope_approve_by_every_route(service: Service) -> None:
    """A key without it changes nothing and begins nothing; with it the same requests are taken."""
    name = fresh(service, "matrix")
    seen = service.client.get("/v1/jobs?limit=200").text, service.client.get(f"/v1/configs/{name}").text
    asked = grants(service, name)
    for method, path, said in asked:
        for scopes in ("read", "import", "approve"):
            answer = ask(service, scopes, method, path, **said)
            assert answer.status_code == 403, (scopes, method, path, said, answer.text)
            if path.startswith("/v1/"):
                kind = "needs-approver" if scopes == "import" else "wrong-scope"
                problem(answer, 403, kind)
    now = service.client.get("/v1/jobs?limit=200").text, service.client.get(f"/v1/configs/{name}").text
    assert now == seen
    for number, (method, path, said) in enumerate(asked):
        own = f"matrix-{number}"
        place = path.replace(name, fresh(service, own)) if "config" in path else path
        if "json" in said and "name" in said["json"]:
            said["json"]["name"] = own
        if "content" in said:
            said["content"] = said["content"].replace("name: matrix", f"name: {own}")
        answer = ask(service, "import+approve", method, place, **said)
        assert answer.status_code in (200, 202), (method, path, said, answer.text)


@slow
def test_who_may_edit_may_edit_around_a_grant_and_not_move_it(service: Service) -> None:
    name = fresh(service, "around", set=CODE)
    path = f"/v1/configs/{name}"
    assert ask(service, "import", "PATCH", path, json={"parameters": {"temperature": 0.1}}).status_code == 200
    moved = {"parameters": {"model": "e/vil"}, "importer": {"model_id": "e/vil"}}
    problem(ask(service, "import", "PATCH", path, json=moved), 403, "needs-approver")
    problem(
        ask(service, "import", "PATCH", path, json={"importer": {"revision": "0" * 40}}),
        403,
        "needs-approver",
    )
    assert ask(service, "import", "PATCH", path, json={"trust_remote_code": None}).status_code == 200
    problem(ask(service, "import", "PATCH", path, json=CODE), 403, "needs-approver")


@slow
def test_code_that_nobody_approved_is_not_run(service: Service) -> None:
    name = fresh(service, "coded", set=CODE)
    path = f"/v1/configs/{name}"
    told = problem(ask(service, "import", "POST", f"{path}/validate"), 409, "code-not-approved")
    assert "approve" in told["hint"]
    problem(ask(service, "import+approve", "POST", f"{path}/validate"), 409, "code-not-approved")
    assert service.approve(name).status_code == 200
    begun = ask(service, "import", "POST", f"{path}/validate", json={"fetch": False})
    assert begun.status_code == 202, begun.text
    job = begun.json()["id"]
    assert service.client.post(f"/v1/jobs/{job}/cancel").status_code == 200
    assert ask(service, "import", "PATCH", path, json={"parameters": {"temperature": 0.2}}).status_code == 200
    problem(ask(service, "import", "POST", f"/v1/jobs/{job}/retry"), 409, "code-not-approved")
    problem(ask(service, "import", "POST", f"{path}/validate"), 409, "code-not-approved")


@slow
def test_an_export_carries_a_grant_only_after_its_approval(service: Service) -> None:
    name = fresh(service, "exported", set={"env.TORCHINDUCTOR_CPP_MARCH": WRAPPER})
    path = f"/v1/configs/{name}"
    problem(ask(service, "read", "GET", f"{path}/export/vllm-command"), 409, "needs-approval")
    warned = ask(service, "read", "GET", f"{path}/review").json()["warnings"][0]
    assert (warned["kind"], warned["key"]) == ("grant", "env.TORCHINDUCTOR_CPP_MARCH")
    assert service.approve(name).status_code == 200
    text = ask(service, "read", "GET", f"{path}/export/vllm-command").text
    assert "-wrapper" in text


@slow
def test_a_retry_grants_no_more_than_a_request(service: Service) -> None:
    said = {"reference": "acme/none", "backend": "vllm", "set": CODE}
    begun = ask(service, "import+approve", "POST", "/v1/imports", json=said).json()["id"]
    assert service.ended(begun)["state"] == "failed"
    problem(ask(service, "import", "POST", f"/v1/jobs/{begun}/retry"), 403, "needs-approver")
    assert ask(service, "import+approve", "POST", f"/v1/jobs/{begun}/retry").status_code == 202


@slow
def test_a_folder_is_read_from_where_the_operator_said_whoever_asks(service: Service) -> None:
    """An approver's document may name any folder; an engine of this service is not given it."""
    outside = str(service.folder / "outside" / "model")
    for path, body in (
        ("/v1/imports", {"reference": outside, "backend": "vllm"}),
        ("/v1/imports/preview", {"reference": outside, "backend": "vllm"}),
    ):
        problem(ask(service, "import+approve", "POST", path, json=body), 422, "no-directories")
    refused = ask(service, "import+approve", "POST", "/models/import-uri", json={"uri": outside})
    assert refused.status_code == 400, refused.text


# In the job itself: it may have been asked for before the document was edited, or by another version


@pytest.fixture
def gallery(tmp_path: Path) -> Iterator[Gallery]:
    database = Database(f"sqlite:///{tmp_path / 'gallery.sqlite'}")
    prepare(database)
    yield Gallery(database)
    database.close()


def job_of(gallery: Gallery, text: str, stored: StoredDocument, *, approved: bool = False) -> Job:
    """A validation of a document with this text that is queued, however it came to be."""
    with gallery.change(AuditContext("old", "import")) as change:
        change.checkout.find("base")
        change.checkout.write(text, stored.need_receipt())
    if approved:
        with gallery.change(AuditContext("ann", "approve")) as change:
            now = change.checkout.load("base")
            word = ReviewEntry("approved", "ann", "2026-01-01T00:00:00+00:00", None)
            change.checkout.amend("base", lambda receipt: receipt.with_review(word, now.data))
    with gallery.database.writing() as connection:
        asked = {"config": "base", "engine": "mlx", "fetch": False}
        return jobs.create(connection, "validation", asked, "old", config="base", engine="mlx", memory=None)


def steps(gallery: Gallery, job: Job, folder: Path, digest: str, *roots: Path) -> list[str]:
    """How both steps that open weights end, the second after a first that found ``folder``."""
    bench = ImportSession(proves=False)
    work = ValidationSteps(gallery, "device", AllowedFolders.below(roots), bench)
    live, found = LiveJob(job), list[str]()
    for step, said in (
        (work.weights, {}),
        (work.run, {"weights": {"weights": str(folder), "digest": digest}}),
    ):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - its kind is what is compared
            step(live, said, lambda _: None)
        found.append(str(getattr(caught.value, "kind", caught.value)))
    bench.close()
    return found


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    folder = tmp_path / "hostile"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "evil", "model_file": "evil.py"}))
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    return folder


def test_a_job_runs_no_code_that_is_not_approved(
    gallery: Gallery, stored: StoredDocument, hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importer.engines.install.need", lambda _: None)
    text = stored.text.replace("acme/base", str(hostile)) + "trust_remote_code: true\n"
    job = job_of(gallery, text, stored)
    digest = gallery.get("base")[0].digest
    assert steps(gallery, job, hostile, digest, hostile) == ["code-not-approved"] * 2


def test_a_job_opens_no_folder_but_the_operators(
    gallery: Gallery, stored: StoredDocument, hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importer.engines.install.need", lambda _: None)
    text = stored.text.replace("acme/base", str(hostile)) + "trust_remote_code: true\n"
    job = job_of(gallery, text, stored, approved=True)
    digest = gallery.get("base")[0].digest
    assert steps(gallery, job, hostile, digest) == ["no-directories"] * 2
    assert steps(gallery, job, hostile, digest, hostile.parent / "other") == ["no-directories"] * 2
    assert steps(gallery, job, hostile, "sha256:before-an-edit", hostile) == ["no-weights"] * 2
