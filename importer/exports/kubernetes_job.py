"""Plain Kubernetes: a Job that validates this document in the cluster, with the document in a ConfigMap.

The launcher of ``k8s:`` submits its own Job and brings the report back. This one is for those who keep their
objects in Git: it succeeds when every probe passes, and the report is its log.
"""

from __future__ import annotations

import shlex

from importer.config_file.document import Document
from importer.config_file.receipt import Receipt
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
    inside,
    literal,
    manifests,
    object_name,
    secret,
    unprivileged,
    variables,
    writable,
)
from importer.exports.vllm import BUILDS, served, version
from importer.reasons import Reason

IMAGE = "importer-vllm"  # vLLM's image with the importer in it: nobody publishes one
INPUT, WORK, HOME = "/importer/input", "/importer/work", "/importer/home"
SECONDS, KEPT = 6 * 3600, 24 * 3600  # for the run; after its end
QUEUE = "kueue.x-k8s.io/queue-name"


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return a ConfigMap with the document and its template, and a Job of one pod that is started once."""
    service = served(document, receipt, options, lambda _: inside(0))
    if isinstance(service, ExportRefused):
        return service
    origin = service.origin
    if origin.hub_id is None:
        return ExportRefused(Reason(Unexportable.DIRECTORY), Reason(ExportRemedy.IMPORT_FROM_HUB))
    wanted = amounts(document, receipt, service.device)
    name = f"validate-{object_name(origin.name)}"[:52].rstrip("-")
    about: dict[str, object] = {"name": name, "annotations": labels(origin)}
    files = {f"{origin.name}.yaml": yaml_text(document, [])}
    if options.template is not None:
        files[options.template.path.name] = options.template.text
    image = f"{IMAGE}:v{version(document, BUILDS[service.device])}"
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": files}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": about,
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": SECONDS,
            "ttlSecondsAfterFinished": KEPT,
            "template": {"spec": _pod(origin.name, name, image, dict(wanted.quantities))},
        },
    }
    comments = [
        *origin.comments(),
        Reason(ExportComment.UNRUN_JOB, image=image, label=QUEUE, secret=SECRET, key=SECRET_KEY),
        wanted.comment,
    ]
    return Exported({f"{origin.name}.job.yaml": manifests([config, job], comments)})


def _pod(document: str, config: str, image: str, quantities: dict[str, str]) -> dict[str, object]:
    """Return the pod: a copy of the document where it can be written beside, then the importer."""
    mounts, volumes = writable({"work": WORK, "home": HOME, "tmp": "/tmp"})  # noqa: S108 - of the pod alone
    mounts.append({"name": "input", "mountPath": INPUT, "readOnly": True})
    volumes.append({"name": "input", "configMap": {"name": config}})
    mounts.append({"name": "shared", "mountPath": "/dev/shm"})  # noqa: S108 - likewise
    volumes.append({"name": "shared", "emptyDir": {"medium": "Memory"}})
    run = shlex.join(["python3", "-P", "-m", "importer", "validate", document, "--dir", WORK])
    own = {"HOME": HOME, "USER": "importer", "IMPORTER_HOME": f"{HOME}/importer"}
    container = {
        "name": "importer",
        "image": image,
        "command": ["sh", "-c", literal(f"cp {INPUT}/* {WORK}/ && exec {run}")],
        "env": [secret("HF_TOKEN", SECRET, SECRET_KEY, optional=True), *variables(own)],
        "resources": {"requests": quantities, "limits": quantities},
        "securityContext": unprivileged(),
        "volumeMounts": mounts,
        "workingDir": WORK,
    }
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"fsGroup": 2000},
        "containers": [container],
        "volumes": volumes,
    }
