"""``python -m benchmarks card --log FILE``: figures of a validation on a card, beside those of the docs.

On the machine with the card, keep what the command prints: ``importer MODEL --backend vllm-cuda --yes
--validate > FILE``.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from gen_defaults.paths import file

PAGE = Path(__file__).parents[1] / "docs" / "engines.md"
VALIDATED = re.compile(
    r"^(?P<model>\S+): (?P<end>not validated|validated) on \S+ \(start (?P<start>[\d.]+ s), "
    r"probes (?P<probes>[\d.]+ s), .*?first token (?P<first>[\d.]+ s), (?P<speed>[\d.]+) tokens/s\)",
    re.MULTILINE,
)
FIELDS = ("start", "probes", "first", "speed")


def main(arguments: Sequence[str]) -> int:
    """Print a line for each validation of the log; 1 where it has none."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks card", description=__doc__)
    parser.add_argument(
        "--log", type=file, metavar="FILE", help="what 'importer ... --validate' printed there"
    )
    chosen = parser.parse_args(arguments)
    if chosen.log is None:
        parser.error("these figures need a card; run the validation there and give its output with --log")
    lines = [*read(chosen.log.read_text(encoding="utf-8"))]
    print("\n".join(lines) or f"{chosen.log} has no validation")
    return 0 if lines else 1


def read(log: str) -> Iterator[str]:
    """Yield each validation's figures, and the page's for the same model."""
    page = PAGE.read_text(encoding="utf-8")
    for one in VALIDATED.finditer(log):
        row = re.search(rf"^\| {re.escape(one['model'])} \|(.*)\|$", page, re.MULTILINE | re.IGNORECASE)
        figures = ", ".join(f"{field} {one[field]}" for field in FIELDS)
        yield f"{one['model']} ({one['end']}): {figures}; in the docs:{row[1] if row else ' none'}"
