"""Processor time of whole processes, their children included: an empty Python, ``--help``, an import from a
directory without an engine.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchmarks.row import Row
from benchmarks.surroundings import bare

MODEL = Path(__file__).resolve().parents[1] / "importer" / "demo" / "model"
RUNS = 15


def rows() -> Iterable[Row]:
    """Yield the least of ``RUNS`` runs each, after one for the bytecode; the commands take turns."""
    with tempfile.TemporaryDirectory() as home:
        environment = bare(IMPORTER_HOME=home)
        commands = {
            "empty": [sys.executable, "-I", "-c", "pass"],
            "help": [sys.executable, "-m", "importer", "--help"],
            "local": [sys.executable, "-m", "importer", str(MODEL), "--dry-run", "--backend", "mlx"],
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installation has its bytecode
        for command in commands.values():
            _seconds(command, environment)
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(RUNS):
            for name, command in commands.items():
                times[name].append(_seconds(command, environment))
    empty, shown, local = (min(times[n]) for n in ("empty", "help", "local"))
    yield Row("empty Python", f"{empty * 1000:.0f} ms", "")
    yield Row("--help, whole process", f"{shown / empty:.1f} x", "4.0 x", shown <= 4 * empty)
    yield Row("import from a directory, no engine, --dry-run", f"{local:.2f} s", "0.60 s", local <= 0.6)


def _seconds(command: list[str], environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
