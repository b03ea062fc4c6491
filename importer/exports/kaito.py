"""A workspace of Kaito with the server of this document in a pod of its own.

A preset of Kaito has no place for a commit, an image or a version, so the workspace has a template
(github.com/kaito-project/kaito: api/v1beta1/workspace_types.go, 2026-10).
"""

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

PORT = 5000  # where Kaito's service of a workspace finds the server
LABEL = "kaito.sh/nodes-of"


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return a workspace on the nodes with its label, and a ConfigMap where the server needs files."""
    service = served(document, receipt, options, lambda _: inside(PORT))
    if isinstance(service, ExportRefused):
        return service
    origin = service.origin
    if origin.hub_id is None:
        return ExportRefused(Reason(Unexportable.DIRECTORY), Reason(ExportRemedy.IMPORT_FROM_HUB))
    wanted = amounts(document, receipt, service.device)
    name = object_name(origin.name)
    metadata: dict[str, Any] = {"name": name, "annotations": labels(origin)}
    workspace = {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "Workspace",
        "metadata": metadata,
        "resource": {"labelSelector": {"matchLabels": {LABEL: name}}},
        "inference": {"template": {"spec": pod(service, document, wanted.quantities, PORT)}},
    }
    comments = [
        *service.comments,
        Reason(ExportComment.UNRUN_KAITO, label=f"{LABEL}={name}", secret=SECRET, key=SECRET_KEY),
        wanted.comment,
    ]
    text = manifests([*config_map(service, metadata), workspace], comments)
    return Exported({f"{origin.name}.workspace.yaml": text}, service.lost)
