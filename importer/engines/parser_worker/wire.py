"""The wire of a worker: JSON lines on descriptors of their own, and the limits of an engine's code.

A request is one line, ``{"id", "op", …}``. Each answer is one line: any number of ``{"id", "item"}``, then
``{"id", "done"}`` or ``{"id", "error"}``. ``done`` is ``true``, or why the repository's tokenizer does not
load. Output of an engine goes to standard error, which is a log. An item that a parser failed on is
``{"error": {"kind", …}}``: see ``failure``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .stand_ins import StandInUsed

Operation = Callable[[Mapping[str, Any]], Iterator[Any]]
GIB = 1 << 30
UNLOADED: dict[str, str] = {}  # folder of a tokenizer to why it does not load; the last one asked for


class Overrun(BaseException):  # not an Exception: parsers swallow those and would loop on
    """A parser exceeded its time limit."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"took longer than {seconds:g} s")
        self.seconds = seconds


class Line:
    """The two descriptors to the client, taken away from everything else in the process."""

    def __init__(self) -> None:
        self.requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
        self.answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for the process's life

    def send(self, answer: Mapping[str, Any]) -> None:
        """Write one answer."""
        self.answers.write(json.dumps(answer) + "\n")
        self.answers.flush()


def serve(line: Line, operations: Mapping[str, Operation]) -> None:
    """Answer requests until the client hangs up.

    The engine is imported by now, so memory is bounded from here.
    """
    limit_memory(2 * GIB)
    for text in line.requests:
        request = json.loads(text)
        try:
            for item in operations[request["op"]](request):
                line.send({"id": request["id"], "item": item})
        except (Overrun, StandInUsed, Exception) as error:
            line.send({"id": request["id"], "error": describe(error)})
        else:
            folder = request.get("tokenizer", {}).get("directory")
            line.send({"id": request["id"], "done": UNLOADED.get(folder, True)})


def limit_memory(extra: int) -> None:
    """Let the process grow by ``extra`` bytes and no further, where the system can enforce it."""
    try:
        import resource
        from pathlib import Path

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + extra
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    except (ImportError, OSError, ValueError):
        return


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise Overrun in the block after ``seconds``, again and again should a parser swallow it."""

    def ring(_signal: int, _frame: object) -> None:
        raise Overrun(seconds)

    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.2)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def attempt(seconds: float, action: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the result of the action, or ``{"error"}``: a failure of a parser never reaches the others."""
    try:
        with at_most(seconds):
            return action()
    except (Overrun, StandInUsed, Exception, SystemExit) as error:
        return {"error": failure(error)}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)  # the alarm may have fired while it was being removed


def failure(error: BaseException) -> dict[str, Any]:
    """Return why a parser failed on an item: an accident of this machine, or ``raised``."""
    return accident(error) or {"kind": "raised", "words": describe(error)}


def accident(error: BaseException | None) -> dict[str, Any] | None:
    """Return ``overrun`` with its ``seconds``, ``memory``, ``absent`` or ``module``: effects of this machine.

    It may be wrapped in an engine's own error; ``None`` for one that is the same on every machine.
    """
    while error is not None:
        if isinstance(error, Overrun):
            return {"kind": "overrun", "seconds": error.seconds}
        if isinstance(error, MemoryError):
            return {"kind": "memory"}
        if isinstance(error, StandInUsed):
            return {"kind": "absent", "words": error.name}
        if isinstance(error, ImportError):
            return {"kind": "module", "words": describe(error)}
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None


def describe(error: BaseException) -> str:
    """Return ``ClassName: message`` on one line, cut to 300 characters."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
