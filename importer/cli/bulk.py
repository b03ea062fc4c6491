"""``--from FILE``: many references, one line of JSON for each, in order, errors included."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from itertools import islice
from pathlib import Path

from importer.app.decide import Decided, ImportRequest
from importer.app.import_ import resolve_and_decide
from importer.app.session import ImportSession
from importer.cli import bounded_map, output
from importer.cli.answers import Journal
from importer.cli.importing import error_line, written
from importer.cli.options import chosen
from importer.config_file.name_allocator import Names
from importer.config_file.store import Store
from importer.errors import UsageError, described
from importer.hub.local import ANYWHERE
from importer.hub.rate_limit import Budget, under
from importer.progress import Step
from importer.sandbox import Sandbox

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
        return output.json_text(settled.report(store.path(settled.plan.name)))

    with (
        Journal.opened(references, arguments) as journal,
        output.progress("import") as progress,
        ImportSession(sandbox=sandbox) as bench,
    ):
        done = 0
        for line in journal.answered(names):
            output.json_line(line)
            done += 1
        budget = Budget()

        def decide(request: ImportRequest) -> Decided:
            with under(budget, progress):
                return resolve_and_decide(request, bench, ANYWHERE, names=names)

        todo = (replace(pattern, reference=reference) for reference in islice(references, done, None))
        for line in answers(todo, decide, finish):
            journal.keep(line)
            output.json_line(line)
            sys.stdout.flush()
            done += 1
            progress(Step(f"{done} of {len(references)}", done, len(references)))
        journal.finish()


def answers(requests: Iterable[ImportRequest], decide: Decide, finish: Finish) -> Iterator[str]:
    """Yield one line per request, in order. ``decide`` runs in several threads, ``finish`` in this one."""
    for request, future in bounded_map.in_order(requests, decide):
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
