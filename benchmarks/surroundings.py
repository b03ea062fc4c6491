"""Where a benchmark runs: the machine, and an environment without the user's engines, Hub and folders."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path

import psutil

from tests.hubserver import OVERRIDES


def bare(**given: str) -> dict[str, str]:
    """The caller's environment without the user's engines and Hub settings, with ``given`` beside.

    Nothing is fetched from the package index: that is no cost of an import.
    """
    hidden = {n for n in os.environ if n.startswith("IMPORTER_") and n.endswith("_PYTHON")} | {*OVERRIDES}
    return {name: value for name, value in os.environ.items() if name not in hidden} | {
        "IMPORTER_PARSERS": "off", **given,
    }  # fmt: skip


def machine() -> str:
    """Return the day and the machine, with its load: seconds say nothing without them."""
    cpu = Path("/proc/cpuinfo")
    names = [line for line in cpu.read_text().splitlines() if "model name" in line] if cpu.exists() else []
    name = names[0].partition(": ")[2] if names else platform.processor() or platform.machine()
    load = f"{os.getloadavg()[0]:.0f}"
    return (
        f"{datetime.datetime.now(datetime.UTC).date()}, {psutil.cpu_count()} cores ({name}), "
        f"{psutil.virtual_memory().total >> 30} GiB, Python {platform.python_version()}, load {load}"
    )
