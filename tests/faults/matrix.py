"""The matrix: finished cells as one JSON line each, the committed file, and the page made of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from tests.faults.fault import ENGINES, UNREAD, Fault
from tests.faults.verdict import Cell

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = Path(__file__).with_name("matrix.json")
PAGE = Path(__file__).with_name("README.md")
MARKS = "<!-- matrix -->", "<!-- /matrix -->"
Key = tuple[str, str]


def key(cell: Cell) -> Key:
    """Fault and engine."""
    return cell.fault, cell.engine


def load(path: Path = COMMITTED) -> dict[Key, Cell]:
    """The committed cells."""
    if not path.exists():
        return {}
    return {key(cell): cell for cell in map(Cell.from_json, json.loads(path.read_text(encoding="utf-8")))}


def save(cells: Iterable[Cell], faults: Iterable[Fault], path: Path = COMMITTED) -> None:
    """The cells in the suite's order, one line each; what is no longer a fault or stale is left out."""
    known = {key(cell): cell for cell in cells}
    wanted = [(name, engine) for name, engine, _ in rows(faults)]
    fresh = {(name, engine): digest for name, engine, digest in rows(faults)}
    kept = [known[k] for k in wanted if k in known and known[k].digest == fresh[k]]
    lines = [json.dumps(cell.to_json(), ensure_ascii=False) for cell in kept]
    replace(path, "[\n" + ",\n".join(lines) + "\n]\n")


def rows(faults: Iterable[Fault]) -> list[tuple[str, str, str]]:
    """Every cell that the suite has: the twins first, each once, then the faults; with its digest."""
    faults = list(faults)
    twins = {fault.twin.name: fault.twin for fault in faults}
    return [(f.name, e, f.digest) for f in (*twins.values(), *faults) for e in f.engines]


def remember(cell: Cell, path: Path) -> None:
    """Add a finished cell to a file of lines, in one write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(cell.to_json(), ensure_ascii=False) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, line.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remembered(path: Path) -> dict[Key, Cell]:
    """The finished cells; a line that a kill has cut short is none."""
    cells: dict[Key, Cell] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            cell = Cell.from_json(json.loads(line))
        except (ValueError, TypeError):
            continue
        cells[key(cell)] = cell
    return cells


def replace(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def page(faults: Iterable[Fault], cells: dict[Key, Cell]) -> str:
    """The page with the present matrix between its marks."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    return f"{before}{MARKS[0]}\n{table(list(faults), cells)}{MARKS[1]}{after}"


def table(faults: list[Fault], cells: dict[Key, Cell]) -> str:
    """What each fault is, and what came of it on each engine."""
    head = ["fault", "harm", "at fault", *ENGINES]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for fault in faults:
        bitten = f" ({fault.bitten})" if fault.bitten else ""
        told = [_told(fault, engine, cells) for engine in ENGINES]
        lines.append(f"| {' | '.join([fault.name, fault.harm + bitten, fault.part, *told])} |")
    return "\n".join(lines) + "\n"


def _told(fault: Fault, engine: str, cells: dict[Key, Cell]) -> str:
    reason = fault.apart.get(engine) or UNREAD.get(fault.base, {}).get(engine)
    if reason is not None:
        return f"– ({reason})"
    cell = cells.get((fault.name, engine))
    if cell is None:
        return "not run"
    if not cell.detected:
        return "**not seen**"
    more = len(cell.detected) - 1
    seen = cell.detected[0] + (f" and {more} more" if more else "")
    blamed = "" if cell.blamed == (fault.part,) else f"; **blamed: {', '.join(cell.blamed)}**"
    return seen + blamed
