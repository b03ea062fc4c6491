"""SkyPilot by the user's own ``sky``: a managed job for each run, its result in the job's log.

Commands and fields: https://docs.skypilot.co/en/latest/reference/, version 0.14. SkyPilot itself starts a job
again whose machine was taken away; both runs have one id, and the last one's result counts.
"""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, RootModel, StrictInt

from importer.deadline import UNLIMITED, Deadline
from importer.errors import LauncherError
from importer.exports.base import yaml_text
from importer.launcher import Finished
from importer.launchers.answers import Answer, Entries, Question, Said
from importer.launchers.base import (
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
from importer.launchers.target import Target

PROGRAM = "sky"
SECONDS = 900.0  # for one call: its controller may have to be started
INPUT, TASK = "/tmp/importer-input", "task.json.gz"  # noqa: S108 - on the machine of the job alone
TAIL = "50"  # lines
# What SkyPilot writes before each line of a job: colours, the name of the task, its process.
BEFORE = re.compile(r"^(?:\x1b\[[0-9;]*m)*\((?=[^()\n]*pid=\d)[^()\n]*\)(?:\x1b\[[0-9;]*m)* ?", re.MULTILINE)
FAILURES: Mapping[str, FailureKind] = {
    "FAILED": FailureKind.COMMAND,
    "FAILED_SETUP": FailureKind.ENVIRONMENT,
    "FAILED_PRECHECKS": FailureKind.UNSCHEDULABLE,
    "FAILED_NO_RESOURCE": FailureKind.UNSCHEDULABLE,
}
WAITING = frozenset({"PENDING", "SUBMITTED", "STARTING", "RECOVERING"})
WORKING = frozenset({"RUNNING", "WINDING_DOWN", "CANCELLING"})
FAILED = re.compile("FAILED(_[A-Z_]+)?")


class Job(Answer):
    """An entry of ``sky jobs queue --output json``."""

    id: Annotated[StrictInt, Field(ge=0, le=2**53, alias="job_id")]
    name: Said = Field(alias="job_name")
    status: Said
    failure_reason: Said = ""
    details: Said = ""
    infra: Said = ""
    region: Said = ""
    resources: Said = Field(default="", alias="cluster_resources")

    @property
    def node(self) -> str:
        """Return the infrastructure that it runs on."""
        return self.infra or self.region


class Queue(RootModel[Entries[Job]]):
    """The entries of the queue."""


def launcher(target: Target) -> Launcher:
    """Return the launcher of ``sky:INFRA``."""
    return Sky(target)


class Sky:
    """Managed jobs on one infrastructure; the name of a job is the run's id."""

    def __init__(self, target: Target, deadline: Deadline = UNLIMITED) -> None:
        self._target, self._deadline = target, deadline

    def within(self, deadline: Deadline) -> Launcher:
        """Return the same launcher with a deadline."""
        return Sky(self._target, deadline)

    def submit(self, task: RemoteTask) -> RemoteRun:
        """Launch the managed job, unless one with this name is in the queue."""
        run = RemoteRun.of(task.id, self._target)
        if self._job(run) is not None:
            return run
        with tempfile.TemporaryDirectory(prefix="importer-sky-") as folder:
            place = Path(folder)
            (place / "input").mkdir()
            (place / "input" / TASK).write_bytes(gzip.compress(task.bundle, mtime=0))
            if task.wheel is not None:
                shutil.copy(task.wheel, place / "input" / task.wheel.name)
            file = place / "task.yaml"
            file.write_text(yaml_text(task_data(task, self._target, place / "input"), []), "utf-8")
            words = ("jobs", "launch", "--name", task.id, "--yes", "--detach-run", str(file))
            done = self._sky(*words)
        if done.code != 0 and self._job(run) is None:
            raise LauncherError("cluster-refused", where=run.where, status=done.code, says=_last(done))
        return run

    def state(self, run: RemoteRun) -> RemoteState:
        """Return the state by SkyPilot's status of the managed job."""
        job = self._job(run)
        state = job_state(job)
        if state is None:
            raise self._question("jobs", "queue").odd(f"{job}")
        return state

    def logs(self, run: RemoteRun) -> str:
        """Return the newest lines of the job."""
        return self._log(run, "--tail", TAIL)

    def fetch(self, run: RemoteRun) -> str:
        """Return the whole output of the job: the result lies in it."""
        return self._log(run)

    def cancel(self, run: RemoteRun) -> None:
        """Cancel the job: SkyPilot takes its machine down."""
        job = self._job(run)
        if job is not None and job.status in WAITING | WORKING - {"CANCELLING"}:
            self._sky("jobs", "cancel", str(job.id), "--yes", must=True)

    def facts(self, run: RemoteRun) -> Mapping[str, str]:
        """Return cloud, region and resources of the job's machine."""
        job = self._job(run)
        found = {} if job is None else {"node": job.node, "resources": job.resources}
        return {name: value for name, value in found.items() if value}

    def remove(self, run: RemoteRun) -> None:
        """Leave the entry of a job that has ended: its machine is gone, and SkyPilot keeps its history."""
        if isinstance(self.state(run), Queued | Running):
            raise LauncherError("cluster-refused", where=run.where, status="active", says=run.id)

    def _job(self, run: RemoteRun) -> Job | None:
        """Return the newest entry with the name of the run."""
        words = ("jobs", "queue", "--all", "--output", "json")
        jobs = self._question(*words).read(Queue, self._sky(*words, must=True)).root
        return max((job for job in jobs if job.name == run.id), key=lambda job: job.id, default=None)

    def _log(self, run: RemoteRun, *more: str) -> str:
        job = self._job(run)
        if job is None or job.status in WAITING:
            return ""
        done = self._sky("jobs", "logs", str(job.id), "--no-follow", *more, must=True)
        return BEFORE.sub("", done.output)

    def _question(self, *words: str) -> Question:
        return Question(self._target.text, PROGRAM, " ".join(words), self._deadline)

    def _sky(self, *words: str, must: bool = False) -> Finished:
        """Run ``sky``; with ``must``, a failure is an error. Raises LauncherError."""
        where, program = self._target.text, shutil.which(PROGRAM)
        if program is None:
            raise LauncherError("launcher-missing", where=where, program="SkyPilot's sky")
        done = self._question(*words).ask([program, *words], SECONDS)
        if must and done.code != 0:
            raise LauncherError("cluster-unreachable", where=where, problem=_last(done))
        return done


def task_data(task: RemoteTask, target: Target, folder: Path) -> dict[str, Any]:
    """Return the task for SkyPilot; the files in ``folder`` go with it."""
    options, wants = target.options, task.resources
    resources: dict[str, Any] = {"infra": target.address, "cpus": f"{wants.cpus}+"}
    if wants.memory:
        resources["memory"] = f"{-(-wants.memory // 2**30)}+"
    if "accelerators" in options:
        resources["accelerators"] = options["accelerators"]
    if "image" in options:
        resources["image_id"] = f"docker:{options['image']}"
    python, run = (
        shlex.quote(target.python),
        f"{shlex.quote(target.python)} -P -m importer run-task task.json",
    )
    unpack = "import gzip, sys; sys.stdout.buffer.write(gzip.open(sys.argv[1]).read())"
    steps = ["set -e", f"{python} -c {shlex.quote(unpack)} {INPUT}/{TASK} > task.json"]
    if task.wheel is not None:
        steps.append(f"{python} -m pip install --quiet {INPUT}/{task.wheel.name} 1>&2")
    environment = {"IMPORTER_IMAGE": options["image"]} if "image" in options else {}
    return {
        "name": task.id,
        "resources": resources,
        "envs": environment,
        "file_mounts": {INPUT: str(folder)},
        "run": "\n".join([*steps, f"timeout {task.seconds} {run}"]),
    }


def job_state(job: Job | None) -> RemoteState | None:
    """Return the state of an entry; ``None`` for a status that is none."""
    if job is None:
        return Absent()
    status, says = job.status, job.failure_reason or job.details
    if status in WAITING:
        return Queued(says or status.lower())
    if status in WORKING:
        return Running(job.node)
    if status == "SUCCEEDED":
        return Succeeded()
    if status == "CANCELLED":
        return Cancelled()
    if status == "FAILED_CONTROLLER":
        return Lost(says)
    if not FAILED.fullmatch(status):
        return None
    return Failed(FAILURES.get(status, FailureKind.OTHER), says or status)


def _last(done: Finished) -> str:
    lines = (done.errors.strip() or done.output.strip()).splitlines()
    return lines[-1][:300] if lines else "no text"
