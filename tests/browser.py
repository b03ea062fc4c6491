"""A real browser without a window: Debian's chromium, which ``make test`` installs where it may."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.waiting import PATIENCE
from tools.system_packages import missing, place

QUIET = (
    "--headless=new",
    "--no-sandbox",  # a container's root has no other way
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-features=OptimizationHints,MediaRouter,Translate",
    "--hide-scrollbars",
)


def chromium() -> Path:
    """Where it is; a test that needs it is skipped where it is not, by name."""
    found = place("chromium")
    if found is None:
        pytest.skip(missing("chromium"))
    return found


def browse(page: Path, *options: str) -> str:
    """Open a page with these options of the browser's; what it writes to its standard output."""
    with tempfile.TemporaryDirectory(prefix="browser-") as profile:
        argv = [str(chromium()), *QUIET, f"--user-data-dir={profile}", *options, page.absolute().as_uri()]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return done.stdout


def picture(page: Path, png: Path, *, width: int, height: int, dark: bool = False) -> bytes:
    """A screenshot."""
    scheme = "--blink-settings=preferredColorScheme=" + ("0" if dark else "1")
    browse(page, f"--screenshot={png.absolute()}", f"--window-size={width},{height}", scheme)
    return png.read_bytes()
