"""Plant faults and write the matrix: ``python -m tests.faults [NAME…] [--engine E] [--resume]``.

Without names all that is not in the committed matrix, or was another fault then, is run, twins first; with
names those faults and their twins are. ``--resume`` takes what an earlier, interrupted run has finished.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from importer.engines import get, install
from tests.faults import matrix
from tests.faults.fault import ENGINES, Fault
from tests.faults.registry import FAULTS
from tests.faults.verdict import flaw, judge

LINES = matrix.ROOT / ".faults" / "cells.jsonl"


def main() -> int:
    """0 where every cell is as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--engine", action="append", choices=ENGINES)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--all", action="store_true", help="run again what the matrix has already")
    parser.add_argument("--lines", type=Path, default=LINES, help="where finished cells are kept")
    options = parser.parse_args()
    known = {fault.name for fault in FAULTS}
    if unknown := set(options.names) - known:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    if not options.resume:
        options.lines.unlink(missing_ok=True)

    done = {} if options.all or options.names else matrix.load()
    done |= matrix.remembered(options.lines)
    wrong = 0
    for fault, engine in wanted(options.names, options.engine or ENGINES):
        cell = done.get((fault.name, engine))
        if cell is not None and cell.digest == fault.digest:
            continue
        if install.find(get(engine)) is None:
            sys.stderr.write(f"{engine} is not installed: {fault.name} is left out\n")
            continue
        cell, missed = judge(fault, engine)
        matrix.remember(cell, options.lines)
        problem = flaw(fault, cell, missed)
        wrong += problem is not None
        sys.stdout.write(f"{fault.name} on {engine}: {problem or 'as it should be'}, {cell.seconds} s\n")
        for outcome in missed:
            told = [outcome[k] for k in ("probe", "outcome", "attribution", "reason", "remedy_message")]
            sys.stdout.write(f"    {' | '.join(str(t)[:110] for t in told)}\n")
        sys.stdout.flush()
    cells = matrix.load() | matrix.remembered(options.lines)
    matrix.save(cells.values(), FAULTS)
    matrix.replace(matrix.PAGE, matrix.page(FAULTS, matrix.load()))
    return bool(wrong)


def wanted(names: list[str], engines: list[str] | tuple[str, ...]) -> list[tuple[Fault, str]]:
    """The cells to run, engine by engine, each twin before its faults."""
    faults = [fault for fault in FAULTS if not names or fault.name in names]
    twins = {fault.twin.name: fault.twin for fault in faults}
    every = [*twins.values(), *faults]
    return [(fault, engine) for engine in engines for fault in every if engine in fault.engines]


if __name__ == "__main__":
    sys.exit(main())
