"""Children kept warm for a run, as many as may work at a time, each started when it is needed."""

from __future__ import annotations

import json
from threading import BoundedSemaphore, Lock
from typing import Any, Literal

from importer.errors import SandboxError
from importer.reasons import Reason
from importer.sandbox.child import Child, ChildLostError, StarvedError
from importer.sandbox.closing import Closing
from importer.sandbox.codec import codec_of, decode_error
from importer.sandbox.task import MAX_ANSWER, A, OverLimit, Q, SandboxReason, Task

MEMORY = 768 * 2**20  # bytes of address space for a child; with all that it loads it takes 60 MiB
WALL_SECONDS = 60.0  # that a child may stand still, on a machine that has more to do
TRIES = 2


class FaultError(RuntimeError):
    """A task raised what it should not: a fault of ours, with the child's traceback."""


class Sandbox(Closing):
    """Up to ``size`` children; safe to use from several threads. A context manager.

    ``wall_seconds``  that a child may stand still, before it counts as starved.
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

    def start(self) -> None:
        """Start a child now, where none waits, so that it wakes while the caller does something else."""
        with self._lock:
            if not self._idle and not self._busy:
                self._idle.append(Child(self._memory, self._wall_seconds))

    @property
    def pids(self) -> tuple[int, ...]:
        """Return the processes that are there."""
        with self._lock:
            return tuple(child.process.pid for child in (*self._idle, *self._busy))

    def close(self) -> None:
        """End the children; calls under way raise SandboxError("closed"), and the next one starts another."""
        with self._lock:
            self._closings += 1
            children, self._idle = self._idle, []
            for child in self._busy:
                child.end()
        for child in children:
            child.close()

    def call(self, task: Task[Q, A], question: Q, what: str, seconds: float | None = None) -> A | OverLimit:
        """Return the task's answer, or the limit that the text exceeds.

        ``what`` names the text in the sentence of an error; ``seconds`` stands in for the task's own limit.
        Raises SandboxError where the child was starved or lost twice or the sandbox was closed meanwhile, and
        the task's own ImporterError.
        """
        closings = self._closings
        seconds = task.seconds if seconds is None else seconds
        try:
            asked = {
                "task": task.name,
                "seconds": seconds,
                "question": codec_of(task.question).encode(question),
            }
            line = json.dumps(asked).encode() + b"\n"
        except RecursionError:
            return _over(SandboxReason.DEPTH, seconds, self._memory)
        with self._turns:
            told = self._answer(line, what, closings)
        if "answer" in told:
            answer: A = codec_of(task.answer).decode(told["answer"])
            return answer
        if "over" in told:
            return _over(SandboxReason(told["over"]), seconds, self._memory)
        if "error" in told:
            raise decode_error(told["error"])
        raise FaultError(told["fault"])

    def _answer(self, line: bytes, what: str, closings: int) -> dict[str, Any]:
        """Return one exchange, with another child where the first is starved or lost; none for a call from
        before the sandbox closed.
        """
        kind: Literal["starved", "lost"] = "lost"
        for _ in range(TRIES):
            child = self._take(closings)
            if child is None:
                raise SandboxError("closed", what=what)
            whole = False
            try:
                told: dict[str, Any] = json.loads(child.ask(line))
                whole = not told.get("spent", False)
            except StarvedError:
                kind = "starved"
            except ChildLostError as error:
                if error.of_time:
                    return {"over": SandboxReason.TIME}
                kind = "lost"
            else:
                return told
            finally:
                self._give_back(child, whole=whole)
        raise SandboxError(kind, what=what)

    def _take(self, closings: int) -> Child | None:
        """Return a child that lives; one that died while nobody asked it anything is replaced."""
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


def _over(kind: SandboxReason, seconds: float, memory: int) -> OverLimit:
    """Return the limit, with how much it allows."""
    size = (MAX_ANSWER if kind is SandboxReason.OUTPUT else memory) // 2**20
    return OverLimit(Reason(kind, seconds=seconds, size=size))
