"""Objects for Kubernetes: names, literal words, a vLLM server in a pod without rights, a Job that validates.

Fields and their meaning: Kubernetes 1.37, https://kubernetes.io/docs/reference/kubernetes-api/.

The launcher of ``k8s:`` submits its own Job and brings the report back. This one is for those who keep their
objects in Git: it succeeds when every probe passes, and the report is its log.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from importer.document.document import Document
from importer.document.receipt import Receipt
from importer.engines.base import Address
from importer.exports import vllm
from importer.exports.base import Device, Exported, Options, Placement, Service
from importer.exports.compose import SETTINGS, labels
from importer.exports.kinds import ExportComment, MemoryReason, unrun
from importer.exports.texts import yaml_text
from importer.exports.vllm import BUILDS, devices, image, served, version
from importer.frozen import frozen
from importer.reasons import Reason

CHECKED = (
    "Checked against the schemas of Kubernetes, not run. Build the image {image} first: vLLM's, with "
    "importer in it. A queue of Kueue is the label {label}; a gated model needs a secret {secret} "
    "with {key}."
)

NAME = 52  # characters; controllers append others to make the names of pods and hosts
USER = 2000  # no user of the image: the pod needs no rights of one
CACHE = "/cache"  # home of the server: the one writable place that lasts as long as the pod
SECRET, SECRET_KEY = "huggingface", "HF_TOKEN"  # the name of a secret, and of its key
CPU, MEMORY = "4", (16, Reason(MemoryReason.GUESS))  # GiB without a fit
SHARED = "8Gi"  # memory that the server's processes share


@frozen
class Amounts:
    """The resources of a pod, and the comment that says where they come from."""

    quantities: Mapping[str, str]
    comment: Reason


def amounts(document: Document, receipt: Receipt | None, device: Device) -> Amounts:
    """Return processors, memory and cards of a document's server."""
    memory, why = vllm.memory(receipt, device) or MEMORY
    quantities = {"cpu": CPU, "memory": f"{memory}Gi"}
    if device == "gpu":
        quantities["nvidia.com/gpu"] = str(devices(document))
    comment = Reason(ExportComment.RESOURCES, processors=CPU, memory=memory, why=why)
    return Amounts(quantities, comment)


def inside(port: int) -> Placement:
    """Return the placement in a pod: every address, files at the place of its ConfigMap."""
    return Placement(Address("0.0.0.0", port), SETTINGS)  # noqa: S104 - all addresses of the pod


def literal(word: str) -> str:
    """Return the word with every ``$`` escaped: Kubernetes puts variables into arguments and values."""
    return word.replace("$", "$$")


def without_templates(word: str) -> str:
    """Return a literal word that is no Go template, either.

    ``{{`` stands only inside of JSON strings, where a brace may be written as an escape.
    """
    return literal(word.replace("{{", r"{\u007b"))


def object_name(name: str) -> str:
    """Return a valid name of Kubernetes: lower case, digits and hyphens, a letter first."""
    plain = re.sub(r"[^a-z0-9-]", "-", name)
    plain = plain if plain[0].isalpha() else f"m-{plain}"
    return plain[:NAME].rstrip("-")


def unprivileged() -> dict[str, object]:
    """Return the rights of a container: no user of the host, no capability, a read-only root."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def secret(variable: str, name: str, key: str, *, optional: bool) -> dict[str, object]:
    """Return a variable whose value stays in a secret of the cluster."""
    reference = {"name": name, "key": key, "optional": optional}
    return {"name": variable, "valueFrom": {"secretKeyRef": reference}}


def variables(values: Mapping[str, str]) -> list[dict[str, object]]:
    """Return variables with literal values."""
    return [{"name": name, "value": literal(value)} for name, value in values.items()]


def writable(paths: Mapping[str, str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return mounts and volumes of empty folders by name; beside them nothing can be written."""
    mounts = [{"name": name, "mountPath": path} for name, path in paths.items()]
    return mounts, [{"name": name, "emptyDir": {}} for name in paths]


def pod(service: Service, document: Document, quantities: Mapping[str, str], port: int) -> dict[str, object]:
    """Return the specification of a pod with the server of a document."""
    mounts, volumes = writable({"cache": CACHE, "tmp": "/tmp"})  # noqa: S108 - of the pod alone
    mounts.append({"name": "shared", "mountPath": "/dev/shm"})  # noqa: S108 - likewise
    volumes.append({"name": "shared", "emptyDir": {"medium": "Memory", "sizeLimit": SHARED}})
    if service.files:
        name = settings_name(service.origin.name)
        mounts.append({"name": "settings", "mountPath": SETTINGS, "readOnly": True})
        volumes.append({"name": "settings", "configMap": {"name": name}})
    own = {"HOME": CACHE, "USER": "vllm", "VLLM_NO_USAGE_STATS": "1"}
    health = {"httpGet": {"path": "/health", "port": port}}
    container = {
        "name": "vllm",
        "image": image(document, service.device),
        "command": ["vllm", "serve"],
        "args": [literal(word) for word in (service.origin.model, *service.words)],
        "env": [
            secret("HF_TOKEN", SECRET, SECRET_KEY, optional=True),
            *variables({**own, **service.variables}),
        ],
        "ports": [{"name": "http", "containerPort": port}],
        "resources": {"requests": dict(quantities), "limits": dict(quantities)},
        # Weights are fetched and loaded in the first hour; the first healthy answer ends it.
        "startupProbe": {**health, "periodSeconds": 10, "failureThreshold": 360},
        "readinessProbe": {**health, "periodSeconds": 10, "failureThreshold": 3},
        "livenessProbe": {**health, "periodSeconds": 30, "failureThreshold": 3, "timeoutSeconds": 10},
        "securityContext": unprivileged(),
        "volumeMounts": mounts,
    }
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,  # a service named vllm would set variables that vLLM reads
        "securityContext": {"fsGroup": USER},
        "containers": [container],
        "volumes": volumes,
    }


def settings_name(name: str) -> str:
    """Return the name of the ConfigMap with the files of a server."""
    return f"{object_name(name)}-settings"


def config_map(service: Service, metadata: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the ConfigMap with the files of a server; none without files."""
    if not service.files:
        return []
    own = {**metadata, "name": settings_name(service.origin.name)}
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": own, "data": dict(service.files)}]


def manifests(objects: Sequence[Mapping[str, object]], comments: Sequence[Reason]) -> str:
    """Return objects as one YAML stream below ``comments``."""
    first, *others = objects
    return yaml_text(first, comments) + "".join(f"---\n{yaml_text(item, [])}" for item in others)


IMAGE = "importer-vllm"  # vLLM's image with the importer in it: nobody publishes one
INPUT, WORK, HOME = "/importer/input", "/importer/work", "/importer/home"
SECONDS, KEPT = 6 * 3600, 24 * 3600  # for the run; after its end
QUEUE = "kueue.x-k8s.io/queue-name"


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported:
    """Return a ConfigMap with the document and its template, and a Job of one pod that is started once."""
    service = served(document, receipt, options, inside(0), fetches=True)
    origin = service.origin
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
        unrun(CHECKED, image=image, label=QUEUE, secret=SECRET, key=SECRET_KEY),
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
    return run_once(container, volumes)


def run_once(container: Mapping[str, object], volumes: Sequence[object]) -> dict[str, object]:
    """Return the pod of one container that runs once, without rights in the cluster."""
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"fsGroup": 2000},
        "containers": [container],
        "volumes": volumes,
    }
