"""The state of a run on Kubernetes, from its Job and its pods as the API gives them.

Conditions and reasons: https://kubernetes.io/docs/concepts/workloads/controllers/job/ and
https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from importer.launchers.base import (
    Cancelled,
    Failed,
    FailureKind,
    Lost,
    Queued,
    RemoteState,
    Running,
    Succeeded,
)
from importer.launchers.kubernetes_job import CANCELLED

LONGEST = 300  # characters of what a cluster says
# Reasons of a waiting container that only another image, secret or name would change.
UNREADY = frozenset({
    "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError",
    "CreateContainerError", "RunContainerError", "ImageInspectError", "RegistryUnavailable",
})  # fmt: skip
# Reasons of a pod that ended with its node or for the node's sake.
GONE = frozenset(
    {"Evicted", "NodeLost", "NodeShutdown", "Shutdown", "Terminated", "Preempting", "NodeAffinity"}
)
DISRUPTED = "DisruptionTarget"
NEVER = frozenset({126, 127})  # of a shell: a command that is no program, or is not there


def state_of(
    job: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], waits_for: Callable[[], str]
) -> RemoteState:
    """Return the state; ``waits_for`` is asked where there is no pod."""
    status = job.get("status") or {}
    if CANCELLED in ((job.get("metadata") or {}).get("annotations") or {}):
        active = [pod for pod in pods if phase(pod) in ("Pending", "Running")]
        return Running(_node(active[0])) if active else Cancelled()
    if _condition(status, "Complete") is not None:
        return Succeeded()
    failure = _condition(status, "Failed")
    if failure is not None:
        return _failed(failure, pods)
    if not pods:
        return Queued(waits_for())
    return _of_pod(pods[-1])


def _of_pod(pod: Mapping[str, Any]) -> RemoteState:
    """Return the state of a pod whose Job has not ended."""
    status = pod.get("status") or {}
    if phase(pod) == "Pending":
        for container in status.get("containerStatuses") or ():
            waiting = (container.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") in UNREADY:
                return Failed(FailureKind.ENVIRONMENT, _said(waiting))
        place = _condition(status, "PodScheduled", "False")
        return Queued(_said(place) if place is not None else "its container is made ready")
    if phase(pod) == "Unknown":
        return Lost(f"the node {_node(pod)} does not answer")
    return Running(_node(pod))


def _failed(failure: Mapping[str, Any], pods: Sequence[Mapping[str, Any]]) -> RemoteState:
    """Return why a Job failed: its own deadline, else what became of its pod."""
    if failure.get("reason") == "DeadlineExceeded":
        return Failed(FailureKind.TIME, _said(failure))
    if not pods:
        return Lost(_said(failure))
    pod = pods[-1]
    if failed_before(pod):
        return Lost(_gone(pod))
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        ended = (container.get("state") or {}).get("terminated")
        if ended is None:
            continue
        if ended.get("reason") == "OOMKilled":
            return Failed(FailureKind.MEMORY, _said(ended))
        kind = FailureKind.ENVIRONMENT if ended.get("exitCode") in NEVER else FailureKind.COMMAND
        return Failed(kind, f"exit status {ended.get('exitCode')}")
    return Failed(FailureKind.OTHER, _said(failure))


def failed_before(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod was taken from its node: evicted, preempted, or lost with it."""
    status = pod.get("status") or {}
    return status.get("reason") in GONE or _condition(status, DISRUPTED) is not None


def phase(pod: Mapping[str, Any]) -> str:
    """Return Pending, Running, Succeeded, Failed or Unknown."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def _gone(pod: Mapping[str, Any]) -> str:
    status = pod.get("status") or {}
    condition = _condition(status, DISRUPTED)
    return _said(status if status.get("reason") else condition or {})


def _condition(status: Mapping[str, Any], kind: str, value: str = "True") -> Mapping[str, Any] | None:
    conditions = status.get("conditions") or ()
    return next((c for c in conditions if c.get("type") == kind and c.get("status") == value), None)


def _node(pod: Mapping[str, Any]) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")


def _said(item: Mapping[str, Any]) -> str:
    """Return reason and message of a condition, a status or a container's state."""
    words = [str(item[key]) for key in ("reason", "message") if item.get(key)]
    return " ".join(": ".join(words).split())[:LONGEST]
