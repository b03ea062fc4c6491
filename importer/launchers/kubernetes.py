"""Kubernetes by the user's own kubectl: the objects of a run, its state, and its result in the pod's log."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Literal

from pydantic import Field, StrictInt, StrictStr

from importer.deadline import UNLIMITED, Deadline
from importer.errors import LauncherError, UsageError
from importer.exports.kubernetes import literal, run_once, secret, unprivileged, variables, writable
from importer.launcher import Finished
from importer.launchers.answers import Answer, Entries, Name, Question, Said, T, without_warnings
from importer.launchers.base import (
    Absent,
    Cancelled,
    Failed,
    FailureKind,
    Launcher,
    Lost,
    PlaceReason,
    Queued,
    RemoteRun,
    RemoteState,
    RemoteTask,
    Running,
    Secret,
    Succeeded,
    Target,
)
from importer.reasons import Reason

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


def config_map(run: str, name: str, key: str, data: bytes, owner: str) -> dict[str, object]:
    """Return a ConfigMap that goes when its Job goes; ``owner`` is the Job's uid."""
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": run, "uid": owner}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {RUN: run}, "ownerReferences": [reference]},
        "immutable": True,
        "binaryData": {key: base64.b64encode(data).decode()},
    }


def job(task: RemoteTask, target: Target) -> dict[str, object]:
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


def _pod(task: RemoteTask, target: Target) -> dict[str, object]:
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
    return {**account, **run_once(container, volumes)}


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


def _secrets(named: Mapping[str, Secret], target: Target) -> list[dict[str, object]]:
    found = [secret(name, one.name, one.key, optional=False) for name, one in named.items()]
    if "secret" in target.options and "HF_TOKEN" not in named:
        found.append(secret("HF_TOKEN", target.options["secret"], "HF_TOKEN", optional=False))
    return found


def _resources(task: RemoteTask) -> dict[str, object]:
    wants = task.resources
    quantities = {"cpu": str(wants.cpus)}
    if wants.memory:
        quantities["memory"] = str(wants.memory)
    if wants.gpus:
        quantities["nvidia.com/gpu"] = str(wants.gpus)
    return {"requests": quantities, "limits": quantities}


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


PROGRAM = "kubectl"
SECONDS = 300.0  # for one call
REQUEST = "60s"  # for one request of a call
TAIL = "50"  # lines
# A reason of the API, https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/
REASON = re.compile(r"^(?:Error from server|error:.*) \((\w+)\)(?:: (.*))?$", re.MULTILINE)
CREATED = re.compile(r"[a-z.]+/[a-z0-9.-]+")
PASSING = frozenset({
    "ServiceUnavailable", "ServerTimeout", "Timeout", "TooManyRequests", "InternalError", "Unknown",
})  # fmt: skip
EXISTS, NOT_FOUND, NOT_STARTED = "AlreadyExists", "NotFound", "BadRequest"
ANY = "*"


def launcher(target: Target) -> Launcher:
    """Return the launcher of ``k8s:CONTEXT/NAMESPACE``; raises UsageError("bad-target") without an image."""
    if "image" not in target.options:
        example = f"{target.text}?image=registry.example/importer-vllm:1"
        raise UsageError(
            "bad-target", target=target.text, problem=Reason(PlaceReason.NO_IMAGE, example=example)
        )
    return Kubernetes(target)


class Kubernetes:
    """Jobs in one namespace; the name of a Job is the run's id."""

    def __init__(self, target: Target, deadline: Deadline = UNLIMITED) -> None:
        self._target, self._deadline = target, deadline
        self._context, _, self._namespace = target.address.rpartition("/")

    def within(self, deadline: Deadline) -> Launcher:
        """Return the same launcher with a deadline."""
        return Kubernetes(self._target, deadline)

    def submit(self, task: RemoteTask) -> RemoteRun:
        """Create the Job, then the ConfigMaps that it owns; what is there already stays as it is."""
        run = RemoteRun.of(task.id, self._target)
        found = self._job(run)
        if found is None:
            self._create(job(task, self._target))
            found = self._job(run)
        if found is None:
            raise self._question("create", "job", run.id).odd("")
        if found.cancelled:
            return run
        there = {item.metadata.name for item in self._items("configmaps", Items[ConfigMap], run)}
        for name, (key, data) in pieces(task).items():
            if name not in there:
                self._create(config_map(run.id, name, key, data, found.metadata.uid))
        return run

    def state(self, run: RemoteRun) -> RemoteState:
        """Return the state by the Job, its pod, and what keeps it from having one."""
        found = self._job(run)
        if found is None:
            return Absent()
        pods = self._items("pods", Items[Pod], run)
        return state_of(found, pods, lambda: self._waits_for(found, run))

    def logs(self, run: RemoteRun) -> str:
        """Return the newest lines of the pod's log."""
        return self._log(run, "--tail", TAIL)

    def fetch(self, run: RemoteRun) -> str:
        """Return the whole log: the result lies in it."""
        return self._log(run, "--tail", "-1")

    def cancel(self, run: RemoteRun) -> None:
        """End the pod by the Job's deadline, and mark the Job: it stays as the trace of the run."""
        patch = {"metadata": {"annotations": {CANCELLED: "yes"}}, "spec": {"activeDeadlineSeconds": 1}}
        found = self._job(run)
        if found is None or found.cancelled:
            return
        self._kubectl(
            "patch", "job", run.id, "--type", "merge", "--patch", json.dumps(patch), allow=(NOT_FOUND,)
        )

    def facts(self, run: RemoteRun) -> Mapping[str, str]:
        """Return the node, and the digest of the image that ran there."""
        for pod in self._items("pods", Items[Pod], run):
            images = [one.image for one in pod.status.containers if one.image]
            facts = {"node": pod.spec.node, "image": "".join(images[:1]), "pod": pod.metadata.name}
            return {name: value for name, value in facts.items() if value}
        return {}

    def remove(self, run: RemoteRun) -> None:
        """Delete the Job; its pod and its ConfigMaps go with it."""
        self._kubectl("delete", "job", run.id, "--ignore-not-found", "--cascade=background", "--wait=false")

    def _job(self, run: RemoteRun) -> Job | None:
        words = ("get", "job", run.id, "--ignore-not-found", "-o", "json")
        done, question = self._kubectl(*words), self._question(*words)
        if not done.output and not without_warnings(done.errors).strip():
            return None
        found = question.read(Job, done)
        if found.metadata.name != run.id:
            raise question.odd(done.output)
        return found

    def _items(self, plural: str, kind: type[Items[T]], run: RemoteRun) -> list[T]:
        words = ("get", plural, "--selector", f"{RUN}={run.id}", "-o", "json")
        return self._question(*words).read(kind, self._kubectl(*words)).items

    def _create(self, item: Mapping[str, object]) -> None:
        words = ("create", "--validate=false", "-f", "-", "-o", "name")
        done = self._kubectl(*words, text=json.dumps(item), allow=(EXISTS,))
        if done.code == 0:
            self._question(*words).line(CREATED, done)

    def _log(self, run: RemoteRun, *more: str) -> str:
        pods = [pod for pod in self._items("pods", Items[Pod], run) if not failed_before(pod)]
        if not pods:
            return ""
        name = pods[-1].metadata.name
        return self._kubectl("logs", name, "-c", CONTAINER, *more, allow=(NOT_FOUND, NOT_STARTED)).output

    def _waits_for(self, found: Job, run: RemoteRun) -> str:
        """Return what a Job without a pod waits for: the words of Kueue, else of its newest event."""
        if found.metadata.labels.queue:
            for item in self._allowed(Items[Workload], "get", "workloads.kueue.x-k8s.io", "-o", "json"):
                if any(owner.uid == found.metadata.uid for owner in item.metadata.owners):
                    return _newest(item.status.conditions)
        selector = f"involvedObject.kind=Job,involvedObject.name={run.id},type=Warning"
        words = ("get", "events", "--field-selector", selector, "-o", "json")
        return _newest(self._allowed(Items[Dated], *words))

    def _allowed(self, kind: type[Items[T]], *words: str) -> list[T]:
        """Return a list of what may be refused here; [] where it is."""
        done = self._kubectl(*words, allow=(ANY,))
        return self._question(*words).read(kind, done).items if done.code == 0 else []

    def _question(self, *words: str) -> Question:
        return Question(self._target.text, PROGRAM, " ".join(words), self._deadline)

    def _kubectl(self, *words: str, text: str = "", allow: Sequence[str] = ()) -> Finished:
        """Run kubectl; the reasons in ``allow`` are no error, ``ANY`` is every one. Raises LauncherError."""
        where, program, question = self._target.text, shutil.which(PROGRAM), self._question(*words)
        if program is None:
            raise LauncherError("launcher-missing", where=where, program=PROGRAM)
        place = ["--context", self._context, "--namespace", self._namespace, "--request-timeout", REQUEST]
        done = question.ask([program, *place, *words], SECONDS, text)
        if done.code == 0:
            return done
        found = REASON.search(done.errors)
        if found is not None:
            if found[1] in allow or ANY in allow:
                return done
            says = f"{found[1]}: {' '.join((found[2] or 'no text').split())}"[:300]
            if found[1] in PASSING:
                raise LauncherError("cluster-unreachable", where=where, problem=says)
            raise LauncherError("cluster-refused", where=where, status=found[1], says=says)
        last = (done.errors.strip().splitlines() or ["no text"])[-1][:300]
        known = question.ask([program, "config", "get-contexts", self._context, "-o", "name"], SECONDS)
        if known.code != 0:
            raise LauncherError("cluster-refused", where=where, status="NoContext", says=last)
        if ANY in allow:
            return done
        raise LauncherError("cluster-unreachable", where=where, problem=last)


def _newest(items: Sequence[Dated]) -> str:
    """Return the message of the newest event or condition; "" without one."""
    return max(reversed(items), key=lambda item: item.at).message if items else ""
