"""The proof as a map of parsers by cases. Parsers with the same results share a row, the chosen one first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from importer.frozen import frozen
from importer.reports.pictures.shapes import mapping, mappings

Result = Literal["pass", "fail", "not-applicable"]


@frozen
class ProofRow:
    """Parsers with the same results; ``cells`` has one for each case, ``lost`` why the first is refuted."""

    parsers: tuple[str, ...]
    reads: bool
    cells: tuple[Result, ...]
    lost: str


@frozen
class ProofMap:
    """The parsers of one key by the cases of the proof; ``of`` is engine and version."""

    key: str
    of: str
    parsers: int
    cases: tuple[str, ...]
    rows: tuple[ProofRow, ...]


def proof_maps(proof: Mapping[str, Any] | None, chosen: Mapping[str, object]) -> tuple[ProofMap, ...]:
    """Return the map of each key whose parsers were asked; ``chosen`` has the parser of each key."""
    found = mapping(mapping(proof).get("verdicts"))
    of = " ".join(str(mapping(proof).get(part)) for part in ("engine", "version"))
    asked = {key: mappings(verdicts) for key, verdicts in found.items()}
    return tuple(_map(key, of, verdicts, chosen.get(key)) for key, verdicts in asked.items() if verdicts)


def _map(key: str, of: str, verdicts: list[dict[str, object]], chosen: object) -> ProofMap:
    verdicts = sorted(verdicts, key=lambda one: one.get("parser") != chosen)
    cases = tuple(
        dict.fromkeys(case for one in verdicts for case in (*_passed(one), *mapping(one.get("failed"))))
    )
    rows: dict[tuple[bool, tuple[Result, ...]], list[dict[str, object]]] = {}
    for one in verdicts:
        cells = tuple(_result(one, case) for case in cases)
        rows.setdefault((one.get("reads") is True, cells), []).append(one)
    made = tuple(
        ProofRow(tuple(str(one.get("parser")) for one in group), reads, cells, _lost(group[0]))
        for (reads, cells), group in rows.items()
    )
    return ProofMap(key, of, len(verdicts), cases, made)


def _passed(verdict: Mapping[str, object]) -> list[str]:
    passed = verdict.get("passed")
    return [str(case) for case in passed] if isinstance(passed, list | tuple) else []


def _result(verdict: Mapping[str, object], case: str) -> Result:
    if case in mapping(verdict.get("failed")):
        return "fail"
    return "pass" if case in _passed(verdict) else "not-applicable"


def _lost(verdict: Mapping[str, object]) -> str:
    """Return the first case that the parser lost, with the reason, and what the engine cannot do with it."""
    first = [f"{case}: {why}" for case, why in mapping(verdict.get("failed")).items()][:1]
    beside = (f"in pieces: {verdict['streaming']}" if verdict.get("streaming") else "",
              f"cannot be written: {verdict['forbidden']}" if verdict.get("forbidden") else "")  # fmt: skip
    return "; ".join(filter(None, (*first, *beside)))
