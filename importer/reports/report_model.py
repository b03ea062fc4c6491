"""What every report tells, read once from a document and its receipt, whatever the receipt holds."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from importer.config_file.validation_status import validation

if TYPE_CHECKING:
    from importer.config_file.receipt import Receipt
    from importer.config_file.store import StoredDocument


def plain(text: str) -> str:
    """Return text with control characters spelled out: a repository's words must not steer a terminal."""
    return "".join(
        c if c in "\n " or c.isprintable() or unicodedata.category(c) == "Zs"
        else c.encode("unicode_escape").decode()
        for c in text
    )  # fmt: skip


def trials(agreed: int, number: int, interval: tuple[float, float] | None) -> str:
    """Return how many said the same, and between what shares that holds at 95 %: ``3 of 3, 44–100 %``."""
    if interval is None:
        return ""
    low, high = (f"{100 * end:.0f}" for end in interval)
    return f"{agreed} of {number}, {low}–{high} %"


def duration(seconds: float) -> str:
    """``0.31 s``, ``12.4 s``, ``3 min 5 s``."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    return f"{seconds:.1f} s" if seconds < 120 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def moment(text: str) -> str:
    """Return a time in UTC as receipts write it, for a person: ``2026-11-21 12:36 UTC``."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?\+00:00", text)
    return f"{found[1]} {found[2]} UTC" if found else text


def split(seconds: dict[str, float]) -> str:
    """``start 1.03 s, probes 2.68 s, stop 0.06 s``."""
    return ", ".join(f"{part} {duration(spent)}" for part, spent in seconds.items())


def value(data: Any) -> str:
    """Return a decision's value in one line."""
    if data is None:
        return "–"
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)


Told = Mapping[str, Any]
OUTCOMES = ("pass", "fail", "inconclusive", "not-applicable")
PASSED = ("pass", "not-applicable")


@dataclass(frozen=True, slots=True)
class Found:
    """One probe's outcome; fields as a receipt names them, empty where an older one lacks them.

    ``cause`` and ``remedy`` are what code compares; ``reason`` and ``remedy_message`` are what people read.
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
    exchanges: tuple[Told, ...] = ()
    cause: Told | None = None
    remedy: Told | None = None

    @property
    def passed(self) -> bool:
        """Return whether it counts as passed."""
        return self.outcome in PASSED


@dataclass(frozen=True, slots=True)
class Run:
    """A validation, or a part of one.

    ``state``    passed, failed, stale (of other data than the document has now), or partial.
    ``partial``  what it was limited to: ``probes``, ``against``.
    ``fit``      what was predicted and what the engine reported.
    """

    engine: str
    version: str | None
    state: str
    passed: bool
    started: str
    digest: str
    seconds: dict[str, float]
    found: tuple[Found, ...]
    partial: Told | None = None
    fit: Told = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Engine and version."""
        return f"{self.engine} {self.version}" if self.version else self.engine

    @property
    def by_probe(self) -> dict[str, Found]:
        """Return the outcomes by the probe's name."""
        return {found.probe: found for found in self.found}

    @property
    def counts(self) -> dict[str, int]:
        """Return how many probes had each outcome."""
        return {name: sum(f.outcome == name for f in self.found) for name in OUTCOMES}


@dataclass(frozen=True, slots=True)
class ReportModel:
    """A document, what was decided for it, what people said of it, and its runs, the newest first."""

    name: str
    model: str | None
    revision: str | None
    digest: str
    review: str
    validation: str
    text: str
    runs: tuple[Run, ...]
    word: Told = field(default_factory=dict)
    decisions: Told = field(default_factory=dict)
    evidence: tuple[Told, ...] = ()
    fit: Told = field(default_factory=dict)
    importer: str | None = None

    @property
    def whole(self) -> tuple[Run, ...]:
        """Return the runs of all probes, the newest first."""
        return tuple(run for run in self.runs if run.partial is None)

    @property
    def parts(self) -> tuple[Run, ...]:
        """Return the others, which validate nothing."""
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
    def troubles(self) -> list[tuple[Run, Found]]:
        """Return what did not pass in the runs of the document's present data."""
        return [(run, f) for run in self.runs if run.state != "stale" for f in run.found if not f.passed]

    def results(self, probe: str) -> list[tuple[Run, Found]]:
        """Return the runs that have this probe, with its outcome in each."""
        return [(run, run.by_probe[probe]) for run in self.runs if probe in run.by_probe]

    def lesson(self, probe: str) -> str:
        """Return who was bitten by what."""
        return next((f.lesson for run in self.runs for f in run.found if f.probe == probe and f.lesson), "")


class Write(Protocol):
    """What a format's module has."""

    def __call__(self, sheet: ReportModel, /) -> str:
        """Return the report's text."""


def sheet(stored: StoredDocument, reports: Sequence[Told] | None = None) -> ReportModel:
    """Return a document's sheet with every run of its receipt, or with these ``reports`` of runs alone."""
    receipt = stored.receipt
    if reports is None:
        kept = [] if receipt is None else [*receipt.runs, *([receipt.partial] if receipt.partial else [])]
    else:
        kept = [{"digest": stored.digest, **report} for report in reports]
    runs = tuple(run(report, stored.digest) for report in kept)
    block = stored.data.get("importer")
    revision = block.get("revision") if isinstance(block, Mapping) else None
    shared = (stored.name, stored.model, revision if isinstance(revision, str) else None, stored.digest)
    if receipt is None:
        return ReportModel(*shared, "no receipt", "never", stored.text, runs)
    return ReportModel(
        *shared,
        receipt.state(stored.digest),
        validation(receipt, stored.data, stored.digest).state,
        stored.text,
        runs,
        receipt.review,
        receipt.decisions,
        tuple(receipt.evidence),
        receipt.fit or {},
        receipt.importer,
    )


def of_receipt(receipt: Receipt) -> ReportModel:
    """Return a receipt's sheet without its document, as if that were what was imported."""
    runs = tuple(run(report, receipt.digest) for report in receipt.runs)
    return ReportModel(
        receipt.name,
        receipt.model_id or receipt.directory,
        receipt.revision,
        receipt.digest,
        receipt.state(receipt.digest),
        validation(receipt, receipt.wrote or {}, receipt.digest).state,
        receipt.base or "",
        runs,
        decisions=receipt.decisions,
    )


def run(report: Told, digest: str) -> Run:
    """Return one report of a receipt, beside the digest that the document has now."""
    engine = _mapping(report.get("engine"))
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
        {str(part): _number(spent) for part, spent in _mapping(report.get("seconds")).items()},
        tuple(map(_found, report["outcomes"])),
        _mapping(partial) or None,
        _mapping(report.get("fit")),
    )


def _names(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(found.probe for run in runs for found in run.found))


def _found(told: Told) -> Found:
    trials = int(_number(told.get("trials")))
    return Found(
        str(told["probe"]),
        str(told["outcome"]),
        str(told["reason"]),
        told.get("attribution"),
        str(told.get("remedy_message") or ""),
        trials,
        int(_number(told.get("agreed", trials))),
        _interval(told.get("interval")),
        _number(told.get("seconds")),
        str(told.get("lesson") or ""),
        str(told.get("log") or ""),
        tuple(e for e in told.get("exchanges") or () if isinstance(e, Mapping)),
        _mapping(told.get("cause")) or None,
        _mapping(told.get("remedy")) or None,
    )


def _interval(told: object) -> tuple[float, float] | None:
    if not isinstance(told, list | tuple) or len(told) != 2:
        return None
    return _number(told[0]), _number(told[1])


def _mapping(told: object) -> Told:
    return told if isinstance(told, Mapping) else {}


def _number(told: object) -> float:
    """Return a number that can be shown; anything else is none."""
    if isinstance(told, bool) or not isinstance(told, int | float) or not math.isfinite(told):
        return 0.0
    return float(told)
