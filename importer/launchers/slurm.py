"""Slurm by its own programs, here or at a login node over OpenSSH; a folder for each run on the shared disk.

Every request is one script for ``sh``. A folder has ``task.json``, ``job.sh``, ``jobs`` with the numbers that
sbatch gave, ``owner`` with the job that runs, ``output``, ``log``, ``exit`` at its end, and ``cancelled``. A
submission that was repeated may give two jobs: a hard link makes the first the only one that works.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping

from importer.deadline import UNLIMITED, Deadline
from importer.errors import LauncherError
from importer.launcher import Finished
from importer.launchers.answers import Question
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
    Target,
)
from importer.launchers.ssh import (
    FETCH,
    FOLDER,
    LOGS,
    SENT,
    UNPACK,
    UNREACHED,
    WHEEL,
    exited,
    lines,
    ssh_argv,
)

SECONDS = 300.0  # for one request
NOT_FOUND = 127  # the shell's status for a program that is not there
SILENT = 75  # of ``STATE``: the controller does not answer
NO_ACCOUNTING = "none"  # neither the queue, nor the controller, nor the accounts know the job
# What the scripts print at their end; ``odd`` has what one of Slurm's programs printed.
SUBMITTED = re.compile(
    r"submitted|refused (?P<status>[0-9]{1,3})(?: (?P<says>.*))?|odd (?P<tool>squeue|sbatch) (?P<came>.*)"
)
STATES = re.compile(r"(?P<word>absent|cancelled)|exit (?P<code>[0-9]{1,3})|job (?P<line>.*)")
LINE = re.compile(r"(?P<state>[A-Z_]+)(?:\+| by [^|]*)?\|(?P<reason>[^|]*)\|(?P<node>[^|]*)")
SUBMIT = (
    "command -v sbatch >/dev/null || exit 127\n"
    + UNPACK.replace("run.sh", "job.sh")
    + """\
if [ ! -s "$d/jobs" ] && [ ! -e "$d/exit" ] && [ ! -e "$d/cancelled" ]; then
  asked squeue --me --noheader --name={id} --format=%i
  [ $status -eq 0 ] || { cat "$d/says.$$" >&2; rm -f "$d"/*.$$; exit $status; }
  numbers squeue
  if [ ! -s "$d/found.$$" ]; then
    asked sbatch --parsable {options} --output="$d/log" --error="$d/log" "$d/job.sh" "$d"
    if [ $status -ne 0 ]; then
      echo "refused $status $(tail -n 1 "$d/says.$$")"; rm -rf "$d"; exit 0
    fi
    sed 's/;.*//' "$d/found.$$" > "$d/number.$$"; mv "$d/number.$$" "$d/found.$$"
    numbers sbatch
    [ -s "$d/found.$$" ] || odd sbatch
  fi
  cat "$d/found.$$" >> "$d/jobs"
  rm -f "$d"/*.$$
fi
echo submitted
"""
)
# Run a program and keep the beginning of both of its streams; end where a line is no number of a job.
ASKED = """\
asked() {
  { { "$@" 2>&3 </dev/null; echo $? > "$d/status.$$"; } | head -c 4000 > "$d/found.$$"; } \
    3>&1 | head -c 1000 > "$d/says.$$"
  status=$(cat "$d/status.$$")
}
odd() { echo "odd $1 $(cat "$d/found.$$" "$d/says.$$" | tr '\\n\\r' '  ')"; rm -f "$d"/*.$$; exit 0; }
numbers() { ! grep -qv '^[0123456789]\\{1,18\\}$' "$d/found.$$" || odd "$1"; }
"""
JOB = """\
#!/bin/sh
d=$1
cd "$d" || exit 73
echo "$SLURM_JOB_ID" > "owner.$$"
ln "owner.$$" owner 2>/dev/null; first=$?
rm -f "owner.$$"
[ $first -eq 0 ] || exit 0
{prepare}
{python} -P -m importer run-task task.json > output 2>> log </dev/null
status=$?
echo $status > exit.part && mv exit.part exit
exit $status
"""
# The queue forgets a job that has ended, then the controller does; the accounts keep it, where there are any.
# A cancelled job may still write how its program ended.
STATE = """\
ended() {
  [ -f "$d/exit" ] || return 0
  status=$(cat "$d/exit")
  if [ "$status" != 0 ] && [ -f "$d/cancelled" ]; then echo cancelled; else echo "exit $status"; fi
  exit 0
}
if [ ! -d "$d" ]; then echo absent; exit 0; fi
ended
job=$(cat "$d/owner" 2>/dev/null || head -n 1 "$d/jobs" 2>/dev/null)
if [ -z "$job" ]; then if [ -f "$d/cancelled" ]; then echo cancelled; else echo absent; fi; exit 0; fi
asked squeue --noheader --states=all --jobs="$job" --format='%T|%r|%N'
line=$(head -n 1 "$d/found.$$")
[ $status -eq 0 ] || scontrol ping >/dev/null 2>"$d/says.$$" || {
  tail -n 1 "$d/says.$$" >&2; rm -f "$d"/*.$$; exit 75; }
[ -n "$line" ] || line=$(sacct --noheader --parsable2 --allocations --jobs="$job" \\
  --format=State,ExitCode,NodeList 2>/dev/null </dev/null | head -c 4000 | head -n 1)
rm -f "$d"/*.$$
ended
[ -n "$line" ] || [ ! -f "$d/cancelled" ] || { echo cancelled; exit 0; }
echo "job ${line:-none}"
"""
CANCEL = """\
[ -d "$d" ] || exit 0
[ -f "$d/exit" ] || : > "$d/cancelled"
[ ! -s "$d/jobs" ] || scancel $(cat "$d/jobs") 2>/dev/null
exit 0
"""
REMOVE = """\
[ -d "$d" ] || exit 0
for job in $(cat "$d/jobs" 2>/dev/null); do
  case "$(squeue --noheader --jobs="$job" --format=%T 2>/dev/null)" in
    PENDING|RUNNING|SUSPENDED|CONFIGURING) echo "$job" >&2; exit 71;;
  esac
done
rm -rf "$d"; rmdir "$root" 2>/dev/null; exit 0
"""
FACTS = 'job=$(cat "$d/owner" 2>/dev/null) && scontrol show job "$job" --oneliner 2>/dev/null; exit 0\n'
# States of jobs, https://slurm.schedmd.com/job_state_codes.html
WAITING = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD", "REQUEUE_FED"})
WORKING = frozenset({
    "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "SIGNALING", "STAGE_OUT", "STOPPED", "RESIZING",
    "POWER_UP_NODE", "UPDATE_DB", "EXPEDITING",
})  # fmt: skip
GONE = frozenset({"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL"})
FAILURES: Mapping[str, FailureKind] = {
    "FAILED": FailureKind.COMMAND,
    "TIMEOUT": FailureKind.TIME,
    "DEADLINE": FailureKind.TIME,
    "OUT_OF_MEMORY": FailureKind.MEMORY,
}
# Reasons of a waiting job that no waiting changes.
NEVER = frozenset({
    "BadConstraints", "PartitionConfig", "PartitionNodeLimit", "PartitionTimeLimit",
    "InvalidAccount", "InvalidQOS", "AccountNotAllowed", "QOSNotAllowed", "JobHeldAdmin",
    "launch_failed_requeued_held",
})  # fmt: skip


def launcher(target: Target) -> Launcher:
    """Return the launcher of ``slurm:PARTITION``."""
    return Slurm(target)


class Slurm:
    """Batch jobs of one partition; the name of a job is the run's id."""

    def __init__(self, target: Target, deadline: Deadline = UNLIMITED) -> None:
        self._target, self._deadline = target, deadline

    def within(self, deadline: Deadline) -> Launcher:
        """Return the same launcher with a deadline."""
        return Slurm(self._target, deadline)

    def submit(self, task: RemoteTask) -> RemoteRun:
        """Write the run's folder and submit its job, unless they are there."""
        run, python = RemoteRun.of(task.id, self._target), shlex.quote(self._target.python)
        wheel, prepare, importer = "", "", python
        if task.wheel is not None:
            wheel = WHEEL.format(name=task.wheel.name, data=lines(task.wheel.read_bytes()))
            prepare, importer = SENT.format(python=python, name=task.wheel.name), "venv/bin/python"
        job = JOB.replace("{prepare}", prepare).replace("{python}", importer)
        text = SUBMIT.replace("{run}", job).replace("{wheel}", wheel).replace("{id}", task.id)
        text = text.replace("{options}", shlex.join(self._options(task)))
        done = self._sh(run, "submit", text.replace("{task}", lines(task.bundle)))
        found = self._question("sbatch", "submit", run).line(SUBMITTED, done)
        if found["status"]:
            says = found["says"] or "no text"
            raise LauncherError("cluster-refused", where=run.where, status=found["status"], says=says[:300])
        if found["tool"]:
            raise self._question(found["tool"], "submit", run).odd(found["came"])
        return run

    def _options(self, task: RemoteTask) -> list[str]:
        wants, options = task.resources, self._target.options
        found = [
            f"--partition={self._target.address}",
            f"--job-name={task.id}",
            "--nodes=1",
            "--ntasks=1",
            f"--cpus-per-task={wants.cpus}",
            f"--time={-(-task.seconds // 60)}",  # minutes
            "--no-requeue",  # a run whose node is lost is started again by the importer alone
        ]
        found += [f"--gres=gpu:{wants.gpus}"] if wants.gpus else []
        found += [f"--mem={-(-wants.memory // 2**20)}M"] if wants.memory else []
        found += [f"--account={options['account']}"] if "account" in options else []
        if "image" in options:  # of Pyxis, the plugin for images
            found += [f"--container-image={options['image']}", "--container-mount-home"]
        return found

    def state(self, run: RemoteRun) -> RemoteState:
        """Return the state by the run's own files, else by the queue, the controller, the accounts."""
        question = self._question("squeue", "state", run)
        found = question.line(STATES, self._sh(run, "state", STATE))
        if found["word"]:
            return Absent() if found["word"] == "absent" else Cancelled()
        if found["code"]:
            return exited(int(found["code"]))
        state = job_state(found["line"])
        if state is None:
            raise question.odd(found["line"])
        return state

    def logs(self, run: RemoteRun) -> str:
        """Return the newest steps and the end of the log."""
        return self._sh(run, "logs", LOGS).output

    def fetch(self, run: RemoteRun) -> str:
        """Return the output with the result, and the end of the log."""
        return self._sh(run, "fetch", FETCH).output

    def cancel(self, run: RemoteRun) -> None:
        """Cancel the run's jobs: Slurm ends their processes."""
        self._sh(run, "cancel", CANCEL)

    def facts(self, run: RemoteRun) -> Mapping[str, str]:
        """Return node and number of the job, while the controller knows them."""
        said = self._sh(run, "facts", FACTS).output
        found = {
            name: re.search(rf"\b{key}=(\S{{1,300}})", said)
            for name, key in (("node", "NodeList"), ("job", "JobId"))
        }
        image = self._target.options.get("image")
        return {n: m[1] for n, m in found.items() if m and m[1] != "(null)"} | (
            {"image": image} if image else {}
        )

    def remove(self, run: RemoteRun) -> None:
        """Delete the run's folder; raises LauncherError("cluster-refused") while its job is in the queue."""
        self._sh(run, "remove", REMOVE)

    def _question(self, tool: str, words: str, run: RemoteRun) -> Question:
        return Question(self._target.text, tool, f"{words} {run.id}", self._deadline)

    def _sh(self, run: RemoteRun, words: str, script: str) -> Finished:
        """Run a script where Slurm's programs are; raises LauncherError."""
        head = f'umask 077\nroot="$HOME/{FOLDER}"; d="$root/{run.id}"\n{ASKED}'
        where, host = self._target.text, self._target.options.get("host")
        argv = ssh_argv(where, host, self._target.options) if host else [shutil.which("sh") or "sh", "-s"]
        done = self._question("ssh" if host else "sh", words, run).ask(argv, SECONDS, head + script)
        last = (done.errors.strip().splitlines() or ["no text"])[-1][:300]
        if done.code == NOT_FOUND:
            raise LauncherError("launcher-missing", where=where, program="Slurm's sbatch")
        if done.code in (UNREACHED, SILENT):
            raise LauncherError("cluster-unreachable", where=where, problem=last)
        if done.code != 0:
            raise LauncherError("cluster-refused", where=where, status=done.code, says=last)
        return done


def job_state(line: str) -> RemoteState | None:
    """Return the state of a line of squeue (state, reason, nodes) or sacct (state, exit code, nodes).

    ``None`` is for a line that is none of theirs.
    """
    if line == NO_ACCOUNTING:
        return Lost("Slurm knows its job no more")
    found = LINE.fullmatch(line)
    if found is None:
        return None
    state, reason, node = found["state"], found["reason"][:300], found["node"][:300]
    if state in WAITING:
        return Failed(FailureKind.UNSCHEDULABLE, reason) if reason in NEVER else Queued(reason)
    if state in WORKING:
        return Running(node)
    if state == "CANCELLED":
        return Cancelled()
    if state in GONE:
        return Lost(f"{state} {node}".strip())
    if state == "COMPLETED":  # without a file of its exit
        return Failed(FailureKind.COMMAND, "its job ended and left no exit status")
    kind = FAILURES.get(state)
    return None if kind is None else Failed(kind, f"{state} {reason}".strip())
