"""The objects of a validation on Kubernetes: a Job without rights, and the ConfigMaps with its input.

Fields: Kubernetes 1.37, https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/;
the label of a queue: https://kueue.sigs.k8s.io/docs/tasks/run/jobs/.
"""

from __future__ import annotations

import base64
import gzip
import shlex
from collections.abc import Mapping
from typing import Any

from importer.exports.kubernetes import literal, secret, unprivileged, variables, writable
from importer.launchers.base import RemoteTask
from importer.launchers.target import Target

RUN = "importer/run"  # the label of everything that belongs to a run
QUEUE = "kueue.x-k8s.io/queue-name"
DIGEST, CANCELLED = "importer/document", "importer/cancelled"
KEPT = 24 * 3600  # seconds after its end; one who follows it may come back
PIECE = 700_000  # bytes of one ConfigMap: the API takes 1 MiB with everything around it
TASK = "task.json.gz"
CONTAINER = "importer"
INPUT, WORK, HOME = "/importer/input", "/importer/work", "/importer/home"


def pieces(task: RemoteTask) -> dict[str, tuple[str, bytes]]:
    """Return the ConfigMaps of a run by name, each with its key and its bytes."""
    found = {f"{task.id}-task": (TASK, gzip.compress(task.bundle, mtime=0))}
    whole = b"" if task.wheel is None else task.wheel.read_bytes()
    for number, at in enumerate(range(0, len(whole), PIECE)):
        found[f"{task.id}-wheel-{number}"] = (f"wheel.{number:03}", whole[at : at + PIECE])
    return found


def config_map(run: str, name: str, key: str, data: bytes, owner: str) -> dict[str, Any]:
    """Return a ConfigMap that goes when its Job goes; ``owner`` is the Job's uid."""
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": run, "uid": owner}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {RUN: run}, "ownerReferences": [reference]},
        "immutable": True,
        "binaryData": {key: base64.b64encode(data).decode()},
    }


def job(task: RemoteTask, target: Target) -> dict[str, Any]:
    """Return the Job of a task: one pod, started once, that ends itself after the task's seconds."""
    options = target.options
    labels = {RUN: task.id}
    queue = {QUEUE: options["queue"]} if "queue" in options else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": task.id,
            "labels": {**labels, **queue},
            "annotations": {DIGEST: task.digest},
        },
        "spec": {
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "activeDeadlineSeconds": task.seconds,
            "ttlSecondsAfterFinished": KEPT,
            **({"suspend": True} if queue else {}),  # Kueue resumes it
            "template": {"metadata": {"labels": labels}, "spec": _pod(task, target)},
        },
    }


def _pod(task: RemoteTask, target: Target) -> dict[str, Any]:
    mounts, volumes = writable({"work": WORK, "home": HOME, "tmp": "/tmp"})  # noqa: S108 - of the pod alone
    sources = [{"configMap": {"name": name}} for name in pieces(task)]
    mounts += [
        {"name": "input", "mountPath": INPUT, "readOnly": True},
        {"name": "shared", "mountPath": "/dev/shm"},  # noqa: S108 - likewise
    ]
    volumes += [
        {"name": "input", "projected": {"sources": sources}},
        {"name": "shared", "emptyDir": {"medium": "Memory"}},
    ]
    image = target.options["image"]
    own = {"HOME": HOME, "USER": "importer", "IMPORTER_HOME": f"{HOME}/importer", "IMPORTER_IMAGE": image}
    container = {
        "name": CONTAINER,
        "image": image,
        "command": ["sh", "-c", literal(_script(task, target))],
        "env": [*_secrets(task.secrets, target), *variables(own)],
        "resources": _resources(task),
        "securityContext": unprivileged(),
        "volumeMounts": mounts,
        "workingDir": WORK,
    }
    account = {"serviceAccountName": target.options["account"]} if "account" in target.options else {}
    return {
        **account,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"fsGroup": 2000},
        "containers": [container],
        "volumes": volumes,
    }


def _script(task: RemoteTask, target: Target) -> str:
    """Return the command of the container: unpack, install the wheel where one was sent, run."""
    python = shlex.quote(target.python)
    steps = [f"{python} -c 'import gzip, sys; sys.stdout.buffer.write(gzip.open(sys.argv[1]).read())'"]
    steps[0] += f" {INPUT}/{TASK} > {WORK}/task.json"
    run = f"exec {python} -P -m importer run-task {WORK}/task.json"
    if task.wheel is not None:
        wheel = f"{WORK}/{task.wheel.name}"
        steps.append(f"cat {INPUT}/wheel.* > {wheel}")
        steps.append(f"{python} -m pip install --quiet --target {WORK}/site {wheel} 1>&2")
        run = f"PYTHONPATH={WORK}/site {run}"
    return " && ".join([*steps, run])


def _secrets(named: Mapping[str, Any], target: Target) -> list[dict[str, Any]]:
    found = [secret(name, one.name, one.key, optional=False) for name, one in named.items()]
    if "secret" in target.options and "HF_TOKEN" not in named:
        found.append(secret("HF_TOKEN", target.options["secret"], "HF_TOKEN", optional=False))
    return found


def _resources(task: RemoteTask) -> dict[str, Any]:
    wants = task.resources
    quantities = {"cpu": str(wants.cpus)}
    if wants.memory:
        quantities["memory"] = str(wants.memory)
    if wants.gpus:
        quantities["nvidia.com/gpu"] = str(wants.gpus)
    return {"requests": quantities, "limits": quantities}
