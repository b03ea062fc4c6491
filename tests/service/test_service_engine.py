"""Validations through the service on the real mlx-lm: published, stale, measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from importer.engines.install import Installed
from tests.hubserver import Repo
from tests.serving import Service, events, running

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.xdist_group("service-mlx")]
DEMO = Path(__file__).parents[2] / "importer" / "demo" / "model"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, mlx_engine: Installed) -> Iterator[Service]:
    """A server that validates, and the demonstration model on its Hub."""
    del mlx_engine
    folder = tmp_path_factory.mktemp("service")
    with running(folder, engines=True, **{"acme/demo": Repo(DEMO)}) as one:
        assert one.imported("acme/demo", backend="mlx")["state"] == "succeeded"
        yield one


@pytest.mark.nightly
def test_from_import_to_published(service: Service) -> None:
    path = "/v1/configs/demo"
    assert any(e["rule"] == "proof" for e in service.client.get(f"{path}/decisions").json()["evidence"])
    job = service.client.post(f"{path}/validate", json={"thorough": True}).json()
    with service.client.stream("GET", job["links"]["events"]["href"]) as stream:
        seen = [*events(stream)]
    assert [e["data"]["step"] for e in seen if e["event"] == "step"] == ["weights", "run", "store"]
    ended = service.ended(job["id"])
    assert (ended["state"], ended["result"]["passed"], ended["result"]["state"]) == (
        "succeeded", True, "draft",
    )  # fmt: skip
    assert not service.engines()
    approved = service.client.post(f"{path}/approve", json={"digest": ended["result"]["digest"]}).json()
    assert (approved["state"], approved["validation"], approved["reason"]) == ("published", "passed", None)
    receipt = service.client.get(f"{path}/receipt").json()
    assert receipt["validation"]["abilities"]["tools"]["asked"] >= 35
    outcomes = receipt["validation"]["outcomes"]
    assert all(o["exchanges"] for o in outcomes if o["probe"] == "tool-call")
    patch = {"parameters": {"temperature": 0.2}}
    edited = service.client.patch(path, json=patch, headers={"If-Match": service.etag("demo")}).json()
    assert (edited["state"], edited["validation"]) == ("stale", "stale")
    service.approve("demo")
    assert service.client.get(path).json()["reason"].startswith("its validation does not hold")
    text = yaml.safe_load(service.client.get(f"{path}/versions/1").json()["text"])
    back = {"parameters": {"temperature": text["parameters"]["temperature"]}}
    service.client.patch(path, json=back, headers={"If-Match": service.etag("demo")})
    assert service.client.get(path).json()["release"] == approved["release"]  # the first one
    assert service.approve("demo").json()["state"] == "published"


@pytest.mark.nightly
@pytest.mark.xdist_group("vllm")
def test_the_memory_is_measured_without_the_weights(tmp_path: Path, vllm_engine: Installed) -> None:
    """As a job on a worker; what does not start with random weights is a failure with its sentence."""
    files = {one.name: one.read_bytes() for one in DEMO.iterdir() if one.suffix != ".safetensors"}
    with running(tmp_path, engines=True, **{"acme/demo": Repo(DEMO), "acme/toy": Repo(files)}) as service:
        assert service.imported("acme/toy", device="this-machine")["state"] == "succeeded"
        assert service.imported("acme/demo", backend="mlx")["state"] == "succeeded"
        job = service.client.post("/v1/configs/toy/validate", json={"measure": True, "fetch": False}).json()
        ended = service.ended(job["id"])
        assert ended["state"] == "succeeded", ended
        assert ended["result"]["measured"]["version"] == vllm_engine.version
        assert not service.engines()
        receipt = service.client.get("/v1/configs/toy/receipt").json()
        assert receipt["fit"]["measured"] == ended["result"]["measured"]
        assert receipt["validation"] is None
        other = service.client.post("/v1/configs/demo/validate", json={"measure": True}).json()
        failed = service.ended(other["id"])
        assert (failed["state"], failed["error"]["kind"]) == ("failed", "not-measured")
