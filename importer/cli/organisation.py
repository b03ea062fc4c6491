"""``--from-org NAME``: an organisation's models, listed once, imported one after the other, and summed up."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from itertools import islice
from pathlib import Path
from typing import Any

from importer.app.decide import Decided, ImportRequest
from importer.app.organisation import Totals, decide_entry, facts, refusal
from importer.app.session import ImportSession
from importer.cli import bounded_map, messages, output
from importer.cli.answers import Journal
from importer.cli.importing import written
from importer.cli.options import chosen
from importer.config_file.name_allocator import Names
from importer.config_file.store import Store
from importer.errors import DocumentError, UsageError, described
from importer.hub import organisation
from importer.hub.endpoint import endpoint
from importer.hub.organisation import Entry, Filters
from importer.hub.rate_limit import Budget, under
from importer.progress import Progress, Step
from importer.sandbox import Sandbox

SHARE = 0.5  # of the time that the Hub's limit took, from which on it is what binds
SHOWN = 12  # values of a row of the summary
GROUPS = {
    "family": "families", "backend": "backends", "tool_parser": "tool parsers",
    "reasoning_parser": "reasoning parsers", "findings": "findings", "unknown": "unknown",
    "skipped": "skipped", "failed": "failed",
}  # fmt: skip


def run(arguments: argparse.Namespace, sandbox: Sandbox) -> None:
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
        for entry, future in bounded_map.in_order(todo, decide):
            line = self._answer(entry, future)
            journal.keep(output.json_text(line))
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
            output.json_line(output.json_text(line))
            sys.stdout.flush()

    def print_summary(self, name: str) -> None:
        """Print the totals as a table, with ``--json`` as a last line."""
        found = {"schema": 1, "organisation": name, **self.totals.to_json()}
        spent = {"requests": self.budget.requests, "seconds": round(time.monotonic() - self._began, 1)}
        if self._arguments.json:
            output.json_line(
                output.json_text(
                    {"summary": found | spent | {"hub_limit_seconds": round(self.budget.bound, 1)}}
                )
            )
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
                page = _parsed(line)
                if page is None:
                    break
                whole, kept, following = whole + len(line), kept + len(page["entries"]), page["next"]
            file.truncate(whole)
    except FileNotFoundError:
        return url, 0
    except OSError as error:
        raise DocumentError("cannot-write", path=path, problem=error.strerror) from None
    return following, kept


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        page = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return page if isinstance(page, dict) and {"entries", "next"} <= page.keys() else None


def entries(path: Path) -> Iterator[Entry]:
    """Yield the entries of a list on this disk, page by page."""
    with path.open("rb") as file:
        for line in file:
            page = _parsed(line)
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
