"""Two validations beside each other: each probe that gives another outcome, or fails of another cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from importer.errors import DocumentError
from importer.frozen import frozen
from importer.reports.report_model import ABILITIES, ProbeOutcome, ReportModel, Run
from importer.validation.outcome import wilson

SCHEMA = 1
Way = Literal["worse", "better", "other", "new", "gone"]
RANK = {"pass": 0, "not-applicable": 0, "not-shown": 1, "inconclusive": 2, "fail": 3}  # how bad


@frozen
class OutcomeChange:
    """A probe that differs; ``None`` is the outcome of a run without it.

    ``way``  worse and better by outcome; other where both weigh the same.
    """

    probe: str
    way: Way
    before: ProbeOutcome | None
    after: ProbeOutcome | None

    def to_json(self) -> dict[str, object]:
        """Return the row of ``comparison.schema.json``."""
        before, after = self.before, self.after
        return {
            "probe": self.probe,
            "way": self.way,
            "before": before and before.outcome,
            "after": after and after.outcome,
            "reason_before": before.reason if before else "",
            "reason_after": after.reason if after else "",
        }


@frozen
class AbilityChange:
    """An ability that both runs show: answers that did what was asked, and all of them.

    ``way``  worse or better where the 95 % intervals do not meet, else alike.
    """

    ability: str
    way: Literal["worse", "better", "alike"]
    before: tuple[int, int]
    after: tuple[int, int]

    def to_json(self) -> dict[str, object]:
        """Return the row of ``comparison.schema.json``."""
        return {"ability": self.ability, "way": self.way, "before": [*self.before], "after": [*self.after]}


@frozen
class RunComparison:
    """Two validations, each with the name of its document; ``alike`` counts probes with the same outcome."""

    before: tuple[str, Run]
    after: tuple[str, Run]
    changes: tuple[OutcomeChange, ...]
    abilities: tuple[AbilityChange, ...]
    alike: int

    @property
    def worse(self) -> int:
        """Return how many probes and abilities got worse; a new one does not count."""
        ways = [*(one.way for one in self.changes), *(one.way for one in self.abilities)]
        return ways.count("worse")

    def to_json(self) -> dict[str, object]:
        """Return the data in the form of ``comparison.schema.json``."""
        return {
            "schema": SCHEMA,
            "before": _head(*self.before),
            "after": _head(*self.after),
            "worse": self.worse,
            "alike": self.alike,
            "outcomes": [one.to_json() for one in self.changes],
            "abilities": [one.to_json() for one in self.abilities],
        }


def compare(one: ReportModel, other: ReportModel) -> RunComparison:
    """Compare the newest whole runs of two documents, else their parts.

    Raises DocumentError("never-validated").
    """
    before, after = _newest(one), _newest(other)
    changes = tuple(_changes(before.by_probe, after.by_probe))
    both = len(before.by_probe.keys() & after.by_probe.keys())
    moved = sum(change.way not in ("new", "gone") for change in changes)
    abilities = tuple(_abilities(before.abilities, after.abilities))
    return RunComparison((one.name, before), (other.name, after), changes, abilities, both - moved)


def _newest(model: ReportModel) -> Run:
    if not model.runs:
        raise DocumentError("never-validated", name=model.name)
    return (*model.whole, *model.runs)[0]


def _head(name: str, run: Run) -> dict[str, object]:
    keys = ("digest", "engine", "version", "started", "state", "passed")
    return {"name": name} | {key: getattr(run, key) for key in keys}


def _changes(old: dict[str, ProbeOutcome], new: dict[str, ProbeOutcome]) -> Iterator[OutcomeChange]:
    for probe in dict.fromkeys([*old, *new]):
        before, after = old.get(probe), new.get(probe)
        if (way := _way(before, after)) is not None:
            yield OutcomeChange(probe, way, before, after)


def _abilities(
    old: Mapping[str, tuple[int, int]], new: Mapping[str, tuple[int, int]]
) -> Iterator[AbilityChange]:
    for name in (name for name in ABILITIES if name in old and name in new):
        least, most = zip(
            *((wilson(*figures) or (0.0, 1.0)) for figures in (old[name], new[name])), strict=True
        )
        worse, better = most[1] < least[0], most[0] < least[1]
        yield AbilityChange(name, "worse" if worse else "better" if better else "alike", old[name], new[name])


def _way(before: ProbeOutcome | None, after: ProbeOutcome | None) -> Way | None:
    """Return how a probe changed; ``None`` for no change.

    A pass has another reason each time, by sampled answers and seconds: that is no change.
    """
    if before is None or after is None:
        return "new" if before is None else "gone"
    worse = RANK.get(after.outcome, 2) - RANK.get(before.outcome, 2)
    if worse:
        return "worse" if worse > 0 else "better"
    if before.outcome == after.outcome and (after.passed or _alike(before, after)):
        return None
    return "other"


def _alike(one: ProbeOutcome, other: ProbeOutcome) -> bool:
    """Return whether two failures are the same."""
    return (one.attribution, one.cause, one.remedy) == (other.attribution, other.cause, other.remedy)
