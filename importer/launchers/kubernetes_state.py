"""The state of a run on Kubernetes, from its Job and its pods as the API gives them.

Conditions and reasons: https://kubernetes.io/docs/concepts/workloads/controllers/job/ and
https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Literal

from pydantic import Field, StrictInt, StrictStr

from importer.launchers.answers import Answer, Entries, Name, Said, T
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
from importer.launchers.kubernetes_job import CANCELLED, QUEUE

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


class Reasoned(Answer):
    """A reason with a message: of a condition, a status, or a container's state."""

    reason: Said = ""
    message: Said = ""

    @property
    def says(self) -> str:
        """Return both in one text."""
        return ": ".join(filter(None, (self.reason, self.message)))


class Dated(Reasoned):
    """An event, or a condition, with its time in the API's own text."""

    last: StrictStr = Field(default="", alias="lastTimestamp")
    event: StrictStr = Field(default="", alias="eventTime")
    changed: StrictStr = Field(default="", alias="lastTransitionTime")

    @property
    def at(self) -> str:
        """Return the newest of its times."""
        return max(self.last, self.event, self.changed)


class Condition(Dated):
    """A condition of a Job, a pod or a Workload."""

    type: StrictStr
    status: StrictStr


class Ended(Reasoned):
    """The end of a container."""

    code: StrictInt = Field(default=0, alias="exitCode")


class ContainerState(Answer):
    """What a container does."""

    waiting: Reasoned | None = None
    terminated: Ended | None = None


class Container(Answer):
    """The status of a container."""

    state: ContainerState = ContainerState()
    image: Said = Field(default="", alias="imageID")


class Status(Reasoned):
    """The status of a Job, a pod or a Workload."""

    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"] = "Pending"
    conditions: Entries[Condition] = Field(default=[])
    containers: Entries[Container] = Field(default=[], alias="containerStatuses")

    def condition(self, kind: str, value: str = "True") -> Condition | None:
        """Return the condition of a type with this status."""
        return next((c for c in self.conditions if c.type == kind and c.status == value), None)


class Owner(Answer):
    """An object that owns another."""

    uid: StrictStr


class Labels(Answer):
    """The labels that matter here."""

    queue: StrictStr = Field(default="", validation_alias=QUEUE)


class Annotations(Answer):
    """The annotations that matter here."""

    cancelled: StrictStr = Field(default="", validation_alias=CANCELLED)


class Metadata(Answer):
    """Name and origin of an object."""

    name: Name
    labels: Labels = Labels()
    annotations: Annotations = Annotations()
    owners: Entries[Owner] = Field(default=[], alias="ownerReferences")


class Unique(Metadata):
    """The same of an object that others are bound to."""

    uid: Name


class Job(Answer):
    """A Job as the API gives it."""

    kind: Literal["Job"]
    metadata: Unique
    status: Status = Status()

    @property
    def cancelled(self) -> bool:
        """Return whether it was cancelled here."""
        return bool(self.metadata.annotations.cancelled)


class PodSpec(Answer):
    """Where a pod was placed."""

    node: Said = Field(default="", alias="nodeName")


class Pod(Answer):
    """A pod as the API gives it."""

    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: Status = Status()


class Workload(Answer):
    """Kueue's entry of a Job."""

    metadata: Metadata
    status: Status = Status()


class ConfigMap(Answer):
    """The name of a ConfigMap."""

    metadata: Metadata


class Items(Answer, Generic[T]):
    """A list of objects."""

    items: Entries[T]


def state_of(job: Job, pods: Sequence[Pod], waits_for: Callable[[], str]) -> RemoteState:
    """Return the state; ``waits_for`` is asked where there is no pod."""
    if job.cancelled:
        active = [pod for pod in pods if pod.status.phase in ("Pending", "Running")]
        return Running(active[0].spec.node) if active else Cancelled()
    if job.status.condition("Complete") is not None:
        return Succeeded()
    failure = job.status.condition("Failed")
    if failure is not None:
        return _failed(failure, pods)
    if not pods:
        return Queued(waits_for())
    return _of_pod(pods[-1])


def _of_pod(pod: Pod) -> RemoteState:
    """Return the state of a pod whose Job has not ended."""
    if pod.status.phase == "Pending":
        for container in pod.status.containers:
            waiting = container.state.waiting
            if waiting is not None and waiting.reason in UNREADY:
                return Failed(FailureKind.ENVIRONMENT, waiting.says)
        place = pod.status.condition("PodScheduled", "False")
        return Queued(place.says if place is not None else "its container is made ready")
    if pod.status.phase == "Unknown":
        return Lost(f"the node {pod.spec.node} does not answer")
    return Running(pod.spec.node)


def _failed(failure: Condition, pods: Sequence[Pod]) -> RemoteState:
    """Return why a Job failed: its own deadline, else what became of its pod."""
    if failure.reason == "DeadlineExceeded":
        return Failed(FailureKind.TIME, failure.says)
    if not pods:
        return Lost(failure.says)
    pod = pods[-1]
    if failed_before(pod):
        disrupted = pod.status.condition(DISRUPTED)
        return Lost(pod.status.says if pod.status.reason or disrupted is None else disrupted.says)
    for container in pod.status.containers:
        ended = container.state.terminated
        if ended is None:
            continue
        if ended.reason == "OOMKilled":
            return Failed(FailureKind.MEMORY, ended.says)
        kind = FailureKind.ENVIRONMENT if ended.code in NEVER else FailureKind.COMMAND
        return Failed(kind, f"exit status {ended.code}")
    return Failed(FailureKind.OTHER, failure.says)


def failed_before(pod: Pod) -> bool:
    """Return whether a pod was taken from its node: evicted, preempted, or lost with it."""
    return pod.status.reason in GONE or pod.status.condition(DISRUPTED) is not None
