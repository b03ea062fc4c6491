"""Measure: ``python -m benchmarks [NAME…]`` prints each figure beside the committed one, and its budget.

``--write`` keeps the figures in ``benchmarks/run.txt``. ``attention`` and ``measured``
take a folder of models instead, and ``card`` the log of a validation on a card.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.row import HEADING
from benchmarks.surroundings import machine

# A group is a module with ``rows()``, and with a ``HEADING`` where its columns are its own.
QUICK = (
    "process",
    "traffic",
    "proof",
    "validation",
    "starts",
    "hostile",
    "markdown",
    "overview",
    "service-bytes",
)
SLOW = ("fit", "service", "service-idle", "service-load", "service-memory")  # minutes each
# A comparison is a module with ``main(arguments)`` of its own.
COMPARISONS = ("attention", "card", "measured")
HERE = Path(__file__).parent
RUN, QUOTED = HERE / "run.txt", HERE / "quoted.csv"
GAP = re.compile(r"  +|: (?=\d+ starts)")  # between what was measured and the figure


def group(name: str) -> Any:
    """Return the module of a name; only this one is imported."""
    return import_module(f"benchmarks.{name.replace('-', '_')}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 1 where a group failed; a row over its budget is only marked, for machines differ."""
    words = sys.argv[1:] if arguments is None else arguments
    if words and words[0] in COMPARISONS:
        return int(group(words[0]).main(words[1:]))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    known = f"{', '.join(QUICK)} (default: these); {', '.join(SLOW)} (minutes each)"
    parser.add_argument("names", nargs="*", metavar="NAME", help=known)
    parser.add_argument("--write", action="store_true", help="keep these figures, and those of other groups")
    chosen = parser.parse_args(words)
    unknown = [name for name in chosen.names if name not in QUICK + SLOW]
    if unknown:
        parser.error(f"there is no group {unknown[0]!r}; groups: {', '.join(QUICK + SLOW)}")
    kept, found, failed = committed(), dict[str, str](), list[str]()
    for line in chain([f"# {machine()}"], _lines(chosen.names or QUICK, failed)):
        print(beside(line, kept), flush=True)
        found[_key(line)] = line
    for page, quote, keys in quoted():
        figures = (" ".join(found[key].removeprefix(key).split()) for key in keys if key in found)
        print(f"{page}: \u201c{quote}\u201d: {'; '.join(figures) or f'see {keys[0]}'}")
    if chosen.write:
        RUN.write_text(renewed(RUN.read_text(encoding="utf-8"), [*found.values()]), encoding="utf-8")
    for line in failed:
        sys.stderr.write(f"benchmarks: {line}\n")
    return 1 if failed else 0


def _lines(names: Sequence[str], failed: list[str]) -> Iterator[str]:
    """Yield the lines of each group; one that fails is named, and the others go on."""
    shown = ""
    for name in names:
        yield f"[{name}]"
        try:
            module = group(name)
            heading = getattr(module, "HEADING", HEADING)
            if heading != shown:
                yield (shown := heading)
            yield from (str(row) for row in module.rows())
        except (Exception, SystemExit) as error:  # whatever it is, the next group goes on
            failed.append(f"{name}: {type(error).__name__}: {error}")


def renewed(before: str, lines: Sequence[str]) -> str:
    """Return the committed run with these groups in place of their older lines."""
    groups: dict[str, list[str]] = {}
    for line in (*before.splitlines(), *lines):
        if line.startswith("["):
            groups.pop(line, None)
            groups[line] = []
        if not line.startswith("#"):
            [*groups.values()][-1].append(line)
    return "".join(f"{line}\n" for line in (lines[0], *(one for group in groups.values() for one in group)))


def committed() -> Mapping[str, str]:
    """Return the lines of the committed run by what they measure."""
    return {_key(line): line for line in RUN.read_text(encoding="utf-8").splitlines()}


def quoted() -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield the page, the words and the measured rows of each figure in the docs."""
    with QUOTED.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield row["page"], row["quote"], row["rows"].split("; ")


def beside(line: str, kept: Mapping[str, str]) -> str:
    """Return a line with the committed figure behind it, where there is another one."""
    before = kept.get(_key(line), line)
    figure = before.removeprefix(_key(line)).strip()
    return (
        line if before == line or line.startswith("#") else f"{line}   committed: {' '.join(figure.split())}"
    )


def _key(line: str) -> str:
    return "#" if line.startswith("#") else GAP.split(line, maxsplit=1)[0]


if __name__ == "__main__":
    sys.exit(main())
