"""Standard streams that accept every text, and whose failure does not cause a second one."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer


# -1 where errors alone are printed, 1 where each step is, too, and the traceback of a fault.
VERBOSITY: ContextVar[int] = ContextVar("VERBOSITY", default=0)


def prepare() -> None:
    """Open closed streams, and escape characters that a stream's encoding lacks.

    A closed standard output fails on writing, so that a lost result is an error.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", closefd=False))
    sys.stdout = _until_closed(sys.stdout)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _Pipe(io.FileIO):
    """A file whose reader may leave: what is written after that is dropped, and the command goes on."""

    def write(self, data: Buffer, /) -> int:
        """Write, or drop the text where the reader has left."""
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


def _until_closed(stream: TextIO) -> TextIO:
    """Return the stream over a ``_Pipe`` where it is one of the system's own."""
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    try:
        raw = _Pipe(stream.fileno(), "w", closefd=False)
    except (OSError, ValueError):  # closed, or of no file
        return stream
    # Line by line: what goes to stderr between two lines stands between them where both are one pipe.
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=stream.encoding, line_buffering=True)


def silence(stream: object) -> None:
    """Close a stream that failed, so that Python's flush at exit does not fail again."""
    with suppress(AttributeError, OSError, ValueError):
        number = stream.fileno()  # type: ignore[attr-defined]
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)


def to_stderr(text: str) -> None:
    """Print lines for a person; a failure of stderr changes nothing else."""
    try:
        print(text, file=sys.stderr, flush=True)  # noqa: T201
    except (OSError, ValueError):
        silence(sys.stderr)
