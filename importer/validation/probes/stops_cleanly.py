"""The check of the end: all processes of the engine have exited, its port is free, its memory released."""

from __future__ import annotations

from importer.reasons import Reason, ReasonKind
from importer.validation.outcome import Fail, Outcome, Pass
from importer.validation.remedy import Remedy
from importer.validation.served_engine import StopFacts


class StopsReason(ReasonKind):
    """The reasons of ``stops-cleanly``."""

    STILL_THERE = "still-there", "processes of the engine are still there"
    PORT_TAKEN = "port-taken", "the port is still taken"
    KILLED = "killed", "it did not end when asked and was killed after {seconds:.1f} s"
    LEFT = "left", "{left:,} bytes are left in shared memory"
    GONE = "gone", "gone after {seconds:.1f} s, port free"
    GIVEN_BACK = "given-back", "gone after {seconds:.1f} s, port free, {mebibytes:,.0f} MiB back"


NAME = "stops-cleanly"
LESSON = "Engines leave workers behind that hold the memory and the port; the next start dies of it."


def judge(report: StopFacts) -> Outcome:
    """Judge the engine's end; the runner calls it after every other probe."""
    if not report.group_ended:
        return Fail(Reason(StopsReason.STILL_THERE), "engine", Reason(Remedy.END_THEM))
    if not report.port_free:
        return Fail(Reason(StopsReason.PORT_TAKEN), "environment", Reason(Remedy.SEE_PORT))
    if report.killed:
        return Fail(Reason(StopsReason.KILLED, seconds=report.seconds), "engine")
    held, left = getattr(report, "held", None), getattr(report, "left", 0)
    if left:
        remedy = Reason(Remedy.REMOVE_SHARED)
        return Fail(Reason(StopsReason.LEFT, left=left), "engine", remedy)
    if held:
        return Pass(Reason(StopsReason.GIVEN_BACK, seconds=report.seconds, mebibytes=held / 2**20))
    return Pass(Reason(StopsReason.GONE, seconds=report.seconds))
