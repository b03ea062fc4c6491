"""Import the models of a list, with a journal to go on from."""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO, Self, TypeVar

from importer.app.decide import Decided
from importer.app.import_ import resolve_and_decide
from importer.app.import_request import ImportRequest
from importer.app.session import ImportSession
from importer.cli import output
from importer.cli.importing import error_line, written
from importer.cli.options import chosen
from importer.config import cache, default
from importer.document.document_keys import json_text
from importer.document.name_allocator import Names
from importer.document.store import Store
from importer.errors import DocumentError, UsageError, described
from importer.hub.local import ANYWHERE
from importer.hub.rate_limit import Budget, under
from importer.progress import Step
from importer.sandbox import Sandbox
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
                raise UsageError("bad-option", option="--from", problem=problem) from None
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

    def keep(self, line: str) -> None:
        """Add an answer and flush it, before it is shown."""
        try:
            self._file.write(line.encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise DocumentError("cannot-write", path=self._path, problem=error.strerror) from None

    def finish(self) -> None:
        """Remove the journal of a finished run."""
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
    around |= {name: default(name) for name in ("backend", "device")}
    what = json.dumps(
        [__version__, references, str(Path.cwd()), options, around], default=str, sort_keys=True
    )
    return cache() / "bulk" / f"{hashlib.sha256(what.encode()).hexdigest()[:32]}.jsonl"


Task = TypeVar("Task")
Result = TypeVar("Result")
AT_A_TIME = 8  # tasks under way


def in_order(tasks: Iterable[Task], work: Callable[[Task], Result]) -> Iterator[tuple[Task, Future[Result]]]:
    """Yield each task with its future, in order, with a bounded number under way: memory stays flat.

    ``work`` runs in several threads. They are daemons, so that Ctrl-C need not wait for a server that does
    not answer.
    """
    queue: SimpleQueue[tuple[Future[Result], Task] | None] = SimpleQueue()
    waiting: deque[tuple[Task, Future[Result]]] = deque()
    for _ in range(AT_A_TIME):
        here = copy_context()  # of the project's settings
        Thread(target=here.run, args=(_work, queue, work), daemon=True).start()
    try:
        for task in tasks:
            future: Future[Result] = Future()
            queue.put((future, task))
            waiting.append((task, future))
            if len(waiting) >= 2 * AT_A_TIME:
                yield waiting.popleft()
        while waiting:
            yield waiting.popleft()
    finally:
        for _ in range(AT_A_TIME):
            queue.put(None)


def _work(queue: SimpleQueue[tuple[Future[Result], Task] | None], work: Callable[[Task], Result]) -> None:
    while (assignment := queue.get()) is not None:
        future, task = assignment
        try:
            future.set_result(work(task))
        except BaseException as error:  # carried to the thread that waits for it
            future.set_exception(error)


Decide = Callable[[ImportRequest], Decided]
Finish = Callable[[Decided], str]


def run(arguments: argparse.Namespace, sandbox: Sandbox) -> None:
    """Answer every line; a reference that fails is answered with its error. Exit code 0 when all are.

    Answers are kept in a journal until the last one, so a run that was stopped goes on where it was.
    Raises UsageError where the list cannot be read.
    """
    references = list(_read(arguments.source))
    pattern = ImportRequest.of("", chosen(arguments))
    store = Store(Path(arguments.folder))
    names = Names(store)

    def finish(decided: Decided) -> str:
        """Plan and write in the order of the list, so that names do not depend on which answer was first."""
        settled = written(decided, names, store, arguments)
        return json_text(settled.report(store.path(settled.plan.name)))

    with (
        Journal.opened(references, arguments) as journal,
        output.progress("import") as progress,
        ImportSession(sandbox=sandbox, consents=lambda _engine: not arguments.no_fetch) as bench,
    ):
        done = 0
        for line in journal.answered(names):
            output.printed_json(line)
            done += 1
        budget = Budget()

        def decide(request: ImportRequest) -> Decided:
            with under(budget, progress):
                return resolve_and_decide(request, bench, ANYWHERE, names=names)

        todo = (replace(pattern, reference=reference) for reference in islice(references, done, None))
        for line in answers(todo, decide, finish):
            journal.keep(line)
            output.printed_json(line)
            sys.stdout.flush()
            done += 1
            progress(Step(f"{done} of {len(references)}", done, len(references)))
        journal.finish()


def answers(requests: Iterable[ImportRequest], decide: Decide, finish: Finish) -> Iterator[str]:
    """Yield one line per request, in order. ``decide`` runs in several threads, ``finish`` in this one."""
    for request, future in in_order(requests, decide):
        yield _answer(request, future, finish)


def _answer(request: ImportRequest, future: Future[Decided], finish: Finish) -> str:
    try:
        return finish(future.result())
    except Exception as error:  # one reference must not cost the others their answers
        return error_line(request.reference, described(error))


def _read(source: str) -> Iterator[str]:
    """Yield the references of a list: one a line, white space around them, empty lines and comments left
    out.
    """
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise UsageError("bad-option", option=f"--from {source}", problem=problem) from None
    for line in text.split("\n"):
        reference = line.strip()
        if reference and not reference.startswith("#"):
            yield reference
