"""An InferenceService for KServe's vLLM runtime, which runs the server that this document is for."""

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
from importer.exports.vllm import VllmPlacement, devices, served, version
from importer.reasons import Reason

NAME = 52  # characters that leave room for what KServe appends to make a host's name of it
RUNTIME = "kserve-vllmserver"  # of KServe 0.20; it is told the port and /mnt/models, where storageUri arrives
CPU, MEMORY = "4", (16, Reason(MemoryReason.GUESS))  # where no fit tells how many GiB


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return one object; KServe fetches the commit and hands the server a folder."""
    found = served(document, receipt, options, lambda _: VllmPlacement(pinned=False))
    if isinstance(found, ExportRefused):
        return found
    origin = found.origin
    if origin.hub_id is None:
        return ExportRefused(Reason(Unexportable.DIRECTORY), Reason(ExportRemedy.IMPORT_FROM_HUB))
    memory, why = vllm.memory(receipt, found.device) or MEMORY
    resources = {"cpu": CPU, "memory": f"{memory}Gi"}
    if found.device == "gpu":
        resources["nvidia.com/gpu"] = str(devices(document))
    revision = f":{origin.revision}" if origin.revision else ""
    model: dict[str, Any] = {
        "modelFormat": {"name": "vLLM"},
        "runtime": RUNTIME,
        "image": f"{IMAGES[found.device]}:v{version(document)}",
        "storageUri": f"hf://{origin.hub_id}{revision}",
        "args": [_literal(word) for word in found.words],
        "env": [{"name": "VLLM_NO_USAGE_STATS", "value": "1"}],
        "resources": {"requests": resources, "limits": resources},
    }
    data = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": _name(origin.name), "annotations": labels(origin)},
        "spec": {"predictor": {"model": model}},
    }
    comments = [
        *found.comments,
        Reason(ExportComment.UNRUN_KSERVE, runtime=RUNTIME),
        Reason(ExportComment.RESOURCES, processors=CPU, memory=memory, why=why),
    ]
    return Exported({f"{origin.name}.inferenceservice.yaml": yaml_text(data, comments)}, found.lost)


def _literal(word: str) -> str:
    """Return the same word after Kubernetes has put variables into it and KServe has read it as a Go
    template.

    ``{{`` stands only inside of JSON strings, where a brace may be written as an escape.
    """
    return word.replace("{{", r"{\u007b").replace("$", "$$")


def _name(name: str) -> str:
    """Return a name as Kubernetes takes it: lower case, digits and hyphens, a letter first."""
    plain = re.sub(r"[^a-z0-9-]", "-", name)
    plain = plain if plain[0].isalpha() else f"m-{plain}"
    return plain[:NAME].rstrip("-")
