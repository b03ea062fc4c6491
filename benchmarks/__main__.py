"""Measure the budgets: ``python -m benchmarks [NAME…]`` prints one table; ratios are of one run.

``python -m benchmarks recipes FOLDER`` compares vLLM's recipes with the documents of a folder of models, and
``python -m benchmarks plans FOLDER`` prints ten plans beside the recipes.
``python -m benchmarks measured FOLDER`` starts each configuration of a folder with random weights, and prints
the memory that the engine reports beside the estimate.
``python -m benchmarks attention FOLDER`` counts the warnings of a folder of models, by kind.
"""

from __future__ import annotations

import argparse
import sys
from types import ModuleType

from benchmarks import (
    attention,
    fit,
    hostile,
    markdown,
    measured,
    overview,
    plans,
    process,
    proof,
    recipes,
    service,
    service_bytes,
    service_idle,
    service_kills,
    service_load,
    service_memory,
    starts,
    traffic,
    validation,
)
from benchmarks.row import HEADING

# A group is a module with ``rows()``, and with a ``HEADING`` where its columns are its own.
GROUPS: dict[str, ModuleType] = {
    "process": process,
    "traffic": traffic,
    "proof": proof,
    "validation": validation,
    "fit": fit,
    "starts": starts,
    "service": service,
    "service-idle": service_idle,
    "service-bytes": service_bytes,
    "service-kills": service_kills,
    "service-load": service_load,
    "service-memory": service_memory,
    "hostile": hostile,
    "markdown": markdown,
    "overview": overview,
}
# A comparison is a module with ``main(arguments)`` of its own; most need a folder of models' files.
COMPARISONS: dict[str, ModuleType] = {
    "recipes": recipes, "plans": plans, "measured": measured, "attention": attention,
}  # fmt: skip


def main() -> int:
    """0; a row over its budget is marked, never failed: machines differ."""
    if sys.argv[1:2] and sys.argv[1] in COMPARISONS:
        return int(COMPARISONS[sys.argv[1]].main(sys.argv[2:]))
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
