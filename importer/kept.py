"""Files of the cache: what is kept may vanish, and a disk that takes nothing costs only time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from importer import config


def place(*parts: str) -> Path:
    """Return a place in the cache."""
    return config.cache().joinpath(*parts)


def read(path: Path) -> Any:
    """Return the data of a kept JSON file; ``None`` without one, or with one that is damaged."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def write(path: Path, data: object) -> None:
    """Keep data as JSON; a file with the same data stays as it is."""
    text = json.dumps(data).encode()
    with contextlib.suppress(OSError):
        if path.read_bytes() == text:
            return
    write_bytes(path, text)


def write_bytes(path: Path, data: bytes) -> None:
    """Keep bytes: other processes see all of them or none. Errors of the disk are ignored."""
    import tempfile

    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def alone(key: str) -> Iterator[None]:
    """Hold one of 4096 locks, chosen by a hexadecimal key, among the threads and processes of this home.

    Without a disk that has locks there is none: work is done twice then, never wrong.
    """
    path = place("locks", key[:3])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    except OSError:
        yield
        return
    with file:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
