"""Kills of releases, roll-backs, withdrawals, lists and the retention, on SQLite and PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.row import Row

ROOT = Path(__file__).parents[1]
# What is killed, the tests of it, and those of their names that kill.
KILLS = {
    "a release, a roll-back, a withdrawal": ("test_releases_killed.py", "served_once"),
    "a list of imports": ("test_lists_killed.py", "imported_once"),
    "the retention": ("test_retention.py", "killed"),
}


def rows() -> Iterable[Row]:
    """Return for each kind and database how many of its kills ended as they should."""
    for what, (file, name) in KILLS.items():
        for database, found in _outcomes(file, name).items():
            kept = sum(found)
            yield Row(f"{what}, {database}: kills, as it should be", f"{len(found)}, {kept}", "", all(found))


def _outcomes(file: str, name: str) -> dict[str, list[bool]]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "kills.xml"
        words = ["-q", "-n", "0", f"tests/service/{file}", "-k", name, f"--junitxml={report}"]
        subprocess.run(
            [sys.executable, "-m", "pytest", *words], cwd=ROOT, check=False, stdout=subprocess.DEVNULL
        )
        found: dict[str, list[bool]] = {}
        for case in ElementTree.parse(report).iter("testcase"):
            database = "PostgreSQL" if "postgresql" in case.attrib["name"] else "SQLite"
            found.setdefault(database, []).append(case.find("failure") is None and case.find("error") is None)
        return found
