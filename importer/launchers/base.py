"""What a launcher does, what it is given, and the states of what runs at the far end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Protocol

from importer.deadline import Deadline
from importer.frozen import frozen
from importer.launchers.target import Target
from importer.reasons import ReasonKind

FAR_END = ("-P", "-m", "importer", "run-task")  # what a Python at the far end runs, and then the task's file


@frozen
class Resources:
    """What the far end reserves: processors, cards, bytes of memory; ``None`` leaves it to the cluster."""

    cpus: int = 1
    gpus: int = 0
    memory: int | None = None

    def __str__(self) -> str:
        """Return what a run waits for."""
        parts = [f"{self.cpus} CPU" + "s" * (self.cpus != 1)]
        parts += [f"{self.gpus} GPU" + "s" * (self.gpus != 1)] if self.gpus else []
        parts += [f"{self.memory / 2**30:.1f} GiB"] if self.memory else []
        return ", ".join(parts)


@frozen
class Secret:
    """A secret that lies at the far end under this name: its value never passes through here."""

    name: str
    key: str


@frozen
class RemoteTask:
    """A validation for the far end. Everything that is sent may be read there, so it holds no secret.

    ``id``       of the run, ``[a-z0-9-]``, at most 50 characters: the same for the same question, so that a
                 submission can be repeated. ``bundle``  the input of ``importer run-task``, JSON in UTF-8.
    ``wheel``    this importer's own wheel, where the target asks for it (``importer=sent``).
    ``secrets``  the far end's environment variables, each by reference. ``seconds``  for the run itself.
    """

    id: str
    bundle: bytes
    digest: str
    engine: str
    resources: Resources = Resources()
    wheel: Path | None = None
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    seconds: int = 6 * 3600


@frozen
class RemoteRun:
    """A run at the far end: its id there, under which launcher, and where."""

    id: str
    launcher: str
    where: str

    @classmethod
    def of(cls, ident: str, target: Target) -> RemoteRun:
        """Return the run with this id at a target; it need not have been submitted."""
        return cls(ident, target.scheme, target.text)


class FailureKind(ReasonKind):
    """Why a run failed at the far end without a result of its own."""

    ENVIRONMENT = "environment", "since its environment could not be made ready"
    COMMAND = "command", "since the importer there ended without a result"
    MEMORY = "memory", "since it took more memory than it had"
    TIME = "time", "since it took more time than it had"
    UNSCHEDULABLE = "unschedulable", "since the cluster has no place for it"
    OTHER = "other", "for a reason of the cluster"


@frozen
class Absent:
    """Nothing with this id is there: it was never submitted, or it was removed."""


@frozen
class Queued:
    """It waits; ``waits_for`` is what for, in the cluster's own words."""

    waits_for: str = ""


@frozen
class Running:
    """It runs; ``node`` is where, if that is known."""

    node: str = ""


@frozen
class Succeeded:
    """It has ended, and its result can be fetched."""


@frozen
class Failed:
    """It has ended without a result; ``says`` is the cluster's own text."""

    kind: FailureKind
    says: str = ""


@frozen
class Lost:
    """Its machine is gone, and it with it."""

    says: str = ""


@frozen
class Cancelled:
    """It was cancelled."""


RemoteState = Absent | Queued | Running | Succeeded | Failed | Lost | Cancelled


class Launcher(Protocol):
    """A way to run tasks elsewhere. Every method may be repeated, also by another process after a kill.

    All raise LauncherError: "cluster-unreachable" where nobody answers (it is asked again), "cluster-refused"
    for a refusal, "cluster-answer" for an answer that is none, "launcher-missing" where a program is missing
    here.
    """

    def within(self, deadline: Deadline) -> Launcher:
        """Return the same launcher, all of whose answers have come by a deadline or not at all."""

    def submit(self, task: RemoteTask) -> RemoteRun:
        """Submit a task once: a run with its id that is there already is returned as it is."""

    def state(self, run: RemoteRun) -> RemoteState:
        """Return the state of a run; ``Absent`` for an id that is not there."""

    def logs(self, run: RemoteRun) -> str:
        """Return its output so far, or the last part of it; "" where there is none."""

    def cancel(self, run: RemoteRun) -> None:
        """End a run with all its processes; one that has ended or is absent is no error."""

    def fetch(self, run: RemoteRun) -> str:
        """Return the standard output of ``run-task``, with the lines of its result (``result.read``)."""

    def facts(self, run: RemoteRun) -> Mapping[str, str]:
        """Return what the cluster knows of where it ran: ``node``, ``image`` with its digest; or nothing."""

    def remove(self, run: RemoteRun) -> None:
        """Delete what a run that has ended left at the far end; an absent one is no error."""
