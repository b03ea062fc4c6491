"""What objects for clusters are held to: schemas written from the types that their controllers read.

Sources, read on 2026-11-23: Kubernetes 1.37's API; github.com/kserve/kserve,
``pkg/apis/serving/v1alpha2/llm_inference_service_types.go`` (its fields are those of v1alpha1, too);
github.com/kaito-project/kaito, ``api/v1beta1/workspace_types.go``. Only what is written here is listed: a key
beside these is a fault.
"""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator

NAME = {"type": "string", "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
TEXT = {"type": "string"}
# No variable of Kubernetes is left in it: every ``$`` is doubled.
LITERAL = {"type": "string", "pattern": r"^(?:[^$]|\$\$)*$"}
NO_TEMPLATE = {"type": "string", "pattern": r"^(?!.*\{\{)(?:[^$]|\$\$)*$"}


def closed(required: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An object with these keys alone."""
    properties = {**required, **more}
    return {
        "type": "object", "required": [*required], "properties": properties, "additionalProperties": False,
    }  # fmt: skip


def listed(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


# KubeAI, ``api/k8s/v1/model_types.go``, read on 2026-11-28: enumerations, lengths and the rules of ``url``.
KUBEAI = {
    "type": "object", "required": ["features", "url", "engine"], "additionalProperties": False,
    "properties": {
        "features": {
            "type": "array", "minItems": 1,
            "items": {"enum": ["TextGeneration", "TextEmbedding", "SpeechToText"]},
        },
        "url": {"type": "string", "pattern": "^hf://[^/]+/[^/]+$"},
        "engine": {"const": "VLLM"},
        "image": {"type": "string", "pattern": "^[a-z0-9/_.-]+:v[0-9][0-9a-z.]*$"},
        "args": {"type": "array", "items": {"type": "string", "pattern": r"^(?:[^$]|\$\$)*$"}},
        "env": {
            "type": "object",
            "propertyNames": {"pattern": "^(?!.*TOKEN)[A-Z][A-Z0-9_]*$"},
            "additionalProperties": {"type": "string", "pattern": r"^(?:[^$]|\$\$)*$"},
        },
    },
}  # fmt: skip
LABELS = {"type": "object", "additionalProperties": {"type": "string", "maxLength": 63}}
ANNOTATIONS = {"type": "object", "additionalProperties": TEXT}
METADATA = closed({"name": NAME}, labels=LABELS, annotations=ANNOTATIONS)
QUANTITIES = {
    "type": "object",
    "required": ["cpu", "memory"],
    "additionalProperties": {"type": "string", "pattern": "^[0-9]+(Gi|m)?$"},
}
RESOURCES = closed({"requests": QUANTITIES, "limits": QUANTITIES})
FROM_SECRET = closed({"secretKeyRef": closed({"name": NAME, "key": TEXT}, optional={"type": "boolean"})})
# A token is never a value: only the name of a secret.
VARIABLE = {
    "anyOf": [
        closed({"name": {"type": "string", "pattern": "^(?!.*TOKEN)[A-Z][A-Z0-9_]*$"}, "value": LITERAL}),
        closed({"name": TEXT, "valueFrom": FROM_SECRET}),
    ]
}
RIGHTS = closed(
    {
        "runAsNonRoot": {"const": True}, "runAsUser": {"type": "integer", "minimum": 1},
        "runAsGroup": {"type": "integer", "minimum": 1}, "allowPrivilegeEscalation": {"const": False},
        "readOnlyRootFilesystem": {"const": True}, "capabilities": {"const": {"drop": ["ALL"]}},
        "seccompProfile": {"const": {"type": "RuntimeDefault"}},
    }
)  # fmt: skip
MOUNT = closed({"name": NAME, "mountPath": TEXT}, readOnly={"type": "boolean"})
VOLUME = {
    "anyOf": [
        closed({"name": NAME, "emptyDir": closed({}, medium={"const": "Memory"}, sizeLimit=TEXT)}),
        closed({"name": NAME, "configMap": closed({"name": NAME})}),
    ]
}
IMAGE = {"type": "string", "pattern": "^[a-z0-9/_.-]+:v[0-9][0-9a-z.]*$"}
PROBE = {"type": "object", "required": ["httpGet"]}
SERVER = closed(
    {
        "name": NAME, "image": IMAGE, "command": {"const": ["vllm", "serve"]}, "args": listed(LITERAL),
        "env": listed(VARIABLE),
        "ports": listed(closed({"name": NAME, "containerPort": {"type": "integer"}})), "resources": RESOURCES,
        "startupProbe": PROBE, "readinessProbe": PROBE, "livenessProbe": PROBE, "securityContext": RIGHTS,
        "volumeMounts": listed(MOUNT),
    }
)  # fmt: skip
POD = closed(
    {
        "automountServiceAccountToken": {"const": False}, "enableServiceLinks": {"const": False},
        "securityContext": closed({"fsGroup": {"type": "integer"}}),
        "containers": listed(SERVER, minItems=1, maxItems=1), "volumes": listed(VOLUME),
    }
)  # fmt: skip


def kind(name: str, version: str, **keys: Any) -> dict[str, Any]:
    """An object of this kind."""
    return closed({"apiVersion": {"const": version}, "kind": {"const": name}, "metadata": METADATA, **keys})


JOB_POD = closed(
    {
        "restartPolicy": {"const": "Never"},
        "automountServiceAccountToken": {"const": False},
        "enableServiceLinks": {"const": False},
        "securityContext": closed({"fsGroup": {"type": "integer"}}),
        "containers": listed(
            closed(
                {
                    "name": NAME, "image": IMAGE, "command": listed(LITERAL), "env": listed(VARIABLE),
                    "resources": RESOURCES, "securityContext": RIGHTS, "volumeMounts": listed(MOUNT),
                    "workingDir": TEXT,
                }
            )
        ),
        "volumes": listed(VOLUME),
    }
)  # fmt: skip
MATCH = closed({"matchLabels": LABELS})
KINDS = {
    "ConfigMap": kind("ConfigMap", "v1", data={"type": "object", "additionalProperties": TEXT}),
    "Deployment": kind(
        "Deployment",
        "apps/v1",
        spec=closed(
            {
                "replicas": {"const": 1},
                "strategy": {"const": {"type": "Recreate"}},
                "selector": MATCH,
                "template": closed(
                    {"metadata": closed({"labels": LABELS}, annotations=ANNOTATIONS), "spec": POD}
                ),
            }
        ),
    ),
    "Job": kind(
        "Job",
        "batch/v1",
        spec=closed(
            {
                "backoffLimit": {"const": 0}, "activeDeadlineSeconds": {"type": "integer"},
                "ttlSecondsAfterFinished": {"type": "integer"}, "template": closed({"spec": JOB_POD}),
            }
        ),
    ),
    "Service": kind("Service", "v1", spec=closed({"selector": LABELS, "ports": listed({"type": "object"})})),
    "Model": kind("Model", "kubeai.org/v1", spec=KUBEAI),
    "Workspace": kind(
        "Workspace", "kaito.sh/v1beta1", resource=closed({"labelSelector": MATCH}),
        inference=closed({"template": closed({"spec": POD})}),
    ),
    "LLMInferenceService": kind(
        "LLMInferenceService",
        "serving.kserve.io/v1alpha1",
        spec=closed(
            {
                "model": closed(
                    {
                        "uri": {"type": "string", "pattern": r"^hf://[\w.-]+/[\w.-]+(:[0-9a-f]{40})?$"},
                        "name": NO_TEMPLATE,
                    }
                ),
                "replicas": {"type": "integer", "minimum": 0},
                "router": {"const": {"route": {}, "gateway": {}, "scheduler": {}}},
                "template": closed(
                    {
                        "containers": listed(
                            closed(
                                {
                                    "name": {"const": "main"}, "image": IMAGE, "env": listed(VARIABLE),
                                    "resources": RESOURCES,
                                }
                            ),
                            minItems=1,
                            maxItems=1,
                        )
                    }
                ),
            }
        ),
    ),
}  # fmt: skip


def faults(item: dict[str, Any]) -> list[str]:
    """What the schema of its kind has against an object."""
    schema = KINDS.get(str(item.get("kind")), False)
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(item)]
