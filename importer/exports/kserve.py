"""An InferenceService for KServe's vLLM runtime, that runs the server of this document."""

from __future__ import annotations

from typing import Any

from importer.config_file.receipt import Receipt
from importer.engines.base import Document
from importer.exports.base import (
    ExportComment,
    Exported,
    ExportRefused,
    ExportRemedy,
    Options,
    Unexportable,
    yaml_text,
)
from importer.exports.compose import labels
from importer.exports.kubernetes import amounts, image, object_name, without_templates
from importer.exports.vllm import VllmPlacement, served
from importer.reasons import Reason

RUNTIME = (
    "kserve-vllmserver"  # of KServe 0.20; its command has the port and /mnt/models, the place of storageUri
)


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return one object; KServe fetches the commit and mounts a folder for the server."""
    service = served(document, receipt, options, lambda _: VllmPlacement(pinned=False))
    if isinstance(service, ExportRefused):
        return service
    origin = service.origin
    if origin.hub_id is None:
        return ExportRefused(Reason(Unexportable.DIRECTORY), Reason(ExportRemedy.IMPORT_FROM_HUB))
    wanted = amounts(document, receipt, service.device)
    revision = f":{origin.revision}" if origin.revision else ""
    model: dict[str, Any] = {
        "modelFormat": {"name": "vLLM"},
        "runtime": RUNTIME,
        "image": image(document, service.device),
        "storageUri": f"hf://{origin.hub_id}{revision}",
        "args": [without_templates(word) for word in service.words],
        "env": [
            {"name": name, "value": value}
            for name, value in {"VLLM_NO_USAGE_STATS": "1", **service.variables}.items()
        ],
        "resources": {"requests": wanted.quantities, "limits": wanted.quantities},
    }
    data = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": object_name(origin.name), "annotations": labels(origin)},
        "spec": {"predictor": {"model": model}},
    }
    comments = [
        *service.comments,
        Reason(ExportComment.UNRUN_KSERVE, runtime=RUNTIME),
        wanted.comment,
    ]
    return Exported({f"{origin.name}.inferenceservice.yaml": yaml_text(data, comments)}, service.lost)
