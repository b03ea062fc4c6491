"""The values of Kubernetes' objects: names, literal words, amounts, and rights that a container goes without.

Fields and their meaning: Kubernetes 1.37, https://kubernetes.io/docs/reference/kubernetes-api/.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from importer.document.document import Document
from importer.document.receipt import Receipt
from importer.engines.base import Address
from importer.exports import vllm
from importer.exports.base import Device, Placement, Service
from importer.exports.compose import SETTINGS
from importer.exports.kinds import ExportComment, MemoryReason
from importer.exports.texts import yaml_text
from importer.exports.vllm import devices
from importer.frozen import frozen
from importer.reasons import Reason

NAME = 52  # characters; controllers append others to make the names of pods and hosts
USER = 2000  # no user of the image: the pod needs no rights of one
SECRET, SECRET_KEY = "huggingface", "HF_TOKEN"  # the name of a secret, and of its key
CPU, MEMORY = "4", (16, Reason(MemoryReason.GUESS))  # GiB without a fit


@frozen
class Amounts:
    """The resources of a pod, and the comment that says where they come from."""

    quantities: Mapping[str, str]
    comment: Reason


def amounts(document: Document, receipt: Receipt | None, device: Device) -> Amounts:
    """Return processors, memory and cards of a document's server."""
    memory, why = vllm.memory(document, receipt, device) or MEMORY
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
