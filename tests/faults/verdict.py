"""One cell of the matrix: which probes saw a fault, and whom they blamed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from importer.cli.messages import hint, sentence
from importer.engines import get, install
from importer.errors import DocumentError, EngineError, ImporterError, RepositoryError
from tests.faults.bench import run
from tests.faults.fault import Fault

START = "start"  # the engine did not serve; what it said stands for a probe


@dataclass(frozen=True)
class Cell:
    """What came of one fault, or of an unharmed twin, on one engine.

    ``detected``  the probes that did not pass, ``START`` where there was nothing to probe.
    ``blamed``    the parts that the failures name; where nothing failed, those that inconclusive probes name.
    ``doubts``    probes that came to no conclusion, or that the model did not show.
    ``mends``     the changes that are told, the first three.
    ``remedies``  the kinds of all changes that are told.
    """

    fault: str
    engine: str
    version: str
    digest: str
    detected: tuple[str, ...]
    blamed: tuple[str, ...]
    doubts: tuple[str, ...]
    mends: tuple[str, ...]
    seconds: float
    remedies: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cell:
        return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in data.items()})


def judge(fault: Fault, engine: str) -> tuple[Cell, list[dict[str, Any]]]:
    """Run it; the cell, and the outcomes behind it that did not pass."""
    begun = time.monotonic()
    version = install.need(get(engine)).version
    try:
        report = run(fault, engine)
    except (EngineError, DocumentError, RepositoryError) as error:
        part, told = _blamed(error), f"{sentence(error)} {hint(error)}"
        outcomes = [
            {"probe": START, "outcome": "fail", "reason": told, "attribution": part, "remedy_message": told}
        ]
        cell = _cell(fault, engine, version, outcomes, time.monotonic() - begun)
        return cell, outcomes
    missed = [
        o for o in report["outcomes"]
        if o["outcome"] in ("fail", "inconclusive") or (o["outcome"] == "not-shown" and o.get("ability"))
    ]  # fmt: skip
    return _cell(fault, engine, version, missed, time.monotonic() - begun), missed


def _blamed(error: ImporterError) -> str:
    """As the error has it: what an engine died of, what was in its way, or a document that is refused."""
    if isinstance(error, DocumentError):
        return "configuration"
    troubles = error.details.get("troubles")
    if isinstance(troubles, tuple):
        return str(troubles[0].result.part)
    return str(error.details.get("blames") or "environment")


def _cell(fault: Fault, engine: str, version: str, missed: list[dict[str, Any]], seconds: float) -> Cell:
    failed = [o for o in missed if o["outcome"] == "fail"]
    doubts = [o for o in missed if o["outcome"] != "fail"]
    return Cell(
        fault.name,
        engine,
        version,
        fault.digest,
        tuple(o["probe"] for o in missed),
        tuple(sorted({o["attribution"] for o in failed or doubts})),
        tuple(o["probe"] for o in doubts),
        tuple(dict.fromkeys(o["remedy_message"] for o in failed or doubts if o["remedy_message"]))[:3],
        round(seconds, 1),
        tuple(dict.fromkeys(o["remedy"]["kind"] for o in failed or doubts if o.get("remedy"))),
    )


def flaw(fault: Fault, cell: Cell, missed: list[dict[str, Any]]) -> str | None:
    """What is wrong with a verdict on a fault; ``None`` where it was seen, and the right part blamed."""
    if not fault.steps:
        return f"a false alarm: {', '.join(cell.detected)}" if cell.detected else None
    if not cell.detected:
        return "it was not seen"
    if cell.blamed != (fault.part,):
        return f"{' and '.join(cell.blamed)} blamed, not {fault.part}"
    told = [o["remedy_message"] for o in missed]
    if fault.mend and not any(fault.mend in mend for mend in told):
        return f"no probe tells to mend it by {fault.mend!r}"
    return None
