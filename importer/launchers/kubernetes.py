"""Kubernetes by the user's own kubectl: a Job for each run, its result in the pod's log.

kubectl knows the contexts, the certificates and the credential plugins of the clouds; a client over HTTP
would have to do all of it again. Objects go in and come back as JSON, errors by the reason of the API.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence

from importer.deadline import UNLIMITED, Deadline
from importer.errors import LauncherError, UsageError
from importer.launcher import Finished
from importer.launchers.answers import Question, T, without_warnings
from importer.launchers.base import Absent, Launcher, RemoteRun, RemoteState, RemoteTask
from importer.launchers.kubernetes_job import CANCELLED, CONTAINER, RUN, config_map, job, pieces
from importer.launchers.kubernetes_state import (
    ConfigMap,
    Dated,
    Items,
    Job,
    Pod,
    Workload,
    failed_before,
    state_of,
)
from importer.launchers.target import PlaceReason, Target
from importer.reasons import Reason

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
