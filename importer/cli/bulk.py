"""Import many at a time: the models of a list or of an organisation, with a journal to go on from."""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO, Self, TypeVar

from importer.app.decide import Decided, ImportRequest
from importer.app.import_ import resolve_and_decide
from importer.app.organisation import Totals, decide_entry, facts, refusal
from importer.app.session import ImportSession
from importer.cli import messages, output
from importer.cli.importing import error_line, written
from importer.cli.options import chosen
from importer.config import home
from importer.config_file.document_keys import json_text
from importer.config_file.name_allocator import Names
from importer.config_file.store import Store
from importer.errors import DocumentError, UsageError, described
from importer.hub import organisation
from importer.hub.endpoint import endpoint
from importer.hub.local import ANYWHERE
from importer.hub.organisation import Entry, Filters
from importer.hub.rate_limit import Budget, under
from importer.progress import Progress, Step
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
                option = "--from" if arguments.source is not None else "--from-org"
                raise UsageError("bad-option", option=option, problem=problem) from None
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

    @property
    def list_path(self) -> Path:
        """Return the place of a list that belongs to this run."""
        return self._path.with_suffix(".list")

    def keep(self, line: str) -> None:
        """Add an answer and flush it, before it is shown."""
        try:
            self._file.write(line.encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise DocumentError("cannot-write", path=self._path, problem=error.strerror) from None

    def finish(self) -> None:
        """Remove the journal of a finished run, and its list."""
        self.list_path.unlink(missing_ok=True)
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
    what = json.dumps(
        [__version__, references, str(Path.cwd()), options, around], default=str, sort_keys=True
    )
    return home() / "cache" / "bulk" / f"{hashlib.sha256(what.encode()).hexdigest()[:32]}.jsonl"


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
        Thread(target=_work, args=(queue, work), daemon=True).start()
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
        ImportSession(sandbox=sandbox) as bench,
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


SHARE = 0.5  # of the time that the Hub's limit took, from which on it is what binds
SHOWN = 12  # values of a row of the summary
GROUPS = {
    "family": "families", "backend": "backends", "tool_parser": "tool parsers",
    "reasoning_parser": "reasoning parsers", "findings": "findings", "unknown": "unknown",
    "skipped": "skipped", "failed": "failed",
}  # fmt: skip


def import_organisation(arguments: argparse.Namespace, sandbox: Sandbox) -> None:
    """List, say the number, import, and print the summary; a run that was stopped goes on where it was.

    Raises UsageError for a bad name, filter or limit, and HubError where the list cannot be had.
    """
    name, filters = (
        organisation.check_name(arguments.organisation),
        organisation.parse_filters(arguments.filters),
    )
    work = _Import(arguments, Budget())
    with (
        Journal.opened([f"organisation {name}"], arguments) as journal,
        output.progress(name) as progress,
        ImportSession(sandbox=sandbox) as bench,
    ):
        with under(work.budget, progress):
            _list(journal.list_path, organisation.first(name, filters), filters, arguments.limit, progress)
        for line in journal.answered(work.names):
            work.count(json.loads(line))
        if work.totals.listed == 0 and not _agreed(arguments, name, journal, work.budget):
            output.note("Stopped: nothing was written.")
            return
        work.run(journal, bench, progress)
        work.print_summary(name)
        journal.finish()


class _Import:
    """The import of all entries of a list."""

    def __init__(self, arguments: argparse.Namespace, budget: Budget) -> None:
        self._arguments, self.budget = arguments, budget
        self._store = Store(Path(arguments.folder))
        self._pattern = ImportRequest.of("", chosen(arguments))
        self._began = time.monotonic()
        self.names, self.totals = Names(self._store), Totals()

    def run(self, journal: Journal, bench: ImportSession, progress: Progress) -> None:
        """Import the entries without an answer, in the order of the list: names depend on it alone."""
        done = before = self.totals.listed
        total = sum(1 for _ in entries(journal.list_path))

        def decide(entry: Entry) -> Decided:
            with under(self.budget, progress):
                return decide_entry(self._pattern, entry, bench, self.names)

        todo = islice(entries(journal.list_path), done, None)
        for entry, future in in_order(todo, decide):
            line = self._answer(entry, future)
            journal.keep(json_text(line))
            self.count(line)
            done += 1
            progress(Step(f"{done:,} of {total:,}, {self._pace(done - before)}", done, total))

    def count(self, line: Mapping[str, Any]) -> None:
        """Add an answer to the totals, and print it where lines are asked for."""
        if "error" in line:
            self.totals.refuse(line["model"], line["error"]["kind"])
        else:
            self.totals.add(line)
        if self._arguments.json:
            output.json_line(line)
            sys.stdout.flush()

    def print_summary(self, name: str) -> None:
        """Print the totals as a table, with ``--json`` as a last line."""
        found = {"schema": 1, "organisation": name, **self.totals.to_json()}
        spent = {"requests": self.budget.requests, "seconds": round(time.monotonic() - self._began, 1)}
        if self._arguments.json:
            output.json_line({"summary": found | spent | {"hub_limit_seconds": round(self.budget.bound, 1)}})
            return
        rows = [("imported", f"{self.totals.imported:,} of {self.totals.listed:,}")]
        rows += [(word, _counted(found[group])) for group, word in GROUPS.items() if found[group]]
        rows.append(("requests", f"{spent['requests']:,}, {self._pace(self.totals.listed)}"))
        output.console().print(output.table((name, ""), rows))
        for kind, models in self.totals.examples.items():
            if kind in found["failed"]:
                output.note(f"failed: {kind}: {', '.join(models)}")

    def _pace(self, done: int) -> str:
        seconds = max(time.monotonic() - self._began, 0.001)
        binds = ", the Hub's limit binds" if self.budget.bound > SHARE * seconds else ""
        return f"{done / seconds:.1f} repositories a second{binds}"

    def _answer(self, entry: Entry, future: Future[Decided]) -> dict[str, object]:
        """Plan and write one document; every failure is an answer of its own."""
        try:
            settled = written(future.result(), self.names, self._store, self._arguments)
        except Exception as error:  # one repository must not cost the others their answers
            failed = messages.error_json(described(error))
            return {"schema": 1, "model": entry.repo, "revision": entry.commit, "error": failed}
        plan = settled.plan
        return {
            "schema": 1, "model": plan.model, "revision": plan.snapshot.revision, "name": plan.name,
            "path": str(self._store.path(plan.name)), **facts(settled),
        }  # fmt: skip


def _list(path: Path, url: str, filters: Filters, limit: int | None, progress: Progress) -> None:
    """Write the list to a file, a line for each page; one that was stopped goes on behind its last page."""
    following, kept = _begun(path, url)
    if following is None:
        return
    try:
        with path.open("ab") as file:
            for page in organisation.pages(following, filters):
                room = page.entries if limit is None else page.entries[: limit - kept]
                kept += len(room)
                last = page.following is None or (limit is not None and kept >= limit)
                line = {"entries": [one.to_json() for one in room], "next": None if last else page.following}
                file.write(json.dumps(line).encode() + b"\n")
                file.flush()
                progress(f"{kept:,} repositories listed")
                if last:
                    return
    except OSError as error:
        raise DocumentError("cannot-write", path=path, problem=error.strerror) from None


def _begun(path: Path, url: str) -> tuple[str | None, int]:
    """Return the URL of the next page and the number of entries so far; a broken last line is removed."""
    following: str | None = url
    whole = kept = 0
    try:
        with path.open("r+b") as file:
            for line in file:
                page = _page(line)
                if page is None:
                    break
                whole, kept, following = whole + len(line), kept + len(page["entries"]), page["next"]
            file.truncate(whole)
    except FileNotFoundError:
        return url, 0
    except OSError as error:
        raise DocumentError("cannot-write", path=path, problem=error.strerror) from None
    return following, kept


def _page(line: bytes) -> dict[str, Any] | None:
    page = _parsed(line)
    return page if page is not None and {"entries", "next"} <= page.keys() else None


def entries(path: Path) -> Iterator[Entry]:
    """Yield the entries of a list on this disk, page by page."""
    with path.open("rb") as file:
        for line in file:
            page = _page(line)
            for one in [] if page is None else page["entries"]:
                yield Entry.from_json(one)


def _agreed(arguments: argparse.Namespace, name: str, journal: Journal, budget: Budget) -> bool:
    """Say how many repositories there are; return whether to begin. The list is forgotten otherwise.

    Raises UsageError where neither an option nor a person agrees.
    """
    listed = entries(journal.list_path)
    kinds = Counter("" if (error := refusal(one)) is None else error.kind for one in listed)
    total, left = kinds.total(), kinds.pop("", 0)
    skipped = "".join(f", {number:,} {kind}" for kind, number in kinds.most_common())
    output.note(f"{name}: {total:,} repositories, {left:,} to import{skipped}.{_duration(left, budget)}")
    if arguments.yes or arguments.dry_run or arguments.limit is not None or total == 0:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        journal.finish()
        problem = f"{total:,} repositories need --yes, --limit or --dry-run where nobody can be asked"
        raise UsageError("bad-option", option="--from-org", problem=problem)
    if (output.ask("Import them? [y/N] ") or "").strip().lower() in {"y", "yes"}:
        return True
    journal.finish()
    return False


def _duration(number: int, budget: Budget) -> str:
    """Return the time that the Hub's limit sets, where it is known: each takes one call of the API."""
    quota = budget.quota(f"{endpoint()}/api/models")
    if quota is None or not quota[0] or number <= quota[0]:
        return ""
    minutes = number / quota[0] * quota[1] / 60
    return (
        f" At the Hub's limit of {quota[0]:,} calls in {quota[1]} s they take {minutes:,.0f} minutes or more."
    )


def _counted(counts: Mapping[str, int]) -> str:
    """Return values with their numbers, the most frequent first."""
    shown = [f"{value} {number:,}" for value, number in islice(counts.items(), SHOWN)]
    return ", ".join([*shown, f"and {len(counts) - SHOWN} more"] if len(counts) > SHOWN else shown)
