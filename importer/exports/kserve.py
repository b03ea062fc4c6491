"""An InferenceService for KServe's vLLM runtime, that runs the server of this document."""

from __future__ import annotations

import re
from typing import Any

from importer.config_file.receipt import Receipt
from importer.engines.base import Document
from importer.exports import vllm
from importer.exports.base import (
    ExportComment,
    Exported,
    ExportRefused,
    ExportRemedy,
    MemoryReason,
    Options,
    Unexportable,
    yaml_text,
)
from importer.exports.compose import IMAGES, labels
from importer.exports.vllm import BUILDS, VllmPlacement, devices, served, version
from importer.reasons import Reason

NAME = 52  # characters; KServe appends others to make a host name
RUNTIME = (
    "kserve-vllmserver"  # of KServe 0.20; its command has the port and /mnt/models, the place of storageUri
)
CPU, MEMORY = "4", (16, Reason(MemoryReason.GUESS))  # GiB without a fit


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return one object; KServe fetches the commit and mounts a folder for the server."""
    service = served(document, receipt, options, lambda _: VllmPlacement(pinned=False))
    if isinstance(service, ExportRefused):
        return service
    origin = service.origin
    if origin.hub_id is None:
        return ExportRefused(Reason(Unexportable.DIRECTORY), Reason(ExportRemedy.IMPORT_FROM_HUB))
    memory, why = vllm.memory(receipt, service.device) or MEMORY
    resources = {"cpu": CPU, "memory": f"{memory}Gi"}
    if service.device == "gpu":
        resources["nvidia.com/gpu"] = str(devices(document))
    revision = f":{origin.revision}" if origin.revision else ""
    model: dict[str, Any] = {
        "modelFormat": {"name": "vLLM"},
        "runtime": RUNTIME,
        "image": f"{IMAGES[service.device]}:v{version(document, BUILDS[service.device])}",
        "storageUri": f"hf://{origin.hub_id}{revision}",
        "args": [_literal(word) for word in service.words],
        "env": [
            {"name": name, "value": value}
            for name, value in {"VLLM_NO_USAGE_STATS": "1", **service.variables}.items()
        ],
        "resources": {"requests": resources, "limits": resources},
    }
    data = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": _name(origin.name), "annotations": labels(origin)},
        "spec": {"predictor": {"model": model}},
    }
    comments = [
        *service.comments,
        Reason(ExportComment.UNRUN_KSERVE, runtime=RUNTIME),
        Reason(ExportComment.RESOURCES, processors=CPU, memory=memory, why=why),
    ]
    return Exported({f"{origin.name}.inferenceservice.yaml": yaml_text(data, comments)}, service.lost)


def _literal(word: str) -> str:
    """Return the word escaped for the variables of Kubernetes and the Go templates of KServe.

    ``{{`` stands only inside of JSON strings, where a brace may be written as an escape.
    """
    return word.replace("{{", r"{\u007b").replace("$", "$$")


def _name(name: str) -> str:
    """Return a valid name of Kubernetes: lower case, digits and hyphens, a letter first."""
    plain = re.sub(r"[^a-z0-9-]", "-", name)
    plain = plain if plain[0].isalpha() else f"m-{plain}"
    return plain[:NAME].rstrip("-")
