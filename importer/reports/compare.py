"""The comparison of two validations: outcomes, reasons, engine, decisions, times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Literal

from importer.document.document_keys import same
from importer.errors import DocumentError
from importer.frozen import frozen
from importer.reports.report_model import ProbeOutcome, ReportModel, Run

SCHEMA = 1
Way = Literal["worse", "better", "other", "new", "gone"]
RANK = {"pass": 0, "not-applicable": 0, "not-shown": 1, "inconclusive": 2, "fail": 3}  # how bad


@frozen
class OutcomeChange:
    """A probe with another outcome, attribution or, where it does not pass, cause.

    ``way``  worse and better by outcome; other where both weigh the same; new, gone: only one run has it.
    """

    probe: str
    way: Way
    before: str | None
    after: str | None
    reason_before: str
    reason_after: str


@frozen
class RunComparison:
    """Two validations side by side; ``decisions`` and ``time`` map a name to its two values, None for none.

    ``alike`` is the number of probes with the same outcome.
    """

    before: Mapping[str, object]
    after: Mapping[str, object]
    outcomes: tuple[OutcomeChange, ...]
    decisions: Mapping[str, tuple[Mapping[str, object] | None, Mapping[str, object] | None]]
    time: Mapping[str, tuple[float | None, float | None]]
    alike: int

    @property
    def worse(self) -> int:
        """Return how many probes got worse; a new one does not count."""
        return sum(moved.way == "worse" for moved in self.outcomes)

    def to_json(self) -> dict[str, object]:
        """Return the data in the form of ``comparison.schema.json``."""
        return {
            "schema": SCHEMA,
            "before": dict(self.before),
            "after": dict(self.after),
            "worse": self.worse,
            "alike": self.alike,
            "outcomes": [asdict(moved) for moved in self.outcomes],
            "decisions": {key: {"before": a, "after": b} for key, (a, b) in self.decisions.items()},
            "seconds": {part: {"before": a, "after": b} for part, (a, b) in self.time.items()},
        }


def compare(one: ReportModel, other: ReportModel) -> RunComparison:
    """Compare the newest whole runs of two sheets; raises DocumentError("never-validated")."""
    before, after = _whole(one), _whole(other)
    moved = tuple(_moved(before, after))
    both = sum(outcome.probe in after.by_probe for outcome in before.outcomes)
    parts = dict.fromkeys([*before.seconds, *after.seconds])
    return RunComparison(
        _head(one, before),
        _head(other, after),
        moved,
        dict(_decisions(one, other)),
        {part: (before.seconds.get(part), after.seconds.get(part)) for part in parts},
        both - sum(m.way not in ("new", "gone") for m in moved),
    )


def _whole(sheet: ReportModel) -> Run:
    if not sheet.whole:
        raise DocumentError("never-validated", name=sheet.name)
    return sheet.whole[0]


def _decisions(
    one: ReportModel, other: ReportModel
) -> Iterator[tuple[str, tuple[dict[str, object] | None, dict[str, object] | None]]]:
    for key in dict.fromkeys([*one.decisions, *other.decisions]):
        before, after = (
            None
            if key not in side.decisions
            else {f: side.decisions[key].get(f) for f in ("value", "status")}
            for side in (one, other)
        )
        if not same(before, after):
            yield key, (before, after)


def _head(sheet: ReportModel, run: Run) -> dict[str, object]:
    return {
        "name": sheet.name,
        "digest": run.digest,
        "engine": run.engine,
        "version": run.version,
        "started": run.started,
        "state": run.state,
        "passed": run.passed,
    }


def _moved(before: Run, after: Run) -> Iterator[OutcomeChange]:
    old, new = before.by_probe, after.by_probe
    for probe in dict.fromkeys([*old, *new]):
        way = _way(old.get(probe), new.get(probe))
        if way is not None:
            a, b = old.get(probe), new.get(probe)
            yield OutcomeChange(
                probe,
                way,
                None if a is None else a.outcome,
                None if b is None else b.outcome,
                "" if a is None else a.reason,
                "" if b is None else b.reason,
            )


def _way(before: ProbeOutcome | None, after: ProbeOutcome | None) -> Way | None:
    """Return how a probe changed; ``None`` for no change.

    A pass has another reason each time, by sampled answers and seconds: that is no change.
    """
    if before is None or after is None:
        return "new" if before is None else "gone"
    worse = RANK.get(after.outcome, 2) - RANK.get(before.outcome, 2)
    if worse:
        return "worse" if worse > 0 else "better"
    if before.outcome != after.outcome:
        return "other"
    return None if after.passed or _alike(before, after) else "other"


def _alike(one: ProbeOutcome, other: ProbeOutcome) -> bool:
    """Return whether two failures are the same."""
    return (one.attribution, one.cause, one.remedy) == (other.attribution, other.cause, other.remedy)
