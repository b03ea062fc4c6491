"""Runs that this machine follows: a file for each, written before the submission, so that a killed command
goes on with the same run.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from importer import config
from importer.config_file.store import StoredDocument, make_folder
from importer.errors import DocumentError, LauncherError
from importer.launchers.target import Target

Entry = dict[str, Any]


@dataclass(slots=True)
class RunRecord:
    """The file of one question; ``entry`` is ``None`` where no run of it is known.

    ``entry`` has ``run``, its id; ``since``, when it was first submitted; ``recorded`` once its report is in
    the receipt.
    """

    path: Path
    name: str
    target: Target
    entry: Entry | None

    @property
    def run(self) -> str:
        """Return the id of the run, ``""`` where there is none."""
        return "" if self.entry is None else str(self.entry["run"])

    def begin(self) -> Entry:
        """Return the entry of the run to follow; a new one is on the disk before this returns."""
        if self.entry is None:
            stem = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")[:20] or "run"
            ident = f"importer-{stem}-{secrets.token_hex(6)}"
            self._write({"run": ident, "where": self.target.text, "name": self.name, "since": time.time()})
        assert self.entry is not None  # noqa: S101 - written above
        return self.entry

    def recorded(self) -> None:
        """Note that the report of the run is in the receipt: nothing of it is done again."""
        self._write({**(self.entry or {}), "recorded": True})

    def forget(self) -> None:
        """Delete the file: the run is over, and nothing of it is left at the far end."""
        self.path.unlink(missing_ok=True)
        self.entry = None

    def _write(self, entry: Entry) -> None:
        part = self.path.with_suffix(".part")
        try:
            with part.open("w", encoding="utf-8") as file:
                json.dump(entry, file)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.path)
        except OSError as error:
            raise DocumentError("cannot-write", path=self.path, problem=error.strerror or error) from None
        self.entry = entry


@contextmanager
def record_of(stored: StoredDocument, target: Target, question: object) -> Iterator[RunRecord]:
    """Yield the record of a document's run at a target; one process at a time holds it.

    ``question``  what else decides the result, as JSON. Raises LauncherError("followed-elsewhere").
    """
    place = [target.text, dict(target.options)]
    told = json.dumps([str(stored.path.absolute()), stored.digest, place, question], sort_keys=True)
    path = config.home() / "runs" / f"{hashlib.sha256(told.encode()).hexdigest()[:24]}.json"
    make_folder(path.parent)
    record = RunRecord(path, stored.name, target, _read(path))
    descriptor = _locked(path.with_suffix(".lock"))
    if descriptor is None:
        raise LauncherError("followed-elsewhere", name=stored.name, where=target.text, run=record.run)
    try:
        record.entry = _read(path)
        yield record
        if record.entry is None:
            with suppress(OSError):
                path.with_suffix(".lock").unlink()
    finally:
        os.close(descriptor)


def _locked(path: Path) -> int | None:
    """Return a descriptor that holds the lock of a file; ``None`` where another process holds it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:  # else its holder has deleted it meanwhile
                return descriptor
        except OSError:
            os.close(descriptor)
            return None
        os.close(descriptor)


def _read(path: Path) -> Entry | None:
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return entry if isinstance(entry, dict) and isinstance(entry.get("run"), str) else None
