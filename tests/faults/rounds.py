"""A blind round, run once: ``python -m tests.faults.rounds blind_a [--engine mlx] [NAME…]``.

Its author has not seen the probes. A line for each fault has the parts that were named, and each failure with
its remedy; the last line has the sums. ``MENDS`` of the round has the right remedy in the author's words, for
a person to compare.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from tests.faults.fault import ENGINES, Fault
from tests.faults.verdict import Cell, judge

ROUNDS = tuple(f"blind_{letter}" for letter in "abcdefghijklmnopqr")


def main(words: Sequence[str] | None = None) -> int:
    """Print the verdicts on a round; 0 where the run came to its end."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.rounds", description=__doc__)
    parser.add_argument("round", choices=ROUNDS)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--engine", choices=ENGINES, default="mlx")
    options = parser.parse_args(words)
    of = import_module(f"tests.faults.{options.round}")
    faults, twins = (
        [fault for fault in listed if options.engine in fault.engines and _wanted(fault, options.names)]
        for listed in (of.FAULTS, of.TWINS)
    )
    cells = {fault.name: _judged(fault, options.engine, of.MENDS.get(fault.name, "")) for fault in faults}
    alarms = [twin.name for twin in twins if _judged(twin, options.engine, "").detected]
    detected = [fault for fault in faults if cells[fault.name].detected]
    rightly = [fault for fault in detected if cells[fault.name].blamed == (fault.part,)]
    sums = f"{len(faults)} faults, {len(detected)} detected, {len(rightly)} with the right part alone"
    sys.stdout.write(f"{sums}; {len(twins)} twins, failing: {', '.join(alarms) or 'none'}\n")
    return 0


def _wanted(fault: Fault, names: Sequence[str]) -> bool:
    return not names or fault.name in names


def _judged(fault: Fault, engine: str, mend: str) -> Cell:
    cell, missed = judge(fault, engine)
    sys.stdout.write(
        f"{fault.name} ({fault.part}): {', '.join(cell.blamed) or 'not seen'}, {cell.seconds} s\n"
    )
    for told in dict.fromkeys(map(_told, missed)):
        sys.stdout.write(f"    {told}\n")
    if mend:
        sys.stdout.write(f"    right: {mend}\n")
    sys.stdout.flush()
    return cell


def _told(outcome: dict[str, Any]) -> str:
    return f"{outcome['attribution']}: {outcome['remedy_message'] or outcome['reason']}"[:200]


if __name__ == "__main__":
    sys.exit(main())
