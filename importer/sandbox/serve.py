"""The child's main loop: loads every task, confines itself, reports that it is ready, and answers JSON lines.

Request   ``{"task": name, "seconds": processor time, "question": …}``
Response  ``{"answer": …}``, ``{"over": kind}``, ``{"error": …}`` (ImporterError) or ``{"fault": traceback}``;
          ``"spent": true`` after growth: the next call requires a new process.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import traceback
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from importer.errors import ImporterError
from importer.sandbox.codec import codec_of, encode_error
from importer.sandbox.limits import OutOfTimeError, confine, deadline, processor
from importer.sandbox.task import MAX_ANSWER, TASKS, Response, SandboxReason, Task

GROWN = 256 * 2**20  # bytes
READY = b'{"ready": true}\n'
Work = Callable[[Any], Any]
Resident = Callable[[], int]


def main(memory: int) -> None:
    """Serve until stdin closes. ``memory`` is bytes of address space for the process."""
    gc.disable()  # imported modules stay: collections are a tenth of the start
    tasks = {name: _loaded(name) for name in TASKS}
    resident = _resident()
    gc.freeze()
    gc.enable()
    confine(memory)
    _write(READY)
    for line in sys.stdin.buffer:
        _write(_answer(tasks, line, resident))


def _loaded(name: str) -> Work:
    """Return a task as a function from the JSON of its question to the JSON of its answer."""
    task: Task[Any, Any] = _named(name)
    if task.warm:
        _named(task.warm)()
    return partial(_work, codec_of(task.question).decode, _named(task.function), codec_of(task.answer).encode)


def _named(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _work(decode: Work, function: Work, encode: Work, raw: Any) -> Any:
    return encode(function(decode(raw)))


def _resident() -> Resident:
    """Return a function that counts the bytes of this process in memory, also when no file can be opened.

    On Linux a process inherits the peak of its parent, so ``getrusage`` is of no use there. psutil opens the
    file for each reading.
    """
    if sys.platform == "darwin":
        return lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    statm, page = os.open("/proc/self/statm", os.O_RDONLY), resource.getpagesize()
    return lambda: int(os.pread(statm, 100, 0).split()[1]) * page


def _answer(tasks: dict[str, Work], line: bytes, resident: Resident) -> bytes:
    def encoded(answer: Response) -> bytes:
        grown: Response = {"spent": True} if resident() > GROWN else {}
        text = _line(answer | grown)
        return text if len(text) <= MAX_ANSWER else _line({"over": SandboxReason.OUTPUT} | grown)

    try:
        request = json.loads(line)
        deadline(request["seconds"])
        with processor(request["seconds"]):
            return encoded({"answer": tasks[request["task"]](request["question"])})
    except OutOfTimeError:
        return encoded({"over": SandboxReason.TIME})
    except MemoryError:
        return encoded({"over": SandboxReason.MEMORY})
    except RecursionError:
        return encoded({"over": SandboxReason.DEPTH})
    except ImporterError as error:
        return encoded({"error": encode_error(error)})
    except Exception:
        return encoded({"fault": traceback.format_exc()})


def _line(answer: Response) -> bytes:
    return json.dumps(answer).encode() + b"\n"


def _write(text: bytes) -> None:
    rest = memoryview(text)
    while rest:
        rest = rest[os.write(1, rest) :]
