"""A gallery's upkeep as its maintainers do it: the index after each step, as a table in the docs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml

from importer.config_file import schema
from importer.storage import keys
from importer.storage.audit import AuditContext
from importer.storage.database import Database
from importer.storage.migrations import migrate
from tests.failing import WEIGHTS
from tests.hubserver import Repo
from tests.publishing import validated
from tests.serving import Service, problem, running

IMPORTER, MAINTAINER = "import", "import+approve+publish"
ANY = {"If-Match": "*"}
FILES = {**WEIGHTS, "README.md": "first"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server with a key that may import, and one that may also approve and publish."""
    folder = tmp_path_factory.mktemp("upkeep")
    database = Database(f"sqlite:///{folder / 'gallery.sqlite'}")
    migrate(database)
    with database.writing() as connection:
        who = {IMPORTER: "ivo", MAINTAINER: "ann"}
        made = {
            scopes: keys.create(connection, name, scopes.split("+"), AuditContext("root", "create key"))
            for scopes, name in who.items()
        }
    database.close()
    repos = {"acme/toy": Repo(FILES)}
    with running(folder, "--host", "0.0.0.0", "--rate", "0", **repos) as one:
        one.client.headers["x-api-key"] = made[MAINTAINER]
        one.keys = made
        yield one


def ask(service: Service, scopes: str, method: str, path: str, **said: Any) -> httpx.Response:
    headers = {"x-api-key": service.keys[scopes], **said.pop("headers", {})}
    return service.client.request(method, f"/v1/{path}", headers=headers, **said)


def imported(service: Service, backend: str, **said: Any) -> dict[str, Any]:
    job = service.imported("acme/toy", backend=backend, **said)
    assert job["state"] == "succeeded", job
    result: dict[str, Any] = job["result"]
    return result


def approved(service: Service, name: str) -> httpx.Response:
    """Approve what was seen, which releases a validated document."""
    digest = ask(service, MAINTAINER, "GET", f"configs/{name}").json()["digest"]
    return ask(service, MAINTAINER, "POST", f"configs/{name}/approve", json={"digest": digest})


def index(service: Service) -> dict[str, tuple[str, float, list[str]]]:
    """Backend, temperature and variants of each entry of the index."""
    items = yaml.safe_load(service.client.get("/gallery/index.yaml").text)
    return {
        item["name"]: (
            item["config_file"]["backend"], item["config_file"]["parameters"]["temperature"],
            [variant["model"] for variant in item.get("variants", ())],
        )
        for item in items
    }  # fmt: skip


def value(service: Service, name: str, key: str = "parameters.temperature") -> dict[str, Any]:
    """The effective value of a key."""
    shown = ask(service, IMPORTER, "GET", f"configs/{name}/decisions").json()
    found: dict[str, Any] = next(one for one in shown["values"] if one["key"] == key)
    return found


@pytest.mark.slow
@pytest.mark.nightly
def test_a_gallerys_upkeep(service: Service) -> None:
    # Publish for MLX.
    assert imported(service, "mlx")["name"] == "toy"
    validated(service, "toy")
    assert index(service) == {}
    assert approved(service, "toy").json()["release"] == 1
    mlx = {"toy": ("mlx", 0.6, [])}
    assert index(service) == mlx
    commit = ask(service, IMPORTER, "GET", "configs/toy").json()["revision"]
    (item,) = yaml.safe_load(service.client.get("/gallery/index.yaml").text)
    schema.check("localai-gallery", [item | {"urls": []}], "index.yaml")
    names = {file["filename"].rpartition("/")[2] for file in item["files"]}
    assert names >= {"config.json", "model.safetensors"}
    for file in item["files"]:
        assert file["filename"].startswith(f"models--acme--toy/snapshots/{commit}/")
        assert f"/acme/toy/resolve/{commit}/" in file["uri"]

    # Import for vLLM: another document, and an entry once it is released.
    assert imported(service, "vllm")["name"] == "toy-vllm"
    assert index(service) == mlx
    validated(service, "toy-vllm")
    assert approved(service, "toy-vllm").json()["release"] == 1
    both = {"toy": ("mlx", 0.6, ["toy-vllm"]), "toy-vllm": ("vllm", 0.6, [])}
    assert index(service) == both

    # A commit upstream: a recheck finds it, the finding is accepted, the entry stays.
    first = ask(service, IMPORTER, "GET", "configs/toy-vllm").json()["revision"]
    warmer = {"generation_config.json": {"temperature": 0.7, "do_sample": True}}
    service.hub.repos["acme/toy"].commit({**FILES, **warmer})
    asked = ask(service, MAINTAINER, "POST", "recheck", json={"names": ["toy-vllm"]})
    assert service.ended(asked.json()["id"])["state"] == "succeeded"
    (finding,) = ask(service, IMPORTER, "GET", "upkeep", params={"name": "toy-vllm"}).json()["items"]
    assert finding["kinds"] == ["commit"]
    assert ask(service, IMPORTER, "GET", "configs/toy-vllm").json()["revision"] == first
    ask(service, MAINTAINER, "POST", f"upkeep/{finding['id']}/accept").raise_for_status()
    assert ask(service, IMPORTER, "GET", "configs/toy-vllm").json()["revision"] != first
    assert value(service, "toy-vllm") | {"source": ""} == value(service, "toy-vllm") | {
        "value": 0.7, "imported": 0.7, "served": 0.6, "status": "vendor", "source": "",
    }  # fmt: skip
    assert index(service) == both

    # An edit by a key that may import: the comment and the decision name the person.
    patch = {"parameters": {"temperature": 0.9}}
    edit = ask(service, IMPORTER, "PATCH", "configs/toy-vllm", json=patch, headers=ANY)
    assert "temperature: 0.9  # edited by ivo, 20" in edit.json()["text"]
    assert value(service, "toy-vllm")["by"] == "ivo"
    found = value(service, "toy-vllm")
    assert (found["value"], found["imported"], found["served"], found["status"]) == (0.9, 0.7, 0.6, "edited")
    assert found["vendor"] == {"value": 0.7, "source": "generation_config.json"}
    problem(ask(service, IMPORTER, "POST", "configs/toy-vllm/releases", json={}), 403, "wrong-scope")
    slip = {"engine_arg": {}, "function": {"gramar": {}}}
    told = problem(
        ask(service, IMPORTER, "PATCH", "configs/toy-vllm", json=slip, headers=ANY), 422, "invalid"
    )
    assert {one["pointer"] for one in told["errors"]} == {"/engine_arg", "/function/gramar"}
    assert index(service) == both

    # Promote: the release keeps what its entry lacks, as the reviewer was shown it.
    validated(service, "toy-vllm")
    losses = ask(service, MAINTAINER, "GET", "configs/toy-vllm/decisions").json()["losses"]
    assert approved(service, "toy-vllm").json()["release"] == 2
    assert index(service) == both | {"toy-vllm": ("vllm", 0.9, [])}
    released = ask(service, IMPORTER, "GET", "configs/toy-vllm/releases/2").json()
    assert (released["losses"], released["by"]) == (losses, "ann")
    assert value(service, "toy-vllm")["served"] == 0.9

    # Roll back.
    back = ask(service, MAINTAINER, "POST", "configs/toy-vllm/releases/1/rollback", json={"note": "loops"})
    assert back.json()["release"]["revision"] == first
    assert index(service) == both
