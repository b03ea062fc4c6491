"""Measure the budgets: ``python -m benchmarks [NAME…]`` prints one table; ratios are of one run.

``python -m benchmarks recipes FOLDER`` compares vLLM's recipes with the documents of a folder of models.
"""

from __future__ import annotations

import argparse
import sys
from types import ModuleType

from benchmarks import fit, hostile, markdown, process, proof, recipes, service, traffic, validation
from benchmarks.row import HEADING

# A group is a module with ``rows()``, and with a ``HEADING`` where its columns are its own.
GROUPS: dict[str, ModuleType] = {
    "process": process,
    "traffic": traffic,
    "proof": proof,
    "validation": validation,
    "fit": fit,
    "service": service,
    "hostile": hostile,
    "markdown": markdown,
}


def main() -> int:
    """0; a row over its budget is marked, never failed: machines differ."""
    if sys.argv[1:2] == ["recipes"]:
        return recipes.main(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(GROUPS)} (default: all)")
    names = parser.parse_args().names or [*GROUPS]
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        parser.error(f"there is no group {unknown[0]!r}; groups: {', '.join(GROUPS)}")
    shown = ""
    for name in names:
        heading = getattr(GROUPS[name], "HEADING", HEADING)
        if heading != shown:
            shown = heading
            print(heading)
        for row in GROUPS[name].rows():
            print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
