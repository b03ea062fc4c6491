"""SkyPilot by the user's own ``sky``: a managed job for each run, its result in the job's log.

Commands and fields: https://docs.skypilot.co/en/latest/reference/, version 0.14. SkyPilot itself starts a job
again whose machine was taken away; both runs have one id, and the last one's result counts.
"""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from importer import launcher as processes
from importer.errors import LauncherError
from importer.exports.base import yaml_text
from importer.launcher import Finished, Purpose
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
LONGEST = 300  # characters of what SkyPilot says
# What SkyPilot writes before each line of a job: colours, the name of the task, its process.
BEFORE = re.compile(r"^(?:\x1b\[[0-9;]*m)*\((?=[^()\n]*pid=\d)[^()\n]*\)(?:\x1b\[[0-9;]*m)* ?", re.MULTILINE)
ENTRIES = re.compile(r"^\[\s*(?:\{|\])", re.MULTILINE)  # the list of a queue begins a line
FAILURES: Mapping[str, FailureKind] = {
    "FAILED": FailureKind.COMMAND,
    "FAILED_SETUP": FailureKind.ENVIRONMENT,
    "FAILED_PRECHECKS": FailureKind.UNSCHEDULABLE,
    "FAILED_NO_RESOURCE": FailureKind.UNSCHEDULABLE,
}
WAITING = frozenset({"PENDING", "SUBMITTED", "STARTING", "RECOVERING"})
WORKING = frozenset({"RUNNING", "WINDING_DOWN", "CANCELLING"})


def launcher(target: Target) -> Launcher:
    """Return the launcher of ``sky:INFRA``."""
    return Sky(target)


class Sky:
    """Managed jobs on one infrastructure; the name of a job is the run's id."""

    def __init__(self, target: Target) -> None:
        self._target = target

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
        return job_state(self._job(run))

    def logs(self, run: RemoteRun) -> str:
        """Return the newest lines of the job."""
        return self._log(run, "--tail", TAIL)

    def fetch(self, run: RemoteRun) -> str:
        """Return the whole output of the job: the result lies in it."""
        return self._log(run)

    def cancel(self, run: RemoteRun) -> None:
        """Cancel the job: SkyPilot takes its machine down."""
        job = self._job(run)
        if job is not None and job.get("status") in WAITING | WORKING - {"CANCELLING"}:
            self._sky("jobs", "cancel", str(job["job_id"]), "--yes", must=True)

    def facts(self, run: RemoteRun) -> Mapping[str, str]:
        """Return cloud, region and resources of the job's machine."""
        job = self._job(run) or {}
        found = {"node": job.get("infra") or job.get("region"), "resources": job.get("cluster_resources")}
        return {name: str(value) for name, value in found.items() if value}

    def remove(self, run: RemoteRun) -> None:
        """Leave the entry of a job that has ended: its machine is gone, and SkyPilot keeps its history."""
        if isinstance(self.state(run), Queued | Running):
            raise LauncherError("cluster-refused", where=run.where, status="active", says=run.id)

    def _job(self, run: RemoteRun) -> dict[str, Any] | None:
        """Return the newest entry with the name of the run."""
        done = self._sky("jobs", "queue", "--all", "--output", "json", must=True)
        found = [job for job in _entries(done, run.where) if job.get("job_name") == run.id]
        return max(found, key=lambda job: int(job.get("job_id") or 0), default=None)

    def _log(self, run: RemoteRun, *more: str) -> str:
        job = self._job(run)
        if job is None or job.get("status") in WAITING:
            return ""
        done = self._sky("jobs", "logs", str(job["job_id"]), "--no-follow", *more, must=True)
        return BEFORE.sub("", done.output)

    def _sky(self, *words: str, must: bool = False) -> Finished:
        """Run ``sky``; with ``must``, a failure is an error. Raises LauncherError."""
        where, program = self._target.text, shutil.which(PROGRAM)
        if program is None:
            raise LauncherError("launcher-missing", where=where, program="SkyPilot's sky")
        try:
            done = processes.run([program, *words], Purpose.REMOTE, seconds=SECONDS)
        except OSError as error:
            problem = error.strerror or type(error).__name__
            raise LauncherError("cluster-unreachable", where=where, problem=problem) from None
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


def job_state(job: Mapping[str, Any] | None) -> RemoteState:
    """Return the state of an entry of ``sky jobs queue --output json``; ``None``: there is none."""
    if job is None:
        return Absent()
    status, says = str(job.get("status")), _text(job.get("failure_reason") or job.get("details"))
    if status in WAITING:
        return Queued(says or status.lower())
    if status in WORKING:
        return Running(_text(job.get("infra") or job.get("region")))
    if status == "SUCCEEDED":
        return Succeeded()
    if status == "CANCELLED":
        return Cancelled()
    if status == "FAILED_CONTROLLER":
        return Lost(says)
    return Failed(FAILURES.get(status, FailureKind.OTHER), says or status)


def _entries(done: Finished, where: str) -> list[dict[str, Any]]:
    """Return the entries of the queue; ``sky`` may write lines of its own around the JSON."""
    start = ENTRIES.search(done.output)
    try:
        found, _ = json.JSONDecoder().raw_decode(done.output, start.start() if start else 0)
        return list(found)
    except ValueError:
        raise LauncherError("cluster-unreachable", where=where, problem=_last(done)) from None


def _text(value: object) -> str:
    return " ".join(str(value or "").split())[:LONGEST]


def _last(done: Finished) -> str:
    lines = (done.errors.strip() or done.output.strip()).splitlines()
    return _text(lines[-1]) if lines else "no text"
