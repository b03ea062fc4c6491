"""From a URI to a gallery, by LocalAI's own calls and ours, with a validation on the real mlx-lm."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from importer.engines.install import Installed
from tests.hubserver import Repo
from tests.localai_client import BEGUN, GALLERY_MODEL, METADATA, LocalAI, decoded
from tests.serving import running

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.xdist_group("service-mlx")]
DEMO = Path(__file__).parents[2] / "importer" / "demo" / "model"


def test_from_a_uri_to_what_localai_installs(tmp_path: Path, mlx_engine: Installed) -> None:
    del mlx_engine
    with running(tmp_path, engines=True, **{"acme/demo": Repo(DEMO)}) as service:
        local = LocalAI(service.url)
        begun = decoded(local.import_uri("huggingface://acme/demo", {"backend": "mlx"}).json(), BEGUN)
        assert begun["estimated_size_bytes"] > 0
        done = local.finished(begun)
        assert local.succeeded(done)
        name = done["gallery_element_name"]
        assert yaml.safe_load(local.get("/gallery/index.yaml").text) == []
        job = service.client.post(f"/v1/configs/{name}/validate").json()
        assert service.ended(job["id"])["result"]["passed"] is True
        service.approve(name, note="read").raise_for_status()
        (gallery,) = local.get("/models/galleries").json()
        items = [decoded(one, GALLERY_MODEL) for one in yaml.safe_load(local.get(gallery["url"]).text)]
        assert [one["name"] for one in items] == [name]
        assert [decoded(one, METADATA)["name"] for one in local.get("/models/available").json()] == [name]
        written = local.installed_from(items, name)
        assert (written["backend"], written["parameters"]["model"]) == ("mlx", "acme/demo")
        file = yaml.safe_load(local.get(items[0]["urls"][-1]).text)
        assert yaml.safe_load(file["config_file"]) == items[0]["config_file"]
        known = {one["name"]: one["installed"] for one in local.get("/backends/known").json()}
        assert known["mlx"] is True
        patched = local.ask("PATCH", f"/api/models/config-json/{name}", json={"parameters": {"top_p": 0.5}})
        assert patched.status_code == 200, patched.text
        kept = [decoded(one, GALLERY_MODEL) for one in yaml.safe_load(local.get(gallery["url"]).text)]
        assert kept == items  # the working copy alone has changed
        service.client.post(f"/v1/configs/{name}/releases/1/withdraw").raise_for_status()
        assert yaml.safe_load(local.get("/gallery/index.yaml").text) == []
        assert local.get(f"/gallery/{name}.yaml").status_code == 404
