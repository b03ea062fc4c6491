"""Another machine over OpenSSH: a folder for each run, and a process that outlives the connection.

Every request is one script for ``sh`` on standard input, so the far end's command line is ``sh -s`` alone.
A folder has ``task.json``; ``pid`` with the process and its start; ``output``, ``log``; ``exit`` at its end;
``cancelled``. A hard link makes the first of several processes the only one.
"""

from __future__ import annotations

import base64
import re
import shlex
import shutil
from collections.abc import Mapping

from importer.deadline import UNLIMITED, Deadline
from importer.errors import LauncherError
from importer.launcher import Finished
from importer.launchers.answers import Question
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

PROGRAM = "ssh"
CONNECT = 20  # seconds
SECONDS = 300.0  # for one request: a wheel may be on its way
UNREACHED = 255  # ssh's own exit status
UNPREPARED = 120  # of ``SENT``
FOLDER = ".cache/importer-runs"  # below the home folder
OPTIONS = (
    "BatchMode=yes", "StrictHostKeyChecking=yes", f"ConnectTimeout={CONNECT}", "ServerAliveInterval=15",
    "ServerAliveCountMax=4", "ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes",
    "PermitLocalCommand=no", "ControlPath=none",
)  # fmt: skip

# Functions of all scripts; $d is the run's folder. A process is known by its number and its start.
HEAD = """\
umask 077
born() { ps -o lstart= -p "$1" 2>/dev/null || cut -d' ' -f22 "/proc/$1/stat" 2>/dev/null; }
alive() {
  [ -f "$d/pid" ] || return 1
  read -r pid start < "$d/pid"
  [ "$(born "$pid" | tr -s ' ' _)" = "$start" ]
}
"""
# A folder with the task and its script appears whole or not at all.
UNPACK = """\
mkdir -p "$root" || exit 73
if [ ! -d "$d" ]; then
  part="$d.part.$$"
  mkdir "$part" || exit 73
  base64 -d > "$part/task.json" <<'END_OF_TASK' || exit 73
{task}
END_OF_TASK
{wheel}
  cat > "$part/run.sh" <<'END_OF_TASK'
{run}
END_OF_TASK
  mv "$part" "$d" 2>/dev/null || true
  [ -d "$part" ] && rm -rf "$part"
  rm -rf "$d"/*.part.* 2>/dev/null
fi
"""
SUBMIT = (
    UNPACK
    + """\
if [ ! -e "$d/pid" ] && [ ! -e "$d/cancelled" ]; then
  {python} -c 'import os, sys; os.setsid(); os.execvp("sh", ["sh", *sys.argv[1:]])' "$d/run.sh" "$d" \\
    </dev/null >/dev/null 2>"$d/start" &
fi
echo submitted
"""
)
WHEEL = """\
  base64 -d > "$part/{name}" <<'END_OF_TASK' || exit 73
{data}
END_OF_TASK
"""
RUN = (
    HEAD
    + """\
d=$1
cd "$d" || exit 73
echo "$$ $(born $$ | tr -s ' ' _)" > "pid.$$"
ln "pid.$$" pid 2>/dev/null; first=$?
rm -f "pid.$$"
[ $first -eq 0 ] || exit 0
trap '' HUP
{prepare}
{python} {run_task} task.json > output 2> log </dev/null
echo $? > exit.part && mv exit.part exit
"""
)
SENT = """\
{{ {python} -m venv --system-site-packages venv && venv/bin/python -m pip install -q ./{name}
}} > log 2>&1 ||
  {{ echo 120 > exit; exit 0; }}
"""
STATE = """\
if [ ! -d "$d" ]; then echo absent
elif [ -f "$d/exit" ]; then echo "exit $(cat "$d/exit")"
elif [ -f "$d/cancelled" ]; then if alive; then echo running; else echo cancelled; fi
elif alive; then echo running
elif [ -f "$d/pid" ]; then sleep 1; if [ -f "$d/exit" ]; then echo "exit $(cat "$d/exit")"; else echo lost; fi
elif [ -s "$d/start" ]; then echo "unstarted $(tail -n 1 "$d/start")"
else echo queued; fi
"""
CANCEL = """\
[ -d "$d" ] || exit 0
[ -f "$d/exit" ] || : > "$d/cancelled"
if alive; then
  kill -TERM -"$pid" 2>/dev/null
  n=0; while alive && [ $n -lt 20 ]; do sleep 1; n=$((n + 1)); done
  alive && kill -KILL -"$pid" 2>/dev/null
fi
exit 0
"""
LOGS = (
    'grep "^importer-step" "$d/output" 2>/dev/null | tail -n 20; tail -c 4000 "$d/log" 2>/dev/null; exit 0\n'
)
FETCH = 'cat "$d/output" 2>/dev/null; tail -c 4000 "$d/log" 2>/dev/null; exit 0\n'
# With its exit status written, a process has nothing left to do, though it may not be gone yet.
REMOVE = '[ -f "$d/exit" ] || ! alive || exit 71\nrm -rf "$d"; rmdir "$root" 2>/dev/null; exit 0\n'


SUBMITTED = re.compile("submitted")
STATES = re.compile(
    r"(?P<word>absent|queued|running|cancelled|lost)|exit (?P<code>[0-9]{1,3})|unstarted (?P<says>.+)"
)


def launcher(target: Target) -> Launcher:
    """Return the launcher of ``ssh:[USER@]HOST[:PORT]``."""
    return Ssh(target)


class Ssh:
    """Runs on one machine. Host keys have to be known, and no password is asked for."""

    def __init__(self, target: Target, deadline: Deadline = UNLIMITED) -> None:
        self._target, self._deadline = target, deadline
        place = re.fullmatch(r"(.*?)(?::([0-9]+))?", target.address)
        assert place is not None  # noqa: S101 - of any text
        self._host, self._port = place[1].replace("[", "").replace("]", ""), place[2]

    def within(self, deadline: Deadline) -> Launcher:
        """Return the same launcher with a deadline."""
        return Ssh(self._target, deadline)

    def submit(self, task: RemoteTask) -> RemoteRun:
        """Write the run's folder and start its process, unless they are there."""
        run, python = RemoteRun.of(task.id, self._target), shlex.quote(self._target.python)
        wheel, prepare, importer = "", "", python
        if task.wheel is not None:
            wheel = WHEEL.format(name=task.wheel.name, data=lines(task.wheel.read_bytes()))
            prepare, importer = SENT.format(python=python, name=task.wheel.name), "venv/bin/python"
        script = RUN.replace("{prepare}", prepare).replace("{python}", importer)
        script = script.replace("{run_task}", shlex.join(FAR_END))
        text = SUBMIT.replace("{run}", script).replace("{wheel}", wheel).replace("{python}", python)
        done = self._sh(run, "submit", text.replace("{task}", lines(task.bundle)))
        self._question("submit", run).line(SUBMITTED, done)
        return run

    def state(self, run: RemoteRun) -> RemoteState:
        """Return the state of the run's process."""
        found = self._question("state", run).line(STATES, self._sh(run, "state", STATE))
        if found["code"]:
            return exited(int(found["code"]))
        if found["says"]:
            return Failed(FailureKind.ENVIRONMENT, found["says"][:300])
        states: Mapping[str, RemoteState] = {
            "absent": Absent(), "queued": Queued(), "running": Running(self._host), "cancelled": Cancelled(),
            "lost": Lost("its process ended without a trace"),
        }  # fmt: skip
        return states[found["word"]]

    def logs(self, run: RemoteRun) -> str:
        """Return the newest steps and the end of the log."""
        return self._sh(run, "logs", LOGS).output

    def fetch(self, run: RemoteRun) -> str:
        """Return the output with the result, and the end of the log."""
        return self._sh(run, "fetch", FETCH).output

    def cancel(self, run: RemoteRun) -> None:
        """End the run's process group; the engine ends with it."""
        self._sh(run, "cancel", CANCEL)

    def facts(self, run: RemoteRun) -> Mapping[str, str]:
        """Return the host as it was named."""
        del run
        return {"node": self._host}

    def remove(self, run: RemoteRun) -> None:
        """Delete the run's folder; raises LauncherError("cluster-refused") while its process lives."""
        self._sh(run, "remove", REMOVE)

    def _question(self, words: str, run: RemoteRun) -> Question:
        return Question(self._target.text, PROGRAM, f"{words} {run.id}", self._deadline)

    def _sh(self, run: RemoteRun, words: str, script: str) -> Finished:
        """Run a script at the far end; raises LauncherError."""
        folder = self._target.options.get("folder", FOLDER)
        root = folder if folder.startswith("/") else f"$HOME/{folder.removeprefix('~/')}"
        head = f'root="{root}"; d="$root/{run.id}"\n{HEAD}'
        where = self._target.text
        argv = ssh_argv(where, self._host, self._target.options, self._port)
        done = self._question(words, run).ask(argv, SECONDS, head + script)
        last = (done.errors.strip().splitlines() or ["no text"])[-1][:300]
        if done.code == UNREACHED:
            raise LauncherError("cluster-unreachable", where=where, problem=last)
        if done.code != 0:
            raise LauncherError("cluster-refused", where=where, status=done.code, says=last)
        return done


def exited(code: int) -> RemoteState:
    """Return the state of a run by the exit status that it left."""
    if code == 0:
        return Succeeded()
    kind = FailureKind.ENVIRONMENT if code == UNPREPARED else FailureKind.COMMAND
    return Failed(kind, f"exit status {code}")


def ssh_argv(where: str, host: str, chosen: Mapping[str, str], port: str | None = None) -> list[str]:
    """Return the command that reads a script for a host; raises LauncherError("launcher-missing")."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise LauncherError("launcher-missing", where=where, program="OpenSSH's ssh")
    options = [word for option in OPTIONS for word in ("-o", option)]
    options += ["-F", chosen["config"]] if "config" in chosen else []
    options += ["-p", port] if port else []
    return [program, "-T", *options, "--", host, "sh -s"]


def lines(data: bytes) -> str:
    """Return data in base64, in lines that every shell takes."""
    return base64.encodebytes(data).decode().rstrip("\n")
