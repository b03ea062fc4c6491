"""The engine that a run asks: where it serves, how it ends, and its starts without single settings.

The check of the end: all processes of the engine have exited, its port is free, its memory released.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from importer.engines.deaths import CONFIGURATION, MODEL
from importer.engines.start_trials import Setup
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind
from importer.validation.outcome import UNEXPLAINED, Fail, NotShown, Outcome, Pass, ProbeRow, Stage
from importer.validation.remedy import Remedy


class StopFacts(Protocol):
    """The end of an engine: ``seconds`` until it, ``killed`` if it was forced.

    Optional: ``held``, bytes of its processes before, and ``left``, bytes in shared memory after.
    """

    @property
    def group_ended(self) -> bool:
        """Return whether no process of its group is left."""

    @property
    def port_free(self) -> bool:
        """Return whether the port can be bound again."""

    @property
    def killed(self) -> bool:
        """Return whether it ignored the request to end."""

    @property
    def seconds(self) -> float:
        """Return the seconds from the request to the end."""


class ServedEngine(Protocol):
    """An engine that serves a document's model."""

    @property
    def base_url(self) -> str:
        """Return ``http://127.0.0.1:PORT``."""

    @property
    def model(self) -> str:
        """Return the name that requests use."""

    @property
    def start_seconds(self) -> float:
        """Return the seconds from the start of the process to its first healthy answer."""

    def stop(self) -> StopFacts:
        """Stop the engine and return how it ended."""


class Starts(Protocol):
    """Starts of the engine that serves the document."""

    def __call__(
        self, left_out: Collection[Setup], seconds: float, /
    ) -> AbstractContextManager[ServedEngine]:
        """Return the engine, started without these settings; raises ImporterError where it does not serve
        within ``seconds``.
        """


POSITIONS = "rope"  # what settings of positions are called: wrong ones let a model answer, and call nothing


@frozen
class Controls:
    """What a run may be tried again without.

    ``start``    a start of the same engine without settings.
    ``given``    settings of the document and of the machine, each group tried before the next.
    ``scales``   settings of ``config.json``: they explain failures of the model.
    ``seconds``  what a start takes.
    """

    start: Starts
    given: Sequence[Sequence[Setup]]
    scales: Sequence[Setup]
    seconds: float

    def groups(self, row: ProbeRow) -> Sequence[Sequence[Setup]]:
        """Return the settings that may explain a failure."""
        if isinstance(row.outcome, NotShown):
            return [[one] for one in self.scales if one.name.startswith(POSITIONS)]
        of_model = row.outcome.attribution in (MODEL, CONFIGURATION, UNEXPLAINED)
        scales = [[one] for one in self.scales] if of_model else []
        return [group for group in (*scales, *self.given) if group]


class StopsReason(ReasonKind):
    """The reasons of ``stops-cleanly``."""

    STILL_THERE = "still-there", "processes of the engine are still there"
    PORT_TAKEN = "port-taken", "the port is still taken"
    KILLED = "killed", "it did not end when asked and was killed after {seconds:.1f} s"
    LEFT = "left", "{left:,} bytes are left in shared memory"
    GONE = "gone", "gone after {seconds:.1f} s, port free"
    GIVEN_BACK = "given-back", "gone after {seconds:.1f} s, port free, {mebibytes:,.0f} MiB back"


STOPS_CLEANLY = "stops-cleanly"
STOP_LESSON = "Engines leave workers behind that hold the memory and the port; the next start dies of it."


def judge_stop(report: StopFacts) -> Outcome:
    """Judge the engine's end; the runner calls it after every other probe."""
    if not report.group_ended:
        return Fail(still := Reason(StopsReason.STILL_THERE), Stage.WHOLE, Reason(Remedy.END_IT, left=still))
    if not report.port_free:
        return Fail(taken := Reason(StopsReason.PORT_TAKEN), Stage.MACHINE, Reason(Remedy.END_IT, left=taken))
    if report.killed:
        return Fail(Reason(StopsReason.KILLED, seconds=report.seconds), Stage.WHOLE)
    held, left = getattr(report, "held", None), getattr(report, "left", 0)
    if left:
        return Fail(
            held := Reason(StopsReason.LEFT, left=left), Stage.WHOLE, Reason(Remedy.END_IT, left=held)
        )
    if held:
        return Pass(Reason(StopsReason.GIVEN_BACK, seconds=report.seconds, mebibytes=held / 2**20))
    return Pass(Reason(StopsReason.GONE, seconds=report.seconds))
