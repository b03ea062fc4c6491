"""What a probe is, and which probes a run takes within which limits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from importer.frozen import frozen
from importer.progress import Progress, silent
from importer.reasons import Reason
from importer.validation.client import TIME_LIMIT, TOTAL_LIMIT
from importer.validation.context import Context
from importer.validation.expectations import Expectations
from importer.validation.outcome import OF_WEIGHTS, Outcome, Stage

Needs = Callable[[Expectations], Reason | None]
Run = Callable[[Context], Outcome]


class Rests(StrEnum):
    """What a verdict rests on: on no request, on how a request is read, or on answers."""

    NOTHING = "nothing"
    REQUESTS = "requests"
    ANSWERS = "answers"


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """A probe of a running engine.

    ``lesson``    one line on the failure behind the probe
    ``needs``     why the probe does not apply to what a document promises, or ``None``
    ``run``       sends the requests and judges the answers; may raise ExchangeError, which is an outcome
    ``tasks``     the kinds of pooling and transcribing models that the probe is for
    ``alone``     it follows the others, with nothing beside it
    ``observes``  the stage that it compares with the one before; ``None`` for a judge of answers
    ``rests_on``  what its verdict rests on
    ``ability``   what of the model it shows; what a model cannot or does not do is no fault of a document
    """

    name: str
    lesson: str
    needs: Needs
    run: Run
    tasks: Collection[str] = ()
    alone: bool = False
    ability: str = ""
    observes: Stage | None = None
    rests_on: Rests = Rests.ANSWERS

    @property
    def of_model(self) -> bool:
        """Return whether it may blame the model; one of the contract compares the server with itself."""
        return bool(self.ability) or self.name in OF_WEIGHTS


def probe(
    name: str,
    lesson: str,
    *,
    needs: Needs,
    tasks: Collection[str] = (),
    alone: bool = False,
    ability: str = "",
    observes: Stage | None = None,
    rests_on: Rests = Rests.ANSWERS,
) -> Callable[[Run], Probe]:
    """Make a probe of the function that runs it."""
    return lambda run: Probe(name, lesson, needs, run, tasks, alone, ability, observes, rests_on)


@frozen
class ProbeOptions:
    """The probes of a run and its limits.

    ``probes``       only these, and the report is partial; all where it is ``None``.
    ``progress``     is called with each step, from several threads.
    ``time_limit``   seconds for one exchange, ``total_limit`` for all of them.
    ``thorough``     whether abilities are asked until their intervals are narrow.
    """

    probes: Sequence[Probe] | None = None
    progress: Progress = silent
    time_limit: float = TIME_LIMIT
    total_limit: float = TOTAL_LIMIT
    thorough: bool = False

    @classmethod
    def of(
        cls,
        progress: Progress,
        probes: Sequence[Probe] | None = None,
        *,
        thorough: bool = False,
        seconds: float | None = None,
    ) -> Self:
        """Make the options of a run; ``seconds`` for all exchanges, ``None`` for the usual limit."""
        return cls(probes, progress, total_limit=seconds or TOTAL_LIMIT, thorough=thorough)


ALL_PROBES = ProbeOptions()
