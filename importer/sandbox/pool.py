"""A pool of warm children for a run, each started on demand."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Literal

import importer
from importer import kept
from importer.errors import SandboxError
from importer.reasons import Reason
from importer.sandbox.child import Child, ChildLostError, StarvedError
from importer.sandbox.codec import CodecError, codec_of, decode_error
from importer.sandbox.task import MAX_ANSWER, A, Closing, OverLimit, Q, Response, SandboxReason, Task

APART = ("__pycache__", "web")  # folders of which no answer depends
MEMORY = 768 * 2**20  # bytes of address space for a child; after its imports it has 60 MiB
WALL_SECONDS = 60.0  # that a child may be stalled, on a busy machine
TRIES = 2


class FaultError(RuntimeError):
    """A task raised an unexpected exception: a fault of importer, with the child's traceback."""


class Sandbox(Closing):
    """Up to ``size`` children; safe to use from several threads. A context manager.

    ``wall_seconds``  that a child may be stalled, before it counts as starved.
    ``memory``        bytes of address space for each.
    """

    def __init__(self, size: int = 1, *, wall_seconds: float | None = None, memory: int = MEMORY) -> None:
        self._wall_seconds = WALL_SECONDS if wall_seconds is None else wall_seconds
        self._memory = memory
        self._turns = BoundedSemaphore(size)
        self._lock = Lock()
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._closings = 0

    @property
    def pids(self) -> tuple[int, ...]:
        """Return the process ids of all children."""
        with self._lock:
            return tuple(child.process.pid for child in (*self._idle, *self._busy))

    def close(self) -> None:
        """End the children; running calls raise SandboxError("closed"), the next call starts a new child."""
        with self._lock:
            self._closings += 1
            children, self._idle = self._idle, []
            for child in self._busy:
                child.end()
        for child in children:
            child.close()

    def call(self, task: Task[Q, A], question: Q, what: str, seconds: float | None = None) -> A | OverLimit:
        """Return the task's answer, or the limit that the text exceeds.

        ``what`` names the text in messages of errors; ``seconds`` replaces the task's own limit.
        Raises SandboxError where the child was starved or lost twice, or the sandbox was closed meanwhile,
        and the task's own ImporterError.
        """
        closings = self._closings
        seconds = task.seconds if seconds is None else seconds
        try:
            request = {
                "task": task.name,
                "seconds": seconds,
                "question": codec_of(task.question).encode(question),
            }
            line = json.dumps(request).encode() + b"\n"
        except RecursionError:
            return _over(SandboxReason.DEPTH, seconds, self._memory)
        path = _place(line) if task.kept else None
        known = None if path is None else _known(task, path)
        if known is not None:
            return known
        with self._turns:
            response = self._answer(line, what, closings)
        if "answer" in response:
            answer: A = codec_of(task.answer).decode(response["answer"])
            if path is not None:
                kept.write(path, response["answer"])
            return answer
        if "over" in response:
            return _over(SandboxReason(response["over"]), seconds, self._memory)
        if "error" in response:
            raise decode_error(response["error"])
        raise FaultError(response["fault"])

    def _answer(self, line: bytes, what: str, closings: int) -> Response:
        """Return the response to a line, from a second child where the first is starved or lost.

        Raises SandboxError where that fails too, and for a call from before the sandbox closed.
        """
        kind: Literal["starved", "lost"] = "lost"
        for _ in range(TRIES):
            child = self._take(closings)
            if child is None:
                raise SandboxError("closed", what=what)
            whole = False
            try:
                response: Response = json.loads(child.ask(line))
                whole = not response.get("spent", False)
            except StarvedError:
                kind = "starved"
            except ChildLostError as error:
                if error.of_time:
                    return {"over": SandboxReason.TIME}
                kind = "lost"
            else:
                return response
            finally:
                self._give_back(child, whole=whole)
        raise SandboxError(kind, what=what)

    def _take(self, closings: int) -> Child | None:
        """Return an idle or a new child; ``None`` for a call from before the sandbox closed."""
        with self._lock:
            if closings != self._closings:
                return None
            while self._idle:
                child = self._idle.pop()
                if child.alive:
                    break
                child.close()
            else:
                child = Child(self._memory, self._wall_seconds)
            self._busy.add(child)
        return child

    def _give_back(self, child: Child, *, whole: bool) -> None:
        with self._lock:
            self._busy.discard(child)
            if whole:
                self._idle.append(child)
        if not whole:
            child.close()


def _place(line: bytes) -> Path:
    """Return the place of the answer to a line of this importer."""
    return kept.place("answers", f"{hashlib.sha256(_files() + line).hexdigest()}.json")


def _known(task: Task[Q, A], path: Path) -> A | None:
    """Return the kept answer of a task; ``None`` without one."""
    try:
        answer: A = codec_of(task.answer).decode(kept.read(path))
    except (CodecError, ValueError, KeyError, TypeError, AttributeError, RecursionError, IndexError):
        return None
    return answer


@cache
def _files() -> bytes:
    """Return size and time of each of importer's files that an answer may depend on."""
    package = Path(importer.__file__).parent
    # The two tables lie beside the package in a checkout, and inside of it in a wheel.
    found = [str(table) for table in package.parent.glob("*_defaults.json")]
    for folder, inside, names in os.walk(package):
        inside[:] = (name for name in inside if name not in APART)
        found += (f"{folder}/{name}" for name in names)
    stats = ((file, os.stat(file)) for file in sorted(found))  # noqa: PTH116 - a third of pathlib's time
    return repr([(file, at.st_size, at.st_mtime_ns) for file, at in stats]).encode()


def borrowed(warm: Sandbox | None) -> AbstractContextManager[Sandbox]:
    """Return a context with the sandbox of a caller, else with one that ends with the block."""
    return Sandbox() if warm is None else nullcontext(warm)


def _over(kind: SandboxReason, seconds: float, memory: int) -> OverLimit:
    """Return the exceeded limit with its value."""
    size = (MAX_ANSWER if kind is SandboxReason.OUTPUT else memory) // 2**20
    return OverLimit(Reason(kind, seconds=seconds, size=size))
