"""An LLMInferenceService of KServe: the server of this document behind llm-d's scheduler.

KServe's own template starts the server in a shell and adds the words of ``VLLM_ADDITIONAL_ARGS``. It sets
the folder of the model, the served name, the port and the certificates
(github.com/kserve/kserve: config/llmisvcconfig and pkg/apis/serving, 2026-10).
"""

from __future__ import annotations

import shlex

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
from importer.exports.kubernetes import (
    SECRET,
    SECRET_KEY,
    amounts,
    image,
    object_name,
    secret,
    variables,
    without_templates,
)
from importer.exports.vllm import VllmPlacement, served
from importer.reasons import Reason

WORDS = "VLLM_ADDITIONAL_ARGS"
NAMED = "--served-model-name="


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return one object; KServe fetches the commit, llm-d's scheduler chooses among its copies."""
    service = served(document, receipt, options, lambda _: VllmPlacement(pinned=False))
    if isinstance(service, ExportRefused):
        return service
    origin = service.origin
    if origin.hub_id is None:
        return ExportRefused(Reason(Unexportable.DIRECTORY), Reason(ExportRemedy.IMPORT_FROM_HUB))
    wanted = amounts(document, receipt, service.device)
    words = shlex.join(word for word in service.words if not word.startswith(NAMED))
    revision = f":{origin.revision}" if origin.revision else ""
    container = {
        "name": "main",
        "image": image(document, service.device),
        "env": [
            {"name": WORDS, "value": without_templates(words)},
            secret("HF_TOKEN", SECRET, SECRET_KEY, optional=True),
            *variables({"VLLM_NO_USAGE_STATS": "1", **service.variables}),
        ],
        "resources": {"requests": wanted.quantities, "limits": wanted.quantities},
    }
    data = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "LLMInferenceService",
        "metadata": {"name": object_name(origin.name), "annotations": labels(origin)},
        "spec": {
            "model": {"uri": f"hf://{origin.hub_id}{revision}", "name": origin.name},
            "replicas": 1,
            "router": {"route": {}, "gateway": {}, "scheduler": {}},
            "template": {"containers": [container]},
        },
    }
    comments = [
        *service.comments,
        Reason(ExportComment.UNRUN_LLM_D, variable=WORDS, secret=SECRET, key=SECRET_KEY),
        wanted.comment,
    ]
    return Exported({f"{origin.name}.llminferenceservice.yaml": yaml_text(data, comments)}, service.lost)
