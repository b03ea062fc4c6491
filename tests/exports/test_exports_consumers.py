"""Exports read by the loaders of their consumers: Kubernetes' schemas, Ray Serve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from importer.engines.install import Installed
from importer.engines.vllm import VllmCuda
from tests.consumers import answer, environment, site_packages
from tests.exporting import COMMIT, VLLM, text

pytestmark = [pytest.mark.slow, pytest.mark.nightly]
STOPS = VLLM | {
    "stopwords": ["<end>"],
    "importer": {**VLLM["importer"], "end_tokens": {"2": "</s>", "106": "<end>"}},
}

BY_KUBERNETES = """
import json, sys
import kubernetes_validate as checker
faults = []
for item in json.load(sys.stdin):
    try:
        checker.validate(item, "1.37", strict=True)
        faults.append(None)
    except checker.ValidationError as error:
        faults.append(error.message)
print(json.dumps(faults))
"""


def by_kubernetes(objects: list[dict[str, Any]], folder: Path) -> list[str | None]:
    """What the schemas of Kubernetes 1.37 have against objects; unknown fields are faults."""
    python = environment("kubernetes", "kubernetes-validate==1.37.0")
    return answer(python, BY_KUBERNETES, objects, folder)  # type: ignore[no-any-return]


def test_kubernetes_reads_its_objects(tmp_path: Path) -> None:
    objects = [*yaml.safe_load_all(text("kubernetes", STOPS))]
    assert [item["kind"] for item in objects] == ["ConfigMap", "Deployment", "Service"]
    (workspace,) = yaml.safe_load_all(text("kaito", VLLM))
    template = workspace["inference"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": template["spec"]}
    (service,) = yaml.safe_load_all(text("llm-d", VLLM))
    of_llm_d = {**pod, "spec": service["spec"]["template"]}
    wrong = {**pod, "spec": {**template["spec"], "container": []}}
    objects += yaml.safe_load_all(text("kubernetes-job", VLLM))
    *found, refused = by_kubernetes([*objects, pod, of_llm_d, wrong], tmp_path)
    assert found == [None] * 7
    assert refused


BY_RAY = """
import json, sys
given = json.load(sys.stdin)
sys.path.append(given["packages"])
from ray.serve.llm import LLMConfig
from ray.serve.schema import ServeDeploySchema
deployed = ServeDeploySchema.model_validate(given["config"])
(application,) = deployed.applications
(model,) = application.args["llm_configs"]
engine = LLMConfig.model_validate(model).get_engine_config()
print(json.dumps({
    "route": application.route_prefix, "import_path": application.import_path, "model": engine.hf_model_id,
    "name": engine.model_id, "engine": engine.engine_kwargs, "frontend": engine.frontend_kwargs,
    "cards": engine.num_devices,
}))
"""


@pytest.mark.engine
def test_ray_serve_reads_its_configuration(vllm_engine: Installed, tmp_path: Path) -> None:
    """Ray asks vLLM which keywords are its engine's, and which its frontend's."""
    packages = ("ray[serve]==2.60.0", "pyarrow>=17.0.0", "jsonref>=1.1.0", "fsspec")
    ray = site_packages(environment("ray-serve", *packages))
    config = yaml.safe_load(text("ray-serve", VLLM))
    found = answer(vllm_engine.python, BY_RAY, {"packages": str(ray), "config": config}, tmp_path)
    assert (found["model"], found["name"], found["cards"]) == ("acme/Tiny-8B", "tiny-8b", 2)
    assert found["import_path"] == "ray.serve.llm:build_openai_app"
    assert found["frontend"]["tool_call_parser"] == "hermes"
    assert found["engine"]["revision"] == COMMIT
    keywords = {**found["engine"], **found["frontend"]}
    assert len(keywords) == len(
        [w for w in VllmCuda().settings(VLLM, None, COMMIT) if "served-model" not in w]
    )
