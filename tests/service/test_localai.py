"""LocalAI's contract, asked by a client that was written from its documentation."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml

from importer.service.localai import fitting
from tests.localai_client import (  # fmt: skip
    AMBIGUOUS,
    BEGUN,
    ERROR,
    GALLERY,
    KNOWN,
    METADATA,
    OP_STATUS,
    LocalAI,
    decoded,
)
from tests.publishing import keys_by_scopes, published
from tests.serving import Service, running
from tests.serving import own_service as service

__all__ = ["service"]
slow = pytest.mark.slow


@pytest.fixture(scope="module")
def local(service: Service) -> LocalAI:
    return LocalAI(service.url)


def envelope(answer: httpx.Response, status: int) -> str:
    """The message in the envelope of most failures."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"error"}
    error = decoded(answer.json()["error"], ERROR)
    assert error["code"] == status
    return str(error["message"])


@pytest.mark.parametrize(
    ("named", "fits"),
    [
        ("Qwen3-8B", "qwen3-8b"), ("My Model_2", "my-model-2"), ("a_b.c", "a_b.c"),
        ("../../etc/passwd", "etc-passwd"), ("\x1b[2J", "\x1b[2J"), ("模型", "模型"), ("", ""),
    ],
)  # fmt: skip
def test_names_as_localai_takes_them_become_those_of_documents(named: str, fits: str) -> None:
    assert fitting(named) == fits


@slow
@pytest.mark.parametrize("form", ["acme/base", "huggingface://acme/base", "hf://acme/base"])
def test_an_import_is_watched_until_it_is_completed(local: LocalAI, service: Service, form: str) -> None:
    name = f"way-{form.partition(':')[0].replace('/', '-')}"
    answer = local.import_uri(form, {"backend": "vllm", "name": name, "description": "why", "odd": 1})
    assert answer.status_code == 200, answer.text
    begun = decoded(answer.json(), BEGUN)
    assert begun["status"] == f"{service.url}/models/jobs/{uuid.UUID(begun['uuid'])}"
    done = local.finished(begun)
    assert local.succeeded(done)
    assert (done["gallery_element_name"], done["cancellable"], "error" in done) == (name, False, False)
    data = service.config(name)["data"]
    assert (data["name"], data["description"], data["parameters"]["model"]) == (name, "why", "acme/base")
    everything = local.get("/models/jobs").json()
    assert decoded(everything[begun["uuid"]], OP_STATUS) == done
    assert service.config(name)["state"] == "draft"


@slow
def test_a_repository_is_looked_at_once(local: LocalAI, service: Service) -> None:
    asked = service.hub.asked
    begun = local.import_uri("acme/base", {"backend": "vllm", "name": "looked"}).json()
    assert local.succeeded(local.finished(begun))
    paths = [e.path for e in service.hub.log[asked:]]
    assert len(paths) == len(set(paths)), paths
    assert [p for p in paths if p.startswith("/api/models/")], paths


@slow
def test_what_several_backends_could_take_is_asked_back(local: LocalAI) -> None:
    answer = local.import_uri("other/base", {"name": "asked"})
    assert answer.status_code == 400
    said = decoded(answer.json(), AMBIGUOUS)
    assert (said["error"], said["candidates"], said["modality"]) == (
        "ambiguous import", ["vllm", "mlx"], "text",
    )  # fmt: skip
    assert said["hint"] == "Pass preferences.backend to pick one of the candidates."
    chosen = local.import_uri("other/base", {"name": "asked", "backend": said["candidates"][1]}).json()
    assert local.succeeded(local.finished(chosen))


@slow
@pytest.mark.parametrize(
    ("uri", "preferences", "status"),
    [
        ("no/such", None, 404), ("acme/base", {"backend": "llama-cpp"}, 400),
        ("acme/base", {"backend": 7}, 400), ("acme/base", {"name": "\x1b[2J"}, 400),
        ("ollama://gemma:2b", None, 400), ("file:///etc/passwd", None, 400), ("/etc", None, 400),
        ("", None, 400), ("../../x", None, 400), ("http://169.254.169.254/latest", None, 400),
        ("acme/base", "backend", 400),
    ],
)  # fmt: skip
def test_what_cannot_be_imported_is_400_or_404_in_its_envelope(
    local: LocalAI, uri: str, preferences: Any, status: int
) -> None:
    told = envelope(local.import_uri(uri, preferences), status)
    assert "openapi" not in told  # a description without these routes


@slow
def test_requests_that_cannot_be_meant(local: LocalAI) -> None:
    headers = {"Content-Type": "application/json"}
    assert envelope(local.ask("POST", "/models/import-uri", content="{", headers=headers), 400)
    assert envelope(local.ask("POST", "/models/import-uri", content="[1]", headers=headers), 400)
    assert envelope(local.get(f"/models/jobs/{uuid.uuid4()}"), 404)


@slow
def test_a_job_that_fails_says_why(local: LocalAI, service: Service) -> None:
    """Between the look and the job the name was taken: another repository's document has it."""
    begun = local.import_uri("acme/base", {"backend": "vllm", "name": "taken-first"}).json()
    assert local.succeeded(local.finished(begun))
    begun = local.import_uri("other/base", {"backend": "vllm", "name": "taken-first"}).json()
    failed = local.finished(begun)
    assert not local.succeeded(failed)
    assert (failed["progress"], failed["gallery_element_name"]) == (0, "")
    assert failed["message"] == f"error: {failed['error']}"
    service.hub.latency = 2
    try:
        job = service.client.post("/v1/imports", json={"reference": "acme/base", "backend": "vllm"}).json()
        waiting = decoded(local.get(f"/models/jobs/{job['id']}").json(), OP_STATUS)
        assert (waiting["processed"], waiting["cancellable"]) == (False, True)
        service.client.post(f"/v1/jobs/{job['id']}/cancel")
    finally:
        service.hub.latency = 0
    gone = decoded(local.get(f"/models/jobs/{job['id']}").json(), OP_STATUS)
    assert (gone["cancelled"], gone["processed"], gone["message"]) == (True, True, "cancelled")


@slow
def test_what_there_is(local: LocalAI, service: Service) -> None:
    known = [decoded(one, KNOWN) for one in local.get("/backends/known").json()]
    assert [k["name"] for k in known] == ["mlx", "mlx-vlm", "sglang", "vllm", "vllm-mlx"]
    (gallery,) = local.get("/models/galleries").json()
    assert decoded(gallery, GALLERY) == {"name": "importer", "url": f"{service.url}/gallery/index.yaml"}
    assert local.get("/models/available").json() == []
    assert local.succeeded(
        local.finished(local.import_uri("acme/base", {"backend": "vllm", "name": "a"}).json())
    )
    published(service, "a")
    (found,) = local.get("/models/available").json()
    assert decoded(found, METADATA)["gallery"] == gallery
    assert (found["name"], found["backend"]) == ("a", "vllm")
    index = yaml.safe_load(local.get(gallery["url"]).text)
    assert [item["name"] for item in index] == ["a"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, dict[str, str]]]:
    """A server that is reached from elsewhere, behind a proxy; keys by their scope."""
    folder = tmp_path_factory.mktemp("guarded")
    keys = keys_by_scopes(folder, "read", "import")
    words = (
        "--host", "0.0.0.0", "--public-url", "https://models.example/importer/", "--allowed-host",
        "127.0.0.1",
    )  # fmt: skip
    with running(folder, *words) as one:
        yield one, keys


@slow
@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer {}"}, {"Authorization": "{}"}, {"x-api-key": "{}"}, {"xi-api-key": "{}"},
        {"Cookie": "token={}"},
    ],
)  # fmt: skip
def test_a_key_is_taken_as_localai_takes_it(guarded: Any, headers: dict[str, str]) -> None:
    service, keys = guarded
    said = {name: value.format(keys["import"]) for name, value in headers.items()}
    wrong = {name: value.format("imp_0_0") for name, value in headers.items()}
    local = LocalAI(service.url, said)
    begun = decoded(local.import_uri("no/such", {}).json() or {}, {"error": (dict, False)})
    assert begun["error"]["code"] == 404
    reader = {name: value.format(keys["read"]) for name, value in headers.items()}
    assert LocalAI(service.url, reader).get("/models/jobs").status_code == 200
    refused = LocalAI(service.url, reader).import_uri("acme/base")
    assert envelope(refused, 403) == "Admin access required"
    for bad in (wrong, {}):
        answer = LocalAI(service.url, bad).get("/models/jobs")
        assert envelope(answer, 401) == "An authentication key is required"
        assert answer.json()["error"]["type"] == "invalid_request_error"
        assert answer.headers["WWW-Authenticate"] == "Bearer"


@slow
def test_a_cookie_is_no_leave_for_pages_of_others(guarded: Any) -> None:
    service, keys = guarded
    local = LocalAI(service.url, {"Cookie": f"token={keys['import']}", "Origin": "https://evil.example"})
    assert local.import_uri("acme/base").status_code == 403
    assert LocalAI(service.url, {"Cookie": f"token={keys['import']}"}).get("/v1/configs").status_code == 401


@slow
def test_addresses_are_those_behind_the_proxy(guarded: Any) -> None:
    service, keys = guarded
    local = LocalAI(service.url, {"x-api-key": keys["import"]})
    (gallery,) = local.get("/models/galleries").json()
    assert gallery["url"] == "https://models.example/importer/gallery/index.yaml"
    begun = local.import_uri("acme/base", {"backend": "vllm", "name": "far"}).json()
    assert begun["status"] == f"https://models.example/importer/models/jobs/{begun['uuid']}"
    done = local.finished({"status": f"/models/jobs/{begun['uuid']}"})
    assert local.succeeded(done)
    published(service, "far")
    path = "/gallery/index.yaml"
    assert LocalAI(service.url).get(path).status_code == 401
    as_user = f"http://:{keys['read']}@127.0.0.1:{service.port}{path}"  # all that GALLERIES has room for
    item = yaml.safe_load(httpx.get(as_user, trust_env=False).text)[0]
    assert item["urls"][-1] == "https://models.example/importer/gallery/far.yaml"
    forwarded = {"Host": "models.example", "x-api-key": keys["read"]}
    assert LocalAI(service.url, forwarded).get(path).status_code == 200
