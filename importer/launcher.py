"""The one place that starts a process: an argv list, an environment by purpose, a group of its own.

No variable is inherited unless its purpose lists it, and no Python of ours looks into the working directory:
``isolated`` gives ``-I``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import IO

Stream = int | IO[bytes] | None
# What every program needs to find libraries, its language and a place for passing files.
COMMON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "SYSTEMROOT")


class Purpose(StrEnum):
    """What a process is for, which decides what it inherits."""

    SANDBOX = "sandbox"  # reads a stranger's text


ENVIRONMENT: Mapping[Purpose, tuple[str, ...]] = {
    Purpose.SANDBOX: ("LD_LIBRARY_PATH", "SYSTEMROOT"),
}


def isolated(*arguments: str, python: str | Path = sys.executable) -> list[str]:
    """The argv of a Python that reads neither the working directory nor variables nor a user's packages."""
    return [str(python), "-I", *arguments]


def environment(purpose: Purpose, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a process of this purpose inherits, and ``extra``."""
    allowed = ENVIRONMENT[purpose]
    return {name: os.environ[name] for name in allowed if name in os.environ} | dict(extra or {})


def start(
    argv: Sequence[str],
    purpose: Purpose,
    *,
    stdin: Stream = subprocess.DEVNULL,
    stdout: Stream = subprocess.DEVNULL,
    stderr: Stream = subprocess.DEVNULL,
    extra: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process that leads a group of its own, in the root folder. Raises OSError."""
    return subprocess.Popen(
        list(argv), stdin=stdin, stdout=stdout, stderr=stderr, env=environment(purpose, extra), cwd="/",
        bufsize=0, start_new_session=True,
    )  # fmt: skip
