"""Import the models of a list."""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

from importer.app.decide import Decided
from importer.app.import_ import resolve_and_decide
from importer.app.import_request import ImportRequest
from importer.app.session import ImportSession
from importer.cli import output
from importer.cli.importing import error_line, written
from importer.cli.options import chosen
from importer.document.document_keys import json_text
from importer.document.name_allocator import Names
from importer.document.store import Store
from importer.errors import UsageError, described
from importer.hub.local import ANYWHERE
from importer.hub.rate_limit import Budget, under
from importer.progress import Step
from importer.sandbox import Sandbox

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


def run(arguments: argparse.Namespace, sandbox: Sandbox) -> int:
    """Answer every line; a reference that fails is answered with its error. Return the first failure's exit
    code, else 0.

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
        output.progress("import") as progress,
        ImportSession(sandbox=sandbox, consents=lambda _engine: not arguments.no_fetch) as bench,
    ):
        budget = Budget()

        def decide(request: ImportRequest) -> Decided:
            with under(budget, progress):
                return resolve_and_decide(request, bench, ANYWHERE, names=names)

        requests = (replace(pattern, reference=reference) for reference in references)
        failed = 0
        for done, (line, code) in enumerate(answers(requests, decide, finish), 1):
            failed = failed or code
            output.printed_json(line)
            sys.stdout.flush()
            progress(Step(f"{done} of {len(references)}", done, len(references)))
    return failed


def answers(requests: Iterable[ImportRequest], decide: Decide, finish: Finish) -> Iterator[tuple[str, int]]:
    """Yield one line per request with its exit code, in order; ``decide`` runs in several threads."""
    for request, future in in_order(requests, decide):
        yield _answer(request, future, finish)


def _answer(request: ImportRequest, future: Future[Decided], finish: Finish) -> tuple[str, int]:
    try:
        return finish(future.result()), 0
    except Exception as error:  # one reference must not cost the others their answers
        told = described(error)
        return error_line(request.reference, told), told.exit_code


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
