"""Measure the budgets: ``python -m benchmarks [NAME…]`` prints one table; ratios are of one run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable

from benchmarks import process, proof, traffic, validation
from benchmarks.row import Row

GROUPS: dict[str, Callable[[], Iterable[Row]]] = {
    "process": process.rows,
    "traffic": traffic.rows,
    "proof": proof.rows,
    "validation": validation.rows,
}


def main() -> int:
    """0; a row over its budget is marked, never failed: machines differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(GROUPS)} (default: all)")
    names = parser.parse_args().names or [*GROUPS]
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        parser.error(f"there is no group {unknown[0]!r}; groups: {', '.join(GROUPS)}")
    print(f"{'what':68} {'measured':>14}  {'budget':>14}")
    for name in names:
        for row in GROUPS[name]():
            print(
                f"{row.what:68} {row.measured:>14}  {row.budget:>14}{'' if row.met else '  over'}", flush=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
