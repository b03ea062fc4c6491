"""Follow a run elsewhere from its submission to its result; any process can go on where another stopped.

One deadline holds for all of the wait for its start, one for the run, one for its result, one for its end.

Runs that this machine follows: a file for each, written before the submission, so that a killed command
goes on with the same run.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict, TypeVar, cast

from importer import config
from importer.config_file.store import StoredDocument, make_folder
from importer.deadline import Deadline
from importer.errors import DocumentError, LauncherError, one_line
from importer.launchers import bundle
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
    Target,
)
from importer.launchers.bundle import Result
from importer.progress import Progress
from importer.reasons import Reason

T = TypeVar("T")
QUEUE_SECONDS = 3600  # that a run may wait for its start
PATIENCE = 600.0  # seconds that a cluster may be unreachable while a run is followed
POLL, LOOK = 2.0, 0.2  # seconds between two questions, and between two looks whether to stop
SETTLE, ENDS = 15.0, 60.0  # seconds that a cancelled run has to end, and that all requests for it have
LATE = 0.1  # of the wait for a start: what the last question and the cancel may take beyond it
HURRY = 5.0  # seconds that the requests of an end have at least
LAGS = 30.0  # seconds that the output may be behind the state: a log's server, a shared folder
FACTS = 30.0  # seconds for what a cluster knows beside the result
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
    questions, and what it raises leaves the run as it is. Raises LauncherError; after the kinds in ``FINAL``
    the caller ends the run and removes it.
    """
    until = queue_seconds + (time.time() if since is None else since)
    soon = min(queue_seconds, PATIENCE)  # for the first answer, where another process has waited before
    starting = Deadline.after(max(until - time.time(), soon) + LATE * queue_seconds)
    limit = starting
    progress(f"submitting {task.id}")
    run = _asked(launcher, limit, lambda at: at.submit(task), check, patience)
    while True:
        check()
        state = _asked(launcher, limit, lambda at: at.state(run), check)
        if isinstance(state, Queued):
            waits = f"{task.resources}{f' ({state.waits_for})' if state.waits_for else ''}"
            progress(one_line(f"queued at {run.where} as {run.id}, for {waits}"))
            _pause(min(POLL, until - time.time()), check)
            if time.time() >= until:
                raise LauncherError(
                    "queued-too-long",
                    where=run.where,
                    run=run.id,
                    seconds=f"{queue_seconds:g}",
                    waits_for=waits,
                )
        elif isinstance(state, Running):
            if limit is starting:
                limit = Deadline.after(task.seconds)
            step = bundle.last_step(_asked(launcher, limit, lambda at: at.logs(run), check))
            on = f" on {state.node}" if state.node else ""
            progress(one_line(f"{run.where}{on}: {step or 'starting'}"))
            _pause(min(POLL, limit.left), check)
            if not limit.left:
                says = f"it ran for {task.seconds} s"
                raise LauncherError(
                    "remote-failed", where=run.where, run=run.id, what=Reason(FailureKind.TIME), says=says
                )
        else:
            return _ended(launcher, run, task, state, check)


def _ended(
    launcher: Launcher, run: RemoteRun, task: RemoteTask, state: RemoteState, check: Callable[[], None]
) -> Result:
    """Return the result of a run that has ended; raises LauncherError where it has none."""
    where, limit = {"where": run.where, "run": run.id}, Deadline.after(PATIENCE)
    if isinstance(state, Succeeded | Failed):
        output = _asked(launcher, limit, lambda at: at.fetch(run), check)
        late = Deadline.after(LAGS if isinstance(state, Succeeded) else 0.0)
        while late.left and not bundle.has_result(output):  # a state may be known before the output is
            _pause(POLL, check)
            output = _asked(launcher, limit, lambda at: at.fetch(run), check)
        if isinstance(state, Succeeded) or bundle.has_result(output):
            found = bundle.read_result(output, task.id, task.digest, run.where)
            if found.error is not None:
                problem = str(found.error["message"])[:TAIL]
                raise LauncherError("far-end", **where, problem=problem, cause=found.error.get("kind"))
            return found
        says = _tail(output) or state.says or "it left no output"
        raise LauncherError("remote-failed", **where, what=Reason(state.kind), says=says)
    if isinstance(state, Cancelled):
        raise LauncherError("remote-cancelled", **where)
    said = state.says if isinstance(state, Lost) else ""
    raise LauncherError("node-lost", **where, says=said or "nothing is known of it there any more")


def remote_facts(launcher: Launcher, run: RemoteRun, found: Result) -> dict[str, object]:
    """Return the receipt's entry on where a report was made; what the cluster knows comes first."""
    facts: dict[str, object] = {**found.machine, "importer": found.importer}
    with suppress(LauncherError):
        facts |= launcher.within(Deadline.after(FACTS)).facts(run)
    return {"launcher": run.launcher, "where": run.where, "run": run.id, **facts}


def end(launcher: Launcher, run: RemoteRun, hurry: float = math.inf) -> None:
    """Cancel a run, wait until it has ended, and remove what it left; raises LauncherError.

    ``hurry``  seconds that the wait may take, where that is less than ``SETTLE``.
    """
    settled = Deadline.after(min(SETTLE, hurry))
    launcher = launcher.within(Deadline.after(min(ENDS, max(HURRY, hurry))))
    state = launcher.state(run)
    if isinstance(state, Absent):
        return
    if isinstance(state, Queued | Running):
        launcher.cancel(run)
        while isinstance(launcher.state(run), Queued | Running) and settled.left:
            time.sleep(LOOK)
    launcher.remove(run)


def _asked(
    launcher: Launcher,
    limit: Deadline,
    question: Callable[[Launcher], T],
    check: Callable[[], None],
    patience: float = PATIENCE,
) -> T:
    """Return the answer, asked again while the cluster is unreachable for less than ``patience`` seconds."""
    again, pause = limit.sooner(patience), 1.0
    while True:
        try:
            return question(launcher.within(limit))
        except LauncherError as error:
            if error.kind != "cluster-unreachable" or again.left <= pause:
                raise
        _pause(pause, check)
        pause = min(30.0, pause * 2)


def _pause(seconds: float, check: Callable[[], None]) -> None:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        time.sleep(min(LOOK, left))
        check()


def _tail(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith(bundle.MARK)]
    return " ".join(" / ".join(lines[-3:]).split())[-TAIL:]


class Entry(TypedDict):
    """A known run: when it was first submitted, and whether its report is in the receipt."""

    run: str
    where: str
    name: str
    since: float
    recorded: NotRequired[bool]


@dataclass(slots=True)
class RunRecord:
    """The file of one question; ``entry`` is ``None`` where no run of it is known."""

    path: Path
    name: str
    target: Target
    entry: Entry | None

    @property
    def run(self) -> str:
        """Return the id of the run, ``""`` where there is none."""
        return "" if self.entry is None else self.entry["run"]

    def begin(self) -> Entry:
        """Return the entry of the run to follow; a new one is on the disk before this returns."""
        if self.entry is None:
            stem = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")[:20] or "run"
            ident = f"importer-{stem}-{secrets.token_hex(6)}"
            self._write({"run": ident, "where": self.target.text, "name": self.name, "since": time.time()})
        assert self.entry is not None  # noqa: S101 - written above
        return self.entry

    def recorded(self) -> None:
        """Note that the report of the run is in the receipt: nothing of it is done again."""
        if self.entry is not None:
            self._write({**self.entry, "recorded": True})

    def forget(self) -> None:
        """Delete the file: the run is over, and nothing of it is left at the far end."""
        self.path.unlink(missing_ok=True)
        self.entry = None

    def _write(self, entry: Entry) -> None:
        part = self.path.with_suffix(".part")
        try:
            with part.open("w", encoding="utf-8") as file:
                json.dump(entry, file)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.path)
        except OSError as error:
            raise DocumentError("cannot-write", path=self.path, problem=error.strerror or error) from None
        self.entry = entry


@contextmanager
def record_of(stored: StoredDocument, target: Target, question: object) -> Iterator[RunRecord]:
    """Yield the record of a document's run at a target; one process at a time holds it.

    ``question``  what else decides the result, as JSON. Raises LauncherError("followed-elsewhere").
    """
    place = [target.text, dict(target.options)]
    told = json.dumps([str(stored.path.absolute()), stored.digest, place, question], sort_keys=True)
    path = config.home() / "runs" / f"{hashlib.sha256(told.encode()).hexdigest()[:24]}.json"
    make_folder(path.parent)
    record = RunRecord(path, stored.name, target, _read(path))
    descriptor = _locked(path.with_suffix(".lock"))
    if descriptor is None:
        raise LauncherError("followed-elsewhere", name=stored.name, where=target.text, run=record.run)
    try:
        record.entry = _read(path)
        yield record
        if record.entry is None:
            with suppress(OSError):
                path.with_suffix(".lock").unlink()
    finally:
        os.close(descriptor)


def _locked(path: Path) -> int | None:
    """Return a descriptor that holds the lock of a file; ``None`` where another process holds it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:  # else its holder has deleted it meanwhile
                return descriptor
        except OSError:
            os.close(descriptor)
            return None
        os.close(descriptor)


def _read(path: Path) -> Entry | None:
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    known = isinstance(entry, dict) and isinstance(entry.get("run"), str)
    return cast("Entry", entry) if known else None
