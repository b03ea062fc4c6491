"""Plain Kubernetes: a Deployment with the server of this document, and a Service in front of it."""

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
)
from importer.exports.compose import labels
from importer.exports.kubernetes import (
    SECRET,
    SECRET_KEY,
    amounts,
    config_map,
    inside,
    manifests,
    object_name,
    pod,
)
from importer.exports.vllm import served
from importer.reasons import Reason

PORT = 8000
LABEL = "app.kubernetes.io/name"


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return a Deployment of one pod, its Service, and a ConfigMap where the server needs files."""
    service = served(document, receipt, options, lambda _: inside(PORT))
    if isinstance(service, ExportRefused):
        return service
    origin = service.origin
    if origin.hub_id is None:
        return ExportRefused(Reason(Unexportable.DIRECTORY), Reason(ExportRemedy.IMPORT_FROM_HUB))
    wanted = amounts(document, receipt, service.device)
    name = object_name(origin.name)
    chosen = {LABEL: name}
    metadata: dict[str, Any] = {"name": name, "labels": chosen, "annotations": labels(origin)}
    template = {
        "metadata": {"labels": chosen, "annotations": labels(origin)},
        "spec": pod(service, document, wanted.quantities, PORT),
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        # A second pod beside the first would wait for cards that the first still holds.
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": chosen},
            "template": template,
        },
    }
    front = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"selector": chosen, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
    }
    comments = [
        *service.comments,
        Reason(ExportComment.UNRUN_KUBERNETES, secret=SECRET, key=SECRET_KEY),
        wanted.comment,
    ]
    text = manifests([*config_map(service, metadata), deployment, front], comments)
    return Exported({f"{origin.name}.kubernetes.yaml": text}, service.lost)
