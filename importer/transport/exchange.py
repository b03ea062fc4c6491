"""Run a command that runs importer elsewhere: send the task, read frames until the result, end both sides.

Its stdin stays open until then: the far end stops when it closes, however this side ends. Every read is
bounded and on a clock.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from contextlib import suppress
from typing import IO

from importer import launcher
from importer.errors import RemoteError, one_line
from importer.launcher import PIPE, Process, Purpose
from importer.progress import Progress
from importer.reasons import Reason, ReasonKind
from importer.transport.bundle import LARGEST, MARK, Bundle, Frame, Result
from importer.transport.command import RemoteCommand
from importer.version import __version__

START_SECONDS = 3600.0  # until the far end's first frame: a queue, an image that is pulled
SILENT_SECONDS = 120.0  # between two frames; the far end writes one every ``BEAT`` seconds
WHOLE_SECONDS = 6 * 3600.0
BEAT = 10.0
LOOK = 0.2  # seconds between two looks at the clock and the process
LAGS = 5.0  # seconds that the output of a process may come after its end
LEAVE, YIELD = 15.0, 5.0  # seconds to end without stdin, and after SIGTERM
MOST_OTHER = 2 << 20  # bytes of all lines but the result
RESULT = f"{MARK} result ".encode()
SAID, SHOWN = 4000, 300  # bytes of stderr that are kept, characters of them in an error


class LateReason(ReasonKind):
    """What a command did not do in time."""

    START = "did not start importer within {seconds} s"
    SPEAK = "was silent for {seconds} s"
    END = "did not end within {seconds} s"


class ResultReason(ReasonKind):
    """Why a result cannot be used; ``TEXT`` is of the schema of receipts."""

    FORM = "it is not of the form that importer writes"
    TOO_LARGE = "it has more than {megabytes} MiB"
    OTHER = "more than {megabytes} MiB of other output came before it"
    TEXT = "{text}"


def exchange(
    command: RemoteCommand, bundle: Bundle, progress: Progress, *, start_seconds: float = START_SECONDS
) -> Result:
    """Run the command with a task and return the result on the same data.

    On return and on every exception the command's processes have ended. Raises RemoteError.
    """
    where, argv = command.where, command.argv()
    progress(f"starting {where}")
    try:
        process = launcher.start(argv, Purpose.REMOTE, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    except OSError as error:
        raise RemoteError("program-missing", where=where, program=argv[0]) from error
    talk = _Talk(process, where, progress, start_seconds)
    try:
        result = talk.result(bundle)
        if result.digest != bundle.digest:
            raise RemoteError(
                "other-digest", where=where, sent=bundle.digest, got=one_line(result.digest)[:100]
            )
        return result
    finally:
        talk.end()


class _Talk:
    """The three streams of a command, read side by side so that none blocks another."""

    def __init__(self, process: Process, where: str, progress: Progress, start_seconds: float) -> None:
        self._process, self._where, self._progress = process, where, progress
        self._reason, self._seconds, self._heard = LateReason.START, start_seconds, time.monotonic()
        self._last = self._heard + start_seconds + WHOLE_SECONDS
        self._line, self._errors, self._other = bytearray(), bytearray(), b""
        self._others = self._total = 0
        self._selector = selectors.DefaultSelector()

    def result(self, bundle: Bundle) -> Result:
        """Send the task and read until the result; raises RemoteError."""
        waiting, gone = memoryview(f"{bundle.pack()}\n".encode()), None
        for pipe, event in self._pipes():
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, event)
        while self._process.stdout in {key.fileobj for key in self._selector.get_map().values()}:
            for key, _ in self._selector.select(LOOK):
                if key.fileobj is self._process.stdin:
                    waiting = self._sent(waiting)
                elif found := self._received(key.fileobj, os.read(key.fd, 1 << 16)):
                    return found
            self._in_time()
            if self._process.poll() is not None:
                gone = gone or time.monotonic()
                if time.monotonic() - gone > LAGS:  # another process holds the pipe
                    break
        raise self._ended()

    def end(self) -> None:
        """Close stdin, which ends the far end, and then the command; end it where that takes too long."""
        with suppress(OSError):
            if self._process.stdin is not None:
                self._forget(self._process.stdin)
                self._process.stdin.close()
        try:
            if not self._left(LEAVE):
                launcher.send(self._process.pid, signal.SIGTERM)
                self._left(YIELD)
        finally:
            self._selector.close()
            launcher.end(self._process)

    def _pipes(self) -> list[tuple[IO[bytes], int]]:
        read, write = selectors.EVENT_READ, selectors.EVENT_WRITE
        pipes = (self._process.stdin, write), (self._process.stdout, read), (self._process.stderr, read)
        return [(pipe, event) for pipe, event in pipes if pipe is not None]

    def _left(self, seconds: float) -> bool:
        """Return whether the command ends within a time; what it writes meanwhile is dropped."""
        until = time.monotonic() + seconds
        while self._process.poll() is None and time.monotonic() < until:
            for key, _ in self._selector.select(LOOK) if self._selector.get_map() else ():
                if not os.read(key.fd, 1 << 16):
                    self._forget(key.fileobj)
            if not self._selector.get_map():
                launcher.ended(self._process, LOOK)
        return self._process.poll() is not None

    def _forget(self, pipe: object) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(pipe)  # type: ignore[arg-type]

    def _in_time(self) -> None:
        now, reason, seconds = time.monotonic(), self._reason, self._seconds
        if now > self._last:
            reason, seconds = LateReason.END, WHOLE_SECONDS
        elif now - self._heard <= seconds:
            return
        raise RemoteError("too-late", where=self._where, what=Reason(reason, seconds=f"{seconds:g}"))

    def _sent(self, waiting: memoryview) -> memoryview:
        """Write a part of the task; the pipe stays open behind it."""
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101 - opened as a pipe
        try:
            waiting = waiting[os.write(stdin.fileno(), waiting[: 1 << 16]) :]
        except BrokenPipeError:  # the command reads no further, and may still write
            waiting = waiting[:0]
        if not waiting:
            self._forget(stdin)
        return waiting

    def _received(self, pipe: object, piece: bytes) -> Result | None:
        """Take what came on a stream; return the result once it is whole."""
        if not piece:
            self._forget(pipe)
        if pipe is self._process.stderr:
            self._errors = (self._errors + piece)[-SAID:]
            return None
        self._total += len(piece)
        if self._total > LARGEST:
            raise self._bad(ResultReason.TOO_LARGE, megabytes=LARGEST >> 20)
        *lines, rest = piece.split(b"\n") if piece else (b"", b"")
        for line in lines:
            found = self._frame(bytes(self._line + line))
            self._line = bytearray()
            if found is not None:
                return found
        self._line += rest
        if not self._line.startswith(RESULT):
            self._in_bounds(len(self._line))
        return None

    def _in_bounds(self, more: int) -> None:
        if self._others + more > MOST_OTHER:
            raise self._bad(ResultReason.OTHER, megabytes=MOST_OTHER >> 20)

    def _frame(self, line: bytes) -> Result | None:
        if not line.startswith(RESULT):
            self._others += len(line) + 1
            self._in_bounds(0)
        frame = Frame.read(line)
        if frame is None:
            self._other = line[:SAID] if line.strip() else self._other
            return None
        if frame.kind == "hello" and frame.text != __version__:
            theirs = one_line(frame.text)[:100] or "no version"
            raise RemoteError("other-version", where=self._where, theirs=theirs, ours=__version__)
        if frame.kind != "hello" and self._reason is LateReason.START:
            raise self._bad(ResultReason.FORM)
        self._heard, self._seconds, self._reason = time.monotonic(), SILENT_SECONDS, LateReason.SPEAK
        if frame.kind == "result":
            try:
                return Result.unpack(frame.text)
            except ValueError:
                raise self._bad(ResultReason.FORM) from None
        if frame.kind == "step":
            self._progress(f"{self._where}: {one_line(frame.text)[:SHOWN]}")
        return None

    def _ended(self) -> RemoteError:
        """Return the error of a command that ended, or closed its output, without a result."""
        if self._line.startswith(RESULT):
            return self._bad(ResultReason.FORM)
        status = launcher.ended(self._process, LAGS)
        text = (bytes(self._errors).strip() or self._other or bytes(self._line)).decode("utf-8", "replace")
        says = one_line(" / ".join(text.splitlines()[-3:])[-SHOWN:]).rstrip(".") or "no text"
        shown = "none" if status is None else status
        return RemoteError("no-result", where=self._where, status=shown, says=says)

    def _bad(self, reason: ResultReason, **fields: object) -> RemoteError:
        return RemoteError("bad-result", where=self._where, problem=Reason(reason, **fields))
