"""The journal of a long import: its answers, so that a killed run continues where it was."""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Self

from importer.config import home
from importer.config_file.name_allocator import Names
from importer.errors import DocumentError, UsageError
from importer.version import __version__

ENVIRONMENT = ("HF_ENDPOINT", "HF_TOKEN", "HF_HUB_OFFLINE")  # with others of these the answers may differ


class Journal:
    """One JSON line per answer, in order. One process at a time may hold it."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file

    @classmethod
    @contextmanager
    def opened(cls, references: Sequence[str], arguments: argparse.Namespace) -> Iterator[Self]:
        """Open the journal of this very list with these very options.

        Raises UsageError where another process works on it, DocumentError("cannot-write").
        """
        path = _path(references, arguments)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("a+b")
        except OSError as error:
            raise DocumentError("cannot-write", path=path, problem=error.strerror) from None
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                problem = "another process is importing this very list"
                option = "--from" if arguments.source is not None else "--from-org"
                raise UsageError("bad-option", option=option, problem=problem) from None
            yield cls(path, file)

    def answered(self, names: Names) -> Iterator[str]:
        """Yield the answers of an earlier run and keep their names; a broken line and all behind it are
        removed.
        """
        self._file.seek(0)
        whole = 0
        for line in iter(self._file.readline, b""):
            answer = _parsed(line)
            if answer is None:
                break
            whole += len(line)
            if "name" in answer:
                names.keep(answer["name"], answer.get("model") or answer["document"]["parameters"]["model"])
            yield line.decode().rstrip("\n")
        self._file.truncate(whole)

    @property
    def list_path(self) -> Path:
        """Return the place of a list that belongs to this run."""
        return self._path.with_suffix(".list")

    def keep(self, line: str) -> None:
        """Add an answer and flush it, before it is shown."""
        try:
            self._file.write(line.encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise DocumentError("cannot-write", path=self._path, problem=error.strerror) from None

    def finish(self) -> None:
        """Remove the journal of a finished run, and its list."""
        self.list_path.unlink(missing_ok=True)
        self._path.unlink(missing_ok=True)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        parsed = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


def _path(references: Sequence[str], arguments: argparse.Namespace) -> Path:
    options = {k: v for k, v in vars(arguments).items() if k not in ("source", "json", "sandbox")}
    around = {name: os.environ.get(name) for name in ENVIRONMENT}
    what = json.dumps(
        [__version__, references, str(Path.cwd()), options, around], default=str, sort_keys=True
    )
    return home() / "cache" / "bulk" / f"{hashlib.sha256(what.encode()).hexdigest()[:32]}.jsonl"
