"""Follow a run elsewhere from its submission to its result; any process can go on where another stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from importer.errors import LauncherError, one_line
from importer.launchers import result
from importer.launchers.base import (
    Absent,
    Cancelled,
    Failed,
    Launcher,
    Lost,
    Queued,
    RemoteRun,
    RemoteState,
    RemoteTask,
    Running,
    Succeeded,
)
from importer.launchers.result import Result
from importer.progress import Progress
from importer.reasons import Reason

T = TypeVar("T")
QUEUE_SECONDS = 3600  # that a run may wait for its start
PATIENCE = 600.0  # seconds that a cluster may be unreachable while a run is followed
POLL, LOOK = 2.0, 0.2  # seconds between two questions, and between two looks whether to stop
SETTLE = 15.0  # seconds that a cancelled run has to end
TAIL = 300  # characters of a log in an error
# Errors after which a run with the same id can give no result any more.
FINAL = frozenset({
    "queued-too-long", "node-lost", "remote-failed", "remote-cancelled", "far-end", "other-digest",
    "bad-result",
})  # fmt: skip


def follow(
    launcher: Launcher,
    task: RemoteTask,
    progress: Progress,
    *,
    queue_seconds: float = QUEUE_SECONDS,
    since: float | None = None,
    patience: float = 0.0,
    check: Callable[[], None] = lambda: None,
) -> Result:
    """Submit a task unless it is there already, and return its result.

    ``since``  epoch seconds of the first submission, if it was earlier. ``patience``  seconds for which the
    submission is tried while the cluster is unreachable. ``check`` is called between
    questions, and what it raises leaves the run as it is. Raises LauncherError; of the kinds in ``FINAL`` the
    run has ended, and the caller removes it.
    """
    begun = time.time() if since is None else since
    progress(f"submitting {task.id}")
    run = _asked(lambda: launcher.submit(task), check, patience)
    while True:
        check()
        state = _asked(lambda: launcher.state(run), check)
        if isinstance(state, Queued):
            waits = f"{task.resources}{f' ({state.waits_for})' if state.waits_for else ''}"
            progress(one_line(f"queued at {run.where} as {run.id}, for {waits}"))
            if time.time() - begun > queue_seconds:
                with suppress(LauncherError):  # a cluster may take its time to drop what waits
                    end(launcher, run)
                raise LauncherError(
                    "queued-too-long",
                    where=run.where,
                    run=run.id,
                    seconds=f"{queue_seconds:g}",
                    waits_for=waits,
                )
        elif isinstance(state, Running):
            step = result.last_step(_asked(lambda: launcher.logs(run), check))
            on = f" on {state.node}" if state.node else ""
            progress(one_line(f"{run.where}{on}: {step or 'starting'}"))
        else:
            return _ended(launcher, run, task, state)
        _pause(POLL, check)


def _ended(launcher: Launcher, run: RemoteRun, task: RemoteTask, state: RemoteState) -> Result:
    """Return the result of a run that has ended; raises LauncherError where it has none."""
    where = {"where": run.where, "run": run.id}
    if isinstance(state, Succeeded | Failed):
        output = launcher.fetch(run)
        if isinstance(state, Succeeded) or result.has_result(output):
            found = result.read(output, task.id, task.digest, run.where)
            if found.error is not None:
                problem = str(found.error.get("message"))[:TAIL]
                raise LauncherError("far-end", **where, problem=problem, cause=found.error.get("kind"))
            return found
        says = _tail(output) or state.says or "it left no output"
        raise LauncherError("remote-failed", **where, what=Reason(state.kind), says=says)
    if isinstance(state, Cancelled):
        raise LauncherError("remote-cancelled", **where)
    said = state.says if isinstance(state, Lost) else ""
    raise LauncherError("node-lost", **where, says=said or "nothing is known of it there any more")


def remote_facts(launcher: Launcher, run: RemoteRun, found: Result) -> dict[str, Any]:
    """Return the receipt's entry on where a report was made; what the cluster knows comes first."""
    facts: dict[str, Any] = {**found.machine, "importer": found.importer}
    with suppress(LauncherError):
        facts |= launcher.facts(run)
    return {"launcher": run.launcher, "where": run.where, "run": run.id, **facts}


def end(launcher: Launcher, run: RemoteRun) -> None:
    """Cancel a run, wait until it has ended, and remove what it left; raises LauncherError."""
    state = launcher.state(run)
    if isinstance(state, Absent):
        return
    if isinstance(state, Queued | Running):
        launcher.cancel(run)
        deadline = time.monotonic() + SETTLE
        while isinstance(launcher.state(run), Queued | Running) and time.monotonic() < deadline:
            time.sleep(LOOK)
    launcher.remove(run)


def _asked(question: Callable[[], T], check: Callable[[], None], patience: float = PATIENCE) -> T:
    """Return the answer, asked again while the cluster is unreachable for less than ``patience`` seconds."""
    deadline, pause = time.monotonic() + patience, 1.0
    while True:
        try:
            return question()
        except LauncherError as error:
            if error.kind != "cluster-unreachable" or time.monotonic() + pause > deadline:
                raise
        _pause(pause, check)
        pause = min(30.0, pause * 2)


def _pause(seconds: float, check: Callable[[], None]) -> None:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        time.sleep(min(LOOK, left))
        check()


def _tail(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith(result.MARK)]
    return " ".join(" / ".join(lines[-3:]).split())[-TAIL:]
