"""One document for each model and backend, and a validation that a new commit keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from importer.hub.content import content_digest
from importer.hub.snapshot import RepoFile, Snapshot
from tests.failing import WEIGHTS
from tests.hubserver import Repo
from tests.localai_client import GALLERY_MODEL, decoded
from tests.publishing import published, validated
from tests.serving import Service

slow = pytest.mark.slow
FILES = {**WEIGHTS, "README.md": "first"}


def done(service: Service, reference: str, backend: str | None, **said: Any) -> dict[str, Any]:
    """The result of an import; the repository begins with the same files as each."""
    service.hub.repos.setdefault(reference, Repo(FILES))
    asked = {"reference": reference, **({} if backend is None else {"backend": backend}), **said}
    job = service.ended(service.client.post("/v1/imports", json=asked).json()["id"])
    assert job["state"] == "succeeded", job
    result: dict[str, Any] = job["result"]
    return result


def index(service: Service) -> dict[str, dict[str, Any]]:
    items = yaml.safe_load(service.client.get("/gallery/index.yaml").text)
    return {item["name"]: decoded(item, GALLERY_MODEL) for item in items}


@slow
def test_another_backend_is_another_document(service: Service) -> None:
    assert done(service, "acme/both", "vllm")["name"] == "both"
    published(service, "both")
    first, entry = service.config("both"), index(service)["both"]
    shown = service.client.post("/v1/imports/preview", json={"reference": "acme/both", "backend": "mlx"})
    assert (shown.json()["name"], shown.json()["new"]) == ("both-mlx", True)
    made = done(service, "acme/both", "mlx", set={"temperature": 0.3})
    assert (made["name"], made["backend"]) == ("both-mlx", "mlx")
    assert (service.config("both"), index(service)["both"]) == (first, entry)

    published(service, "both-mlx")
    assert index(service)["both"] == entry

    again = done(service, "acme/both", "mlx")  # the same document, with its earlier settings
    assert (again["name"], again["written"]) == ("both-mlx", False)
    assert service.config("both-mlx")["data"]["parameters"]["temperature"] == 0.3
    assert done(service, "acme/both", "vllm")["name"] == "both"
    assert done(service, "owner/both", "mlx")["name"] == "owner--both"
    listed = service.client.get("/v1/configs", params={"q": "acme/both"}).json()["items"]
    assert [(c["name"], c["backend"]) for c in listed] == [("both", "vllm"), ("both-mlx", "mlx")]

    service.client.delete("/v1/configs/both", headers={"If-Match": "*"})
    assert done(service, "acme/both", "mlx")["name"] == "both-mlx"
    assert done(service, "acme/both", "vllm")["name"] == "both"


@slow
def test_a_new_commit_with_equal_files_keeps_the_validation(service: Service) -> None:
    name = done(service, "acme/moving", "vllm")["name"]
    published(service, name)
    first = service.config(name)
    assert (first["state"], first["carried"]) == ("published", None)

    repo = service.hub.repos["acme/moving"]
    repo.commit({**FILES, "README.md": "second"})
    result = done(service, "acme/moving", "vllm")
    after = service.config(name)
    assert after["revision"] != first["revision"]
    kept = (after["validation"], after["review"], after["release"])
    assert kept == ("passed", "draft", first["release"])
    assert after["carried"] == {"revision": first["revision"], "digest": first["digest"]} == result["carried"]
    second = service.approve(name).json()
    assert second["release"] == second["version"]  # without another run
    receipt = service.client.get(f"/v1/configs/{name}/receipt").json()
    assert receipt["validation"]["digest"] == after["digest"]
    assert receipt["validation"]["carried"] == after["carried"]

    repo.commit({**FILES, "README.md": "third"})
    done(service, "acme/moving", "vllm")
    assert service.config(name)["carried"] == after["carried"]  # of the commit that was run

    repo.commit({**FILES, "model.safetensors": b"\x02" + bytes(7) + b"{}" + b"more"})
    done(service, "acme/moving", "vllm")
    changed = service.config(name)
    assert (changed["validation"], changed["carried"]) == ("stale", None)
    assert changed["release"] == second["release"]


@slow
def test_other_values_are_validated_anew(service: Service) -> None:
    name = done(service, "acme/moving", "vllm", name="revalued")["name"]
    validated(service, name)
    service.hub.repos["acme/moving"].commit({**FILES, "README.md": "fourth"})
    done(service, "acme/moving", "vllm", name="revalued", set={"temperature": 0.11})
    assert (service.config(name)["validation"], service.config(name)["carried"]) == ("stale", None)


def of(files: Mapping[str, str | None], revision: str | None = "0" * 40) -> str | None:
    listed = tuple(RepoFile(path, 1, hash_) for path, hash_ in sorted(files.items()))
    return content_digest(Snapshot("a/b", "a/b", revision, listed, {}))


def test_the_digest_covers_what_an_engine_reads() -> None:
    files = {
        "config.json": "1" * 40, "tokenizer.json": "2" * 64, "chat_template.jinja": "3" * 40,
        "model.safetensors": "4" * 64, "modeling_x.py": "5" * 40, "README.md": "6" * 40, "a/b.png": None,
        "additional_chat_templates/tool_use.jinja": "7" * 40,
    }  # fmt: skip
    whole = of(files)
    assert whole is not None
    assert of({**files, "README.md": "0" * 40, "logo.png": None}, "1" * 40) == whole
    for path in (*files, "generation_config.json"):
        if path not in ("README.md", "a/b.png"):
            assert of({**files, path: "9" * 40}) != whole
            assert of({**files, path: None}) is None
    for gone in ("config.json", "modeling_x.py"):
        assert of({k: v for k, v in files.items() if k != gone}) not in (whole, None)
    assert of({k: v for k, v in files.items() if k != "model.safetensors"}) is None
    assert of(files, None) is None


@slow
def test_a_device_is_another_document_where_that_is_asked(service: Service) -> None:
    asked = {"reference": "acme/cards", "backend": "vllm", "device": "8xH100", "per_device": True}
    assert done(service, "acme/cards", "vllm", device="rtx4090")["name"] == "cards"
    published(service, "cards")
    first = service.config("cards")
    shown = service.client.post("/v1/imports/preview", json=asked).json()
    assert (shown["name"], shown["new"]) == ("cards-8xh100", True)
    made = done(service, **asked)
    assert (made["name"], made["written"]) == ("cards-8xh100", True)
    whole = service.config("cards-8xh100")
    assert (whole["device"], whole["per_device"], first["per_device"]) == ("8xh100-80g", True, False)
    assert "other-device" not in [warning["kind"] for warning in made["warnings"]]
    published(service, "cards-8xh100")
    assert service.config("cards") == first
    items = index(service)
    assert "8xh100" in items["cards-8xh100"]["tags"]
    lists = {one["name"]: one for one in service.client.get("/models/available").json()}
    assert set(lists["cards-8xh100"]) == set(lists["cards"])

    again = done(service, **asked | {"device": "h100-80gx8"})
    assert (again["name"], again["written"]) == ("cards-8xh100", False)
    other = done(service, "acme/cards", "vllm", device="l4", per_device=True)
    assert other["name"] == "cards-l4"
    job = service.client.post("/v1/configs/cards-8xh100/recheck").json()["id"]
    assert service.ended(job)["result"]["outcome"] == "unchanged"

    moved = {"reference": "acme/cards", "backend": "vllm", "device": "l4"}
    seen = service.client.post("/v1/imports/preview", json=moved).json()["warnings"]
    warnings = done(service, **moved)["warnings"]
    (warning,) = [one for one in warnings if one["kind"] == "other-device"]
    assert (warning["reason"]["before"], warning["reason"]["after"]) == ("rtx4090", "l4")
    assert warnings == seen
    assert service.config("cards-8xh100")["state"] == "published"
