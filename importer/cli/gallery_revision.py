"""A gallery of another revision: ``main:models`` is the folder ``models`` of git's ``main``."""

from __future__ import annotations

import re
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from importer import launcher
from importer.errors import UsageError
from importer.launcher import Purpose

SECONDS = 60.0  # for git
REVISION = re.compile(r"(?P<ref>[^-:\s][^:\s]*):(?P<path>[^\s:]+)")


@contextmanager
def opened(place: str) -> Iterator[Path]:
    """Yield the path of a gallery: what is on this disk, else the files of a revision for the block.

    Raises UsageError("no-such-directory"), and UsageError("bad-option") for what git does not have.
    """
    matched = None if Path(place).exists() else REVISION.fullmatch(place)
    if matched is None:
        yield Path(place)
        return
    with tempfile.TemporaryDirectory(prefix="importer-revision-") as folder:
        packed, unpacked = Path(folder, "files.tar"), Path(folder, "files")
        words = [
            "git",
            "archive",
            "--format=tar",
            f"--output={packed}",
            matched["ref"],
            "--",
            matched["path"],
        ]
        try:
            done = launcher.run(words, Purpose.SYSTEM, seconds=SECONDS, folder=Path.cwd())
        except OSError as error:
            raise _refused(place, str(error)) from None
        if done.code != 0:
            raise _refused(place, done.errors)
        with tarfile.open(packed) as files:
            files.extractall(unpacked, filter="data")
        yield unpacked / matched["path"]


def _refused(place: str, problem: str) -> UsageError:
    return UsageError("bad-option", option=place, problem=f"git: {' '.join(problem.split())}")
