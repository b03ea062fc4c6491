"""What a probe is, and which probes a run takes within which limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from importer.progress import Progress, silent
from importer.reasons import Reason
from importer.validation.client import TIME_LIMIT, TOTAL_LIMIT
from importer.validation.context import Context
from importer.validation.expectations import Expectations
from importer.validation.outcome import Outcome


@runtime_checkable
class Probe(Protocol):
    """A probe module. ``LESSON`` is one line on the failure behind the probe.

    A probe for models that pool or transcribe names their kinds in ``TASKS``; without it none applies.
    ``FEATURE`` is one of engines (``engines.base.OFFERS``): without it, a failure is a known limit.
    ``CONCERNS`` has sampling values, one of which the document must have for that.
    """

    NAME: str
    LESSON: str

    def needs(self, promise: Expectations, /) -> Reason | None:
        """Return why the probe does not apply, or ``None``."""

    def run(self, ctx: Context, /) -> Outcome:
        """Send the requests and judge the answers; may raise ExchangeError, an outcome for the runner."""


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """The probes of a run and its limits.

    ``probes``       only these, and the report is partial; all where it is ``None``.
    ``progress``     is called with each step, from several threads.
    ``time_limit``   seconds for one exchange, ``total_limit`` for all of them.
    ``score``        answers to each question of the score; 0 for none.
    """

    probes: Sequence[Probe] | None = None
    progress: Progress = silent
    time_limit: float = TIME_LIMIT
    total_limit: float = TOTAL_LIMIT
    score: int = 0


ALL_PROBES = ProbeOptions()
