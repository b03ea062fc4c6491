"""The engine that a run asks: where it serves, how it ends, and its starts without single settings.

The check of the end: all processes of the engine have exited, its port is free, its memory released.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from importer.engines.deaths import CONFIGURATION, MODEL
from importer.engines.start_trials import Setup
from importer.frozen import frozen
from importer.reasons import Reason
from importer.validation.outcome import (
    UNEXPLAINED,
    Fail,
    NotShown,
    Outcome,
    ProbeRow,
    Stage,
    differs,
    holding,
)
from importer.validation.remedy import Remedy

if TYPE_CHECKING:
    from importer.engines.process import EngineServer, StopReport


Starts = Callable[[Collection[Setup], float], AbstractContextManager["EngineServer"]]
POSITIONS = "rope"  # what settings of positions are called: wrong ones let a model answer, and call nothing


@frozen
class Controls:
    """What a run may be tried again without.

    ``start``    a start of the same engine without settings, within some seconds; raises ImporterError.
    ``given``    settings of the document and of the machine, each group tried before the next.
    ``scales``   settings of ``config.json``: they explain failures of the model.
    ``seconds``  what a start takes.
    ``stretched``  the scaling of positions that was added to the model for long texts.
    """

    start: Starts
    given: Sequence[Sequence[Setup]]
    scales: Sequence[Setup]
    seconds: float
    stretched: Setup | None = None

    def groups(self, row: ProbeRow) -> Sequence[Sequence[Setup]]:
        """Return the settings that may explain a failure."""
        if isinstance(row.outcome, NotShown):
            return [[one] for one in self.scales if one.name.startswith(POSITIONS)]
        of_model = row.outcome.attribution in (MODEL, CONFIGURATION, UNEXPLAINED)
        scales = [[one] for one in self.scales] if of_model else []
        return [group for group in (*scales, *self.given) if group]


STOPS_CLEANLY = "stops-cleanly"
STOP_LESSON = "Engines leave workers behind that hold the memory and the port; the next start dies of it."


def judge_stop(report: StopReport) -> Outcome:
    """Judge the engine's end; the runner calls it after every other probe."""
    if not report.group_ended:
        return _left("processes of the engine that are still there", Stage.WHOLE)
    if not report.port_free:
        return _left("the port that is still taken", Stage.MACHINE)
    if report.killed:
        return differs("the end of the engine", f"killed after {report.seconds:.1f} s", "once it is asked")
    if report.left:
        return _left(f"{report.left:,} bytes in shared memory", Stage.WHOLE)
    back = f", {report.held / 2**20:,.0f} MiB back" if report.held else ""
    return holding(f"gone after {report.seconds:.1f} s, port free{back}")


def _left(what: str, stage: Stage) -> Fail:
    return differs("what is left of the engine", what, None, stage, Reason(Remedy.END_IT, left=what))
