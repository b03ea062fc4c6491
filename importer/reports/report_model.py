"""The content of every report, read once from a document and its receipt, with any missing or broken
fields.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Protocol

from importer.document.document_keys import OPTIONS
from importer.document.effective import decisions
from importer.document.records import DecisionRecord, Fact, OutcomeRecord, Report, ReviewRecord
from importer.document.validation_state import validation
from importer.frozen import frozen

if TYPE_CHECKING:
    from importer.document.store import StoredDocument


OUTCOMES = ("pass", "fail", "inconclusive", "not-shown", "not-applicable")
PASSED = ("pass", "not-shown", "not-applicable")
WORDS = {"inconclusive": "no verdict", "not-shown": "not shown"}  # for people
ABILITIES = ("tools", "required", "restraint", "results", "structured", "thoughts", "silence")


@frozen
class ProbeOutcome:
    """The outcome of one probe; fields by their names in a receipt, empty where that lacks them.

    ``cause`` and ``remedy`` are for comparisons; ``reason`` and ``remedy_message`` are texts for people.
    """

    probe: str
    outcome: str
    reason: str
    attribution: str | None = None
    remedy_message: str = ""
    trials: int = 0
    agreed: int = 0
    interval: tuple[float, float] | None = None
    seconds: float = 0.0
    lesson: str = ""
    log: str = ""
    exchanges: tuple[Mapping[str, object], ...] = ()
    cause: Mapping[str, Any] | None = None
    remedy: Mapping[str, object] | None = None
    tried: tuple[int, int] | None = None
    ability: str = ""

    @property
    def passed(self) -> bool:
        """Return whether the outcome counts as passed."""
        return self.outcome in PASSED

    @property
    def stages(self) -> tuple[tuple[str, str, str], ...]:
        """Return the facts of its exchange: stage, state (holds, broken, unseen) and text."""
        facts = (self.cause or {}).get("facts") or ()
        return tuple((str(f["stage"]), str(f["state"]), str(f["text"])) for f in facts)

    @property
    def broken(self) -> tuple[str, str] | None:
        """Return the first broken stage of its exchange, and what was seen there."""
        return next(((stage, text) for stage, state, text in self.stages if state == "broken"), None)

    @property
    def told(self) -> str:
        """Return the remedy, with what came of it where it was tried."""
        if not self.remedy_message:
            return ""
        came = "not tried" if self.tried is None else f"tried: {self.tried[0]} of {self.tried[1]}"
        return f"{self.remedy_message} ({came})"


@frozen
class Cause:
    """One cause of what did not pass, or was not shown: the outcome that shows it, and what follows."""

    lead: ProbeOutcome
    following: tuple[str, ...]


@frozen
class Run:
    """A validation, or a part of one.

    ``state``    passed, failed, stale (of other data than the present document), or partial.
    ``partial``  its limits: ``probes``, ``against``.
    ``fit``      predicted and reported memory.
    ``speed``    medians of the streamed answers: ``first_token_seconds``, ``tokens_per_second``.
    ``contract``  holds, broken, or no verdict; ``health`` of the weights: whole, damaged, or no verdict.
    ``abilities`` by name: how often the model did what was asked, and how often it was asked.
    """

    engine: str
    version: str | None
    state: str
    passed: bool
    started: str
    digest: str
    seconds: dict[str, float]
    outcomes: tuple[ProbeOutcome, ...]
    partial: Mapping[str, object] | None = None
    fit: Mapping[str, object] = field(default_factory=dict)
    speed: Mapping[str, object] = field(default_factory=dict)
    contract: str = ""
    health: str = ""
    abilities: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """Return the verdicts on contract, weights and abilities in one line; empty for an older run."""
        if not self.contract:
            return ""
        shown = [f"{name} {_share(self.abilities.get(name))}" for name in ABILITIES]
        return f"contract: {self.contract}; weights: {self.health}; {' · '.join(shown)}"

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Return one cause for each group of outcomes alike: first what failed, last what was not shown."""
        by_probe = self.by_probe
        groups: dict[tuple[object, ...], list[ProbeOutcome]] = {}
        for one in self.outcomes:
            if one.outcome not in ("pass", "not-applicable"):
                groups.setdefault(_group(one, by_probe), []).append(one)
        order = [name for name in OUTCOMES if name != "pass"]
        found = [_cause(group) for group in groups.values()]
        return tuple(sorted(found, key=lambda cause: order.index(cause.lead.outcome)))

    @property
    def label(self) -> str:
        """Return engine and version."""
        return f"{self.engine} {self.version}" if self.version else self.engine

    @property
    def by_probe(self) -> dict[str, ProbeOutcome]:
        """Return the outcomes by the probe's name."""
        return {outcome.probe: outcome for outcome in self.outcomes}

    @property
    def counts(self) -> dict[str, int]:
        """Return how many probes had each outcome."""
        return {name: sum(f.outcome == name for f in self.outcomes) for name in OUTCOMES}


@frozen
class ReportModel:
    """A document with its decisions, its review, and its runs, the newest first."""

    name: str
    model: str | None
    revision: str | None
    digest: str
    review: str
    validation: str
    text: str
    runs: tuple[Run, ...]
    word: ReviewRecord = field(default_factory=ReviewRecord)
    decisions: Mapping[str, DecisionRecord] = field(default_factory=dict)
    evidence: tuple[Fact, ...] = ()
    fit: Mapping[str, object] = field(default_factory=dict)
    importer: str | None = None
    proof: Mapping[str, object] = field(default_factory=dict)

    @property
    def parsers(self) -> dict[str, object]:
        """Return the decided parsers by their keys."""
        return {key: one.get("value") for key, one in self.decisions.items() if key in OPTIONS}

    @property
    def whole(self) -> tuple[Run, ...]:
        """Return the runs of all probes, the newest first."""
        return tuple(run for run in self.runs if run.partial is None)

    @property
    def parts(self) -> tuple[Run, ...]:
        """Return the partial runs, that validate nothing."""
        return tuple(run for run in self.runs if run.partial is not None)

    @property
    def probes(self) -> list[str]:
        """Return every probe of any run, in the order of the newest that has it."""
        return _names(self.runs)

    @property
    def validating(self) -> list[str]:
        """Return the probes of the whole runs."""
        return _names(self.whole)

    @property
    def troubles(self) -> list[tuple[Run, Cause]]:
        """Return the causes of what did not pass or was not shown, of the runs of the present data."""
        return [(run, cause) for run in self.runs if run.state != "stale" for cause in run.causes]

    def results(self, probe: str) -> list[tuple[Run, ProbeOutcome]]:
        """Return the runs that have this probe, with its outcome in each."""
        return [(run, run.by_probe[probe]) for run in self.runs if probe in run.by_probe]

    def lesson(self, probe: str) -> str:
        """Return the lesson of a probe."""
        return next(
            (f.lesson for run in self.runs for f in run.outcomes if f.probe == probe and f.lesson), ""
        )


class Write(Protocol):
    """The function of a format."""

    def __call__(self, sheet: ReportModel, /) -> str:
        """Return the report's text."""


def trials(agreed: int, number: int, interval: tuple[float, float] | None) -> str:
    """Return the share of agreeing trials with its 95 % interval: ``3 of 3, 44–100 %``."""
    if interval is None:
        return ""
    low, high = (f"{100 * end:.0f}" for end in interval)
    return f"{agreed} of {number}, {low}–{high} %"


def duration(seconds: float) -> str:
    """Return seconds as text: ``0.31 s``, ``12.4 s``, ``3 min 5 s``."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    return f"{seconds:.1f} s" if seconds < 120 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def pace(speed: Mapping[str, object]) -> str:
    """Return the speed of the answers as text: ``, first token 0.31 s, 41.0 tokens/s``; may be empty."""
    first, rate = speed.get("first_token_seconds"), speed.get("tokens_per_second")
    texts = ["" if first is None else f", first token {number(first):.2f} s"]
    return "".join([*texts, "" if rate is None else f", {number(rate):.1f} tokens/s"])


def split(seconds: dict[str, float]) -> str:
    """Return the times of parts as text: ``start 1.03 s, probes 2.68 s, stop 0.06 s``."""
    return ", ".join(f"{part} {duration(spent)}" for part, spent in seconds.items())


def value(data: Any) -> str:
    """Return a decision's value in one line."""
    if data is None:
        return "–"
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)


def sheet(stored: StoredDocument, reports: Sequence[Report] | None = None) -> ReportModel:
    """Return the report model of a document with every run of its receipt, or with these ``reports``
    alone.
    """
    receipt = stored.receipt
    if reports is None:
        reports_of_runs = (
            [] if receipt is None else [*receipt.runs, *([receipt.partial] if receipt.partial else [])]
        )
    else:
        reports_of_runs = [{"digest": stored.digest, **report} for report in reports]
    runs = tuple(run(report, stored.digest) for report in reports_of_runs)
    block = stored.data.get("importer")
    revision = block.get("revision") if isinstance(block, Mapping) else None
    shared = (stored.name, stored.model, revision if isinstance(revision, str) else None, stored.digest)
    if receipt is None:
        return ReportModel(*shared, stored.review, "never", stored.text, runs)
    return ReportModel(
        *shared,
        stored.review,
        validation(receipt, stored.data, stored.digest).state,
        stored.text,
        runs,
        receipt.review,
        decisions(stored),
        tuple(receipt.evidence),
        receipt.fit or {},
        receipt.importer,
        receipt.proof or {},
    )


def run(report: Report, digest: str) -> Run:
    """Return the run of one report; ``digest`` is that of the present document."""
    engine = mapping(report.get("engine"))
    passed, partial = report.get("passed") is True, report.get("partial")
    state = "partial" if partial else "passed" if passed else "failed"
    version = engine.get("version")
    return Run(
        str(engine.get("name") or "an engine"),
        None if version is None else str(version),
        state if report.get("digest") == digest else "stale",
        passed,
        str(report.get("started") or ""),
        str(report.get("digest") or ""),
        {str(part): number(spent) for part, spent in mapping(report.get("seconds")).items()},
        tuple(map(_outcome, report["outcomes"])),
        mapping(partial) or None,
        mapping(report.get("fit")),
        mapping(report.get("speed")),
        str(report.get("contract") or ""),
        str(report.get("health") or ""),
        {
            name: (int(number(entry.get("shown"))), int(number(entry.get("asked"))))
            for name, entry in (report.get("abilities") or {}).items()
        },
    )


def _share(ability: tuple[int, int] | None) -> str:
    return "–" if ability is None else f"{ability[0]}/{ability[1]}"


def _group(one: ProbeOutcome, by_probe: Mapping[str, ProbeOutcome]) -> tuple[object, ...]:
    """Return what outcomes of one cause have in common: its probe; else part and remedy, or ability."""
    roots = [name for name in (one.cause or {}).get("follows") or () if name in by_probe]
    root = by_probe[roots[-1]] if roots else one
    if root.outcome == "not-shown":
        return root.outcome, root.ability or root.reason, root.remedy_message
    return ("cause", root.attribution, root.remedy_message or root.probe)


def _cause(group: Sequence[ProbeOutcome]) -> Cause:
    """Return the cause of a group; a remedy counts as tried as often as it was for any of them."""
    lead = min(group, key=lambda one: (OUTCOMES.index(one.outcome), bool((one.cause or {}).get("follows"))))
    tried = [one.tried for one in group if one.tried is not None]
    sums = (sum(right for right, _ in tried), sum(asked for _, asked in tried)) if tried else None
    return Cause(replace(lead, tried=sums), tuple(one.probe for one in group if one is not lead))


def _names(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(outcome.probe for run in runs for outcome in run.outcomes))


def _outcome(entry: OutcomeRecord) -> ProbeOutcome:
    trials = int(number(entry.get("trials")))
    return ProbeOutcome(
        str(entry["probe"]),
        str(entry["outcome"]),
        str(entry["reason"]),
        entry.get("attribution"),
        str(entry.get("remedy_message") or ""),
        trials,
        int(number(entry.get("agreed", trials))),
        _interval(entry.get("interval")),
        number(entry.get("seconds")),
        str(entry.get("lesson") or ""),
        str(entry.get("log") or ""),
        tuple(e for e in entry.get("exchanges") or () if isinstance(e, Mapping)),
        mapping(entry.get("cause")) or None,
        mapping(entry.get("remedy")) or None,
        _pair(entry.get("tried")),
        str(entry.get("ability") or ""),
    )


def _pair(tried: object) -> tuple[int, int] | None:
    if not isinstance(tried, Mapping):
        return None
    return int(number(tried.get("right"))), int(number(tried.get("asked")))


def _interval(bounds: object) -> tuple[float, float] | None:
    if not isinstance(bounds, list | tuple) or len(bounds) != 2:
        return None
    return number(bounds[0]), number(bounds[1])


def mapping(data: object) -> Mapping[str, Any]:
    """Return a mapping; an empty one for anything else."""
    return data if isinstance(data, Mapping) else {}


def number(data: object) -> float:
    """Return a finite number of at least 0; 0 for anything else."""
    if isinstance(data, bool) or not isinstance(data, int | float) or not math.isfinite(data):
        return 0.0
    return max(0.0, float(data))
