"""The accuracy of tables on a folder of truth: parsers against known answers, sampling against the vendors'.

``compare`` measures the tables before and after a change, family by family, and finds where it got worse. The
rows are those of ``gen_defaults.truth``; a model without files is judged by its name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gen_defaults import sampling as vendor
from gen_defaults.checks.finding import CheckFinding, Proved
from gen_defaults.truth import ROWS, CachedSession, Files, Prediction, Score, Truth, read
from gen_defaults.truth import measure as judge
from importer.signals.family import match_names
from importer.signals.tables import SamplingTable, Table, parse_parsers, parse_sampling

VERDICTS = ("right", "different", "missing")
STEP = "mend the row, or accept it with --accept-worse"


@dataclass(frozen=True, slots=True)
class ScoredTables:
    """Both tables, parsed."""

    parsers: Table
    sampling: SamplingTable

    @classmethod
    def of(cls, parsers: Mapping[str, Any], sampling: Mapping[str, Any]) -> ScoredTables:
        """Return the tables of the files' data."""
        return cls(parse_parsers(parsers), parse_sampling(sampling))


@dataclass(frozen=True, slots=True)
class Measured:
    """``sampling`` is family to how many of the vendors' values are right, different and missing."""

    parsers: Score
    sampling: Mapping[str, Counter[str]]


@dataclass(frozen=True, slots=True)
class AccuracyChange:
    """The same models before and after."""

    before: Measured
    after: Measured
    proved: tuple[Proved, ...] = field(default=(), repr=False)

    @property
    def worse(self) -> list[CheckFinding]:
        """Return a finding for each family that lost an answer."""
        findings = []
        for family in sorted(self.after.parsers.families):
            lost = [f"{what} {was} became {now}" for what, was, now, bad in self._changes(family) if bad]
            if lost:
                findings.append(CheckFinding("accuracy", family, f"it got worse: {', '.join(lost)}", STEP))
        return findings

    def lines(self) -> Iterator[str]:
        """Yield every family that changed, then the totals."""
        for family in sorted(self.after.parsers.families):
            changes = [f"{what} {was} → {now}" for what, was, now, _ in self._changes(family)]
            if changes:
                yield f"{family}: {', '.join(changes)}"
        yield f"parsers: {_both(self.before.parsers)} → {_both(self.after.parsers)} models right"
        yield f"sampling: {total(self.before.sampling)} → {total(self.after.sampling)} of the vendors' values"

    def _changes(self, family: str) -> Iterator[tuple[str, str, str, bool]]:
        """Yield what differs: the measure, before, after, and whether that is worse."""
        (was, models), (now, _) = (m.parsers.families[family] for m in (self.before, self.after))
        if was != now:
            yield "parsers", f"{was}/{models}", f"{now}/{models}", now < was
        old, new = (m.sampling.get(family, Counter()) for m in (self.before, self.after))
        if old != new:
            bad = new["right"] < old["right"] or new["different"] > old["different"]
            yield "sampling", _counts(old), _counts(new), bad


def compare(
    folder: Path, before: ScoredTables, after: ScoredTables, *, proves: bool = False, truth: Path = ROWS
) -> AccuracyChange:
    """Return both measured on the same models, whose files are in ``folder``.

    ``proves`` runs the parsers of the installed vLLM. Raises OSError and ValueError where the truth cannot be
    read.
    """
    truths = read(truth)
    with CachedSession(proves=proves) as bench:
        files = Files(folder, bench)
        first = measure(truths, files, before)
        same = before.parsers == after.parsers
        then = (
            Measured(first.parsers, sampling(truths, files, after)) if same else measure(truths, files, after)
        )
        return AccuracyChange(first, then, tuple(Proved(m, p) for m, p in sorted(files.proofs.items())))


def measure(truths: Sequence[Truth], files: Files, standing: ScoredTables) -> Measured:
    """Return parsers by files where a model has some, else by name; sampling by the vendors' files."""
    by_files = files.predictor(standing.parsers)

    def predict(model_id: str) -> Prediction:
        if files.has(model_id):
            return by_files(model_id)
        return match_names([model_id], standing.parsers)[0]

    return Measured(judge(truths, predict), sampling(truths, files, standing))


def sampling(truths: Sequence[Truth], files: Files, standing: ScoredTables) -> dict[str, Counter[str]]:
    """Return the table's verdicts on the values of the vendors' ``generation_config.json``."""
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    for truth in truths:
        row = vendor.row_for(truth.model_id, standing.parsers, standing.sampling)
        for key, value in vendor.generation_values(files.vendor(truth.model_id)).items():
            if row is None or key not in row.values:
                verdicts[truth.family]["missing"] += 1
            else:
                verdicts[truth.family]["right" if vendor.agrees(row, key, value) else "different"] += 1
    return dict(verdicts)


def _counts(counts: Counter[str]) -> str:
    return " ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)


def _both(score: Score) -> str:
    return "{}/{}".format(*score.both)


def total(by_family: Mapping[str, Counter[str]]) -> str:
    """Return the sum of all families, as text."""
    return _counts(sum(by_family.values(), Counter()))
