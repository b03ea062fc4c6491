"""Ray Jobs over the REST API of the cluster's dashboard: Ray itself is not needed here.

Its own client would need a Ray of the cluster's version in an environment of ours; the API is six requests.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shlex
import time
import zipfile
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from importer.launchers.base import (
    FAR_END,
    Absent,
    Cancelled,
    Failed,
    FailureKind,
    Launcher,
    Lost,
    Queued,
    RemoteRun,
    RemoteState,
    RemoteTask,
    Running,
    Succeeded,
)
from importer.launchers.http import Cluster
from importer.launchers.target import Target

PORT = 8265
TOKEN = "RAY_AUTH_TOKEN"  # Ray's own variable for clusters that ask for one  # noqa: S105 - a name
STARTING, AGAIN = 60.0, 2.0  # seconds: a head that has just begun answers 500 until its agent is there
DELETIONS, RECORDED = 3, 1.5  # times, and seconds until a deleted job may be there again
TASK = "task.json"
STARTED = (1980, 1, 1, 0, 0, 0)  # of every file in a package: equal tasks are equal packages
# Ray's types of errors, https://docs.ray.io/en/latest/cluster/running-applications/job-submission/
FAILURES: Mapping[str, FailureKind] = {
    "RUNTIME_ENV_SETUP_FAILURE": FailureKind.ENVIRONMENT,
    "JOB_SUPERVISOR_ACTOR_START_TIMEOUT": FailureKind.UNSCHEDULABLE,
    "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE": FailureKind.UNSCHEDULABLE,
    "JOB_ENTRYPOINT_COMMAND_START_ERROR": FailureKind.COMMAND,
    "JOB_ENTRYPOINT_COMMAND_ERROR": FailureKind.COMMAND,
}
LOST = ("JOB_SUPERVISOR_ACTOR_DIED", "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE")


def launcher(target: Target) -> Launcher:
    """Return the launcher of ``ray://HOST:PORT``."""
    parts = urlsplit(target.text)
    token = os.environ.get(TOKEN, "").strip()
    headers = {"Authorization": f"Bearer {token}"} if token and re.fullmatch(r"[!-~]+", token) else {}
    tls = target.options.get("tls") == "yes"
    return RayJobs(target, Cluster(target.text, str(parts.hostname), parts.port or PORT, tls, headers))


class RayJobs:
    """The jobs of one Ray cluster; the submission id is the task's."""

    def __init__(self, target: Target, cluster: Cluster) -> None:
        self._target, self._cluster = target, cluster

    def submit(self, task: RemoteTask) -> RemoteRun:
        """Upload the package and submit the job, unless one with this id is there."""
        run = RemoteRun.of(task.id, self._target)
        if self._job(run) is not None:
            return run
        package = _package(task)
        name = f"_ray_pkg_{hashlib.sha256(package).hexdigest()[:32]}.zip"
        if self._cluster.ask("GET", f"/api/packages/gcs/{name}", allow=(404,)).status == 404:
            self._cluster.ask("PUT", f"/api/packages/gcs/{name}", package)
        request, deadline = self._request(task, name), time.monotonic() + STARTING
        while True:
            answer = self._cluster.ask("POST", "/api/jobs/", request, allow=(400, 409, 500))
            if answer.status < 300 or self._job(run) is not None:  # perhaps another process was first
                return run
            if answer.status != 500 or time.monotonic() > deadline:
                raise self._cluster.refused(answer)
            time.sleep(AGAIN)

    def state(self, run: RemoteRun) -> RemoteState:
        """Return the state by Ray's status and type of error."""
        job = self._job(run)
        if job is None:
            return Absent()
        status, says = job.get("status"), " ".join(str(job.get("message") or "").split())[:300]
        if status == "RUNNING":
            return Running(str(urlsplit(str(job.get("driver_agent_http_address") or "")).hostname or ""))
        if status == "SUCCEEDED":
            return Succeeded()
        if status == "STOPPED":
            return Cancelled()
        if status != "FAILED":
            return Queued(says)
        kind = str(job.get("error_type") or "")
        return Lost(says) if kind in LOST else Failed(FAILURES.get(kind, FailureKind.OTHER), says)

    def logs(self, run: RemoteRun) -> str:
        """Return the output of the entrypoint; "" while there is none, or where its node is gone."""
        answer = self._cluster.ask("GET", f"/api/jobs/{run.id}/logs", allow=(400, 404, 500))
        data = answer.json if answer.status == 200 else None
        return str(data.get("logs") or "") if isinstance(data, dict) else ""

    def fetch(self, run: RemoteRun) -> str:
        """Return the same: the result lies in it."""
        return self.logs(run)

    def cancel(self, run: RemoteRun) -> None:
        """Stop the job: Ray ends its processes."""
        self._cluster.ask("POST", f"/api/jobs/{run.id}/stop", allow=(400, 404))

    def facts(self, run: RemoteRun) -> Mapping[str, str]:
        """Return the node's address, and Ray's version."""
        job, version = self._job(run) or {}, self._cluster.ask("GET", "/api/version", allow=(404,)).json
        node = urlsplit(str(job.get("driver_agent_http_address") or "")).hostname
        ray = version.get("ray_version") if isinstance(version, dict) else None
        return {name: str(value) for name, value in (("node", node), ("ray", ray)) if value}

    def remove(self, run: RemoteRun) -> None:
        """Delete the job; Ray drops its package by itself.

        Ray looks after its jobs once a second, and records one that was deleted between two looks as lost.
        """
        for _ in range(DELETIONS):
            answer = self._cluster.ask("DELETE", f"/api/jobs/{run.id}", allow=(400, 404, 500))
            if answer.status in (400, 500) and self._job(run) is not None:  # it has not ended
                raise self._cluster.refused(answer)
            time.sleep(RECORDED)
            if self._job(run) is None:
                return

    def _job(self, run: RemoteRun) -> dict[str, Any] | None:
        answer = self._cluster.ask("GET", f"/api/jobs/{run.id}", allow=(404,))
        if answer.status == 404:
            return None
        data = answer.json
        if not isinstance(data, dict) or "status" not in data:
            raise self._cluster.refused(answer)
        return data

    def _request(self, task: RemoteTask, package: str) -> dict[str, Any]:
        command = [self._target.python, *FAR_END, TASK]
        environment: dict[str, Any] = {"working_dir": f"gcs://{package}"}
        if task.wheel is not None:  # Ray puts the package's folder in place of the variable
            wheel = f"${{RAY_RUNTIME_ENV_CREATE_WORKING_DIR}}/{task.wheel.name}"
            environment["pip"] = {"packages": [wheel], "pip_check": False}
        wants = task.resources
        return {
            "submission_id": task.id,
            "entrypoint": shlex.join(command),
            "runtime_env": environment,
            "metadata": {"importer_digest": task.digest},
            "entrypoint_num_cpus": wants.cpus,
            "entrypoint_num_gpus": wants.gpus,
            "entrypoint_memory": wants.memory or 0,
        }


def _package(task: RemoteTask) -> bytes:
    """Return a zip with the task and the wheel, the same bytes for the same task."""
    files = {TASK: task.bundle} | ({} if task.wheel is None else {task.wheel.name: task.wheel.read_bytes()})
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, STARTED), data, zipfile.ZIP_DEFLATED)
    return made.getvalue()
