"""Atomic writes: a reader sees the old file or the new one, and a failure leaves neither half."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from importer.errors import DocumentError


def write_all(contents: Mapping[Path, str]) -> None:
    """Write every file or none: all are written beside their places first, then renamed.

    Raises DocumentError("not-a-folder") and DocumentError("cannot-write").
    """
    staged: list[tuple[Path, Path]] = []
    try:
        for path, text in contents.items():
            staged.append((_stage(path, text), path))
        for temporary, path in staged:
            temporary.replace(path)
    except OSError as error:
        raise DocumentError(
            "cannot-write", path=error.filename or path, problem=error.strerror or error
        ) from None
    finally:
        for temporary, _ in staged:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Create ``folder``; raises DocumentError where a file stands in its place."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise DocumentError("not-a-folder", path=folder) from None
    except OSError as error:
        raise DocumentError("cannot-write", path=folder, problem=error.strerror or error) from None


def _stage(path: Path, text: str) -> Path:
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(6)}.part")
    # The caller's umask decides who may read a new file: engines run under other users.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            with suppress(OSError):  # a new file has no mode to keep
                os.fchmod(descriptor, stat.S_IMODE(path.stat().st_mode))
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    return temporary
