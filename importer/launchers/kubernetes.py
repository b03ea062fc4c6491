"""Kubernetes by the user's own kubectl: a Job for each run, its result in the pod's log.

kubectl knows the contexts, the certificates and the credential plugins of the clouds; a client over HTTP
would have to do all of it again. Objects go in and come back as JSON, errors by the reason of the API.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from importer import launcher as processes
from importer.errors import LauncherError, UsageError
from importer.launcher import Finished, Purpose
from importer.launchers.base import Absent, Launcher, RemoteRun, RemoteState, RemoteTask
from importer.launchers.kubernetes_job import CANCELLED, CONTAINER, QUEUE, RUN, config_map, job, pieces
from importer.launchers.kubernetes_state import failed_before, state_of
from importer.launchers.target import PlaceReason, Target
from importer.reasons import Reason

PROGRAM = "kubectl"
SECONDS = 300.0  # for one call
REQUEST = "60s"  # for one request of a call
TAIL = "50"  # lines
# A reason of the API, https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/
REASON = re.compile(r"^(?:Error from server|error:.*) \((\w+)\)(?:: (.*))?$", re.MULTILINE)
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

    def __init__(self, target: Target) -> None:
        self._target = target
        self._context, _, self._namespace = target.address.rpartition("/")

    def submit(self, task: RemoteTask) -> RemoteRun:
        """Create the Job, then the ConfigMaps that it owns; what is there already stays as it is."""
        run = RemoteRun.of(task.id, self._target)
        found = self._job(run)
        if found is None:
            self._create(job(task, self._target))
            found = self._job(run) or {}
        if CANCELLED in _annotations(found):
            return run
        owner = str((found.get("metadata") or {}).get("uid"))
        there = {item["metadata"]["name"] for item in self._items("configmaps", run)}
        for name, (key, data) in pieces(task).items():
            if name not in there:
                self._create(config_map(run.id, name, key, data, owner))
        return run

    def state(self, run: RemoteRun) -> RemoteState:
        """Return the state by the Job, its pod, and what keeps it from having one."""
        found = self._job(run)
        if found is None:
            return Absent()
        pods = self._items("pods", run)
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
        if found is None or CANCELLED in _annotations(found):
            return
        self._kubectl(
            "patch", "job", run.id, "--type", "merge", "--patch", json.dumps(patch), allow=(NOT_FOUND,)
        )

    def facts(self, run: RemoteRun) -> Mapping[str, str]:
        """Return the node, and the digest of the image that ran there."""
        for pod in self._items("pods", run):
            status = pod.get("status") or {}
            images = [c.get("imageID") for c in status.get("containerStatuses") or () if c.get("imageID")]
            node = (pod.get("spec") or {}).get("nodeName")
            facts = {"node": node, "image": images[0] if images else None, "pod": pod["metadata"]["name"]}
            return {name: str(value) for name, value in facts.items() if value}
        return {}

    def remove(self, run: RemoteRun) -> None:
        """Delete the Job; its pod and its ConfigMaps go with it."""
        self._kubectl("delete", "job", run.id, "--ignore-not-found", "--cascade=background", "--wait=false")

    def _job(self, run: RemoteRun) -> dict[str, Any] | None:
        text = self._kubectl("get", "job", run.id, "--ignore-not-found", "-o", "json").output
        return dict(json.loads(text)) if text.strip() else None

    def _items(self, kind: str, run: RemoteRun) -> list[dict[str, Any]]:
        text = self._kubectl("get", kind, "--selector", f"{RUN}={run.id}", "-o", "json").output
        return list(json.loads(text)["items"])

    def _create(self, item: Mapping[str, Any]) -> None:
        text = json.dumps(item)
        self._kubectl("create", "--validate=false", "-f", "-", "-o", "name", text=text, allow=(EXISTS,))

    def _log(self, run: RemoteRun, *more: str) -> str:
        pods = [pod for pod in self._items("pods", run) if not failed_before(pod)]
        if not pods:
            return ""
        name = str(pods[-1]["metadata"]["name"])
        return self._kubectl("logs", name, "-c", CONTAINER, *more, allow=(NOT_FOUND, NOT_STARTED)).output

    def _waits_for(self, found: Mapping[str, Any], run: RemoteRun) -> str:
        """Return what a Job without a pod waits for: the words of Kueue, else of its newest event."""
        if QUEUE in (found["metadata"].get("labels") or {}):
            uid = found["metadata"].get("uid")
            done = self._kubectl("get", "workloads.kueue.x-k8s.io", "-o", "json", allow=(ANY,))
            items = json.loads(done.output)["items"] if done.code == 0 else []
            for item in items:
                if any(owner.get("uid") == uid for owner in item["metadata"].get("ownerReferences") or ()):
                    return _newest((item.get("status") or {}).get("conditions") or ())
        selector = f"involvedObject.kind=Job,involvedObject.name={run.id},type=Warning"
        done = self._kubectl("get", "events", "--field-selector", selector, "-o", "json", allow=(ANY,))
        return _newest(json.loads(done.output)["items"]) if done.code == 0 else ""

    def _kubectl(self, *words: str, text: str = "", allow: Sequence[str] = ()) -> Finished:
        """Run kubectl; the reasons in ``allow`` are no error, ``ANY`` is every one. Raises LauncherError."""
        where, program = self._target.text, shutil.which(PROGRAM)
        if program is None:
            raise LauncherError("launcher-missing", where=where, program=PROGRAM)
        place = ["--context", self._context, "--namespace", self._namespace, "--request-timeout", REQUEST]
        done = _run([program, *place, *words], where, text)
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
        known = _run([program, "config", "get-contexts", self._context, "-o", "name"], where, "")
        if known.code != 0:
            raise LauncherError("cluster-refused", where=where, status="NoContext", says=last)
        if ANY in allow:
            return done
        raise LauncherError("cluster-unreachable", where=where, problem=last)


def _run(argv: Sequence[str], where: str, text: str) -> Finished:
    try:
        return processes.run(argv, Purpose.REMOTE, seconds=SECONDS, text=text)
    except OSError as error:
        problem = error.strerror or type(error).__name__
        raise LauncherError("cluster-unreachable", where=where, problem=problem) from None


def _annotations(item: Mapping[str, Any]) -> Mapping[str, str]:
    return (item.get("metadata") or {}).get("annotations") or {}


def _newest(items: Sequence[Mapping[str, Any]]) -> str:
    """Return the message of the newest event or condition; "" without one."""
    times = ("lastTimestamp", "eventTime", "lastTransitionTime")
    ordered = sorted(items, key=lambda item: max(str(item.get(name) or "") for name in times))
    return " ".join(str(ordered[-1].get("message") or "").split())[:300] if ordered else ""
