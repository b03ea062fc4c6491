"""The engine ends when told to: every process of it gone, its port free, its memory given back."""

from __future__ import annotations

from typing import Protocol

from importer.validation.outcome import Fail, Outcome, Pass

NAME = "stops-cleanly"
LESSON = "Engines leave workers behind that hold the memory and the port; the next start dies of it."


class StopReport(Protocol):
    """What stopping showed: ``seconds`` it took, ``killed`` if it had to be forced.

    It may say how many bytes its processes ``held`` before, and how many are ``left`` in shared memory.
    """

    @property
    def group_gone(self) -> bool:
        """No process of its group is left."""

    @property
    def port_free(self) -> bool:
        """The port can be bound again."""

    @property
    def killed(self) -> bool:
        """It did not end when asked."""

    @property
    def seconds(self) -> float:
        """From the request to the end."""


def judge(report: StopReport) -> Outcome:
    """Judge the engine's end; run by the runner, after every other probe."""
    if not report.group_gone:
        return Fail("processes of the engine are still there", "engine", "End them before the next start.")
    if not report.port_free:
        return Fail("the port is still taken", "environment", "See which process listens there.")
    if report.killed:
        return Fail(f"it did not end when asked and was killed after {report.seconds:.1f} s", "engine")
    held, left = getattr(report, "held", None), getattr(report, "left", 0)
    if left:
        mend = "Remove what it left in /dev/shm."
        return Fail(f"{left:,} bytes are left in shared memory", "engine", mend)
    back = f", {held / 2**20:,.0f} MiB back" if held else ""
    return Pass(f"gone after {report.seconds:.1f} s, port free{back}")
