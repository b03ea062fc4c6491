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
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, StrictStr

from importer.deadline import UNLIMITED, Deadline
from importer.launchers.answers import Answer, Cluster, Received, Said
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
    Target,
)

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
ADDRESS = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(?::[0-9]{1,5})?/?")


class Job(Answer):
    """What Ray knows of a job."""

    status: Literal["PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED"]
    message: Said = ""
    error_type: Said = ""
    agent: Said = Field(default="", alias="driver_agent_http_address")

    @property
    def node(self) -> str:
        """Return the host of the job's node, "" where it is not known."""
        found = ADDRESS.fullmatch(self.agent)
        return "" if found is None else found[1].strip("[]")


class Submitted(Answer):
    """What Ray answers to a submission."""

    id: StrictStr = Field(alias="submission_id")


class Logs(Answer):
    """The output of a job."""

    logs: StrictStr


class Version(Answer):
    """The version of a cluster."""

    ray: Said = Field(default="", alias="ray_version")


def launcher(target: Target) -> Launcher:
    """Return the launcher of ``ray://HOST:PORT``."""
    parts = urlsplit(target.text)
    token = os.environ.get(TOKEN, "").strip()
    headers = {"Authorization": f"Bearer {token}"} if token and re.fullmatch(r"[!-~]+", token) else {}
    tls = target.options.get("tls") == "yes"
    cluster = Cluster(target.text, "Ray", str(parts.hostname), parts.port or PORT, tls, headers)
    return RayJobs(target, cluster)


class RayJobs:
    """The jobs of one Ray cluster; the submission id is the task's."""

    def __init__(self, target: Target, cluster: Cluster, deadline: Deadline = UNLIMITED) -> None:
        self._target, self._cluster, self._deadline = target, cluster, deadline

    def within(self, deadline: Deadline) -> Launcher:
        """Return the same launcher with a deadline."""
        return RayJobs(self._target, self._cluster, deadline)

    def submit(self, task: RemoteTask) -> RemoteRun:
        """Upload the package and submit the job, unless one with this id is there."""
        run = RemoteRun.of(task.id, self._target)
        if self._job(run) is not None:
            return run
        package = _package(task)
        name = f"_ray_pkg_{hashlib.sha256(package).hexdigest()[:32]}.zip"
        if self._ask("GET", f"/api/packages/gcs/{name}", allow=(404,)).status == 404:
            self._ask("PUT", f"/api/packages/gcs/{name}", package)
        request, starting = self._request(task, name), self._deadline.sooner(STARTING)
        while True:
            answer = self._ask("POST", "/api/jobs/", request, allow=(400, 409, 500))
            if answer.status < 300:
                question = self._cluster.question("POST", "/api/jobs/")
                if question.read(Submitted, answer.body).id != run.id:
                    raise question.odd(answer.says)
                return run
            if self._job(run) is not None:  # another process was first
                return run
            if answer.status != 500 or starting.left <= AGAIN:
                raise self._cluster.refused(answer)
            time.sleep(AGAIN)

    def state(self, run: RemoteRun) -> RemoteState:
        """Return the state by Ray's status and type of error."""
        job = self._job(run)
        if job is None:
            return Absent()
        if job.status == "RUNNING":
            return Running(job.node)
        if job.status == "SUCCEEDED":
            return Succeeded()
        if job.status == "STOPPED":
            return Cancelled()
        if job.status == "PENDING":
            return Queued(job.message)
        kind = FAILURES.get(job.error_type, FailureKind.OTHER)
        return Lost(job.message) if job.error_type in LOST else Failed(kind, job.message)

    def logs(self, run: RemoteRun) -> str:
        """Return the output of the entrypoint; "" while there is none, or where its node is gone."""
        path = f"/api/jobs/{run.id}/logs"
        answer = self._ask("GET", path, allow=(400, 404, 500))
        return self._cluster.question("GET", path).read(Logs, answer.body).logs if answer.status < 300 else ""

    def fetch(self, run: RemoteRun) -> str:
        """Return the same: the result lies in it."""
        return self.logs(run)

    def cancel(self, run: RemoteRun) -> None:
        """Stop the job: Ray ends its processes."""
        self._ask("POST", f"/api/jobs/{run.id}/stop", allow=(400, 404))

    def facts(self, run: RemoteRun) -> Mapping[str, str]:
        """Return the node's address, and Ray's version."""
        job, answer = self._job(run), self._ask("GET", "/api/version", allow=(404,))
        version = Version()
        if answer.status < 300:
            version = self._cluster.question("GET", "/api/version").read(Version, answer.body)
        facts = {"node": "" if job is None else job.node, "ray": version.ray}
        return {name: value for name, value in facts.items() if value}

    def remove(self, run: RemoteRun) -> None:
        """Delete the job; Ray drops its package by itself.

        Ray looks after its jobs once a second, and records one that was deleted between two looks as lost.
        """
        for _ in range(DELETIONS):
            answer = self._ask("DELETE", f"/api/jobs/{run.id}", allow=(400, 404, 500))
            if answer.status in (400, 500) and self._job(run) is not None:  # it has not ended
                raise self._cluster.refused(answer)
            time.sleep(RECORDED)
            if self._job(run) is None:
                return

    def _ask(self, method: str, path: str, body: object = None, allow: tuple[int, ...] = ()) -> Received:
        return self._cluster.ask(self._deadline, method, path, body, allow=allow)

    def _job(self, run: RemoteRun) -> Job | None:
        path = f"/api/jobs/{run.id}"
        answer = self._ask("GET", path, allow=(404,))
        return None if answer.status == 404 else self._cluster.question("GET", path).read(Job, answer.body)

    def _request(self, task: RemoteTask, package: str) -> dict[str, object]:
        command = [self._target.python, *FAR_END, TASK]
        environment: dict[str, object] = {"working_dir": f"gcs://{package}"}
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
