"""The command ``import``: decide, show, review, write and validate one model."""

from __future__ import annotations

import argparse
import getpass
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from importer.app.decide import Decided
from importer.app.import_ import Plan, Settled, build_plan, merge_plan, plan, write
from importer.app.import_request import ImportRequest
from importer.app.session import ImportSession
from importer.cli import messages, output
from importer.cli.import_summary import attention, import_lines
from importer.cli.options import INSTALLED, chosen
from importer.cli.streams import VERBOSITY
from importer.config import now
from importer.document.build import to_json
from importer.document.document_keys import json_text
from importer.document.grants import set_values
from importer.document.merge import BOOKKEEPING
from importer.document.name_allocator import Names
from importer.document.store import Store
from importer.engines import get
from importer.errors import DocumentError, ImporterError, ValidationError
from importer.hub.local import ANYWHERE
from importer.sandbox import Sandbox
from importer.sentences import render

if TYPE_CHECKING:
    from importer.document.receipt import ReviewEntry


def run(arguments: argparse.Namespace, sandbox: Sandbox) -> None:
    """Decide, show, write, validate; raises ImporterError."""
    store = Store(Path(arguments.folder))
    request = ImportRequest.of(arguments.reference, chosen(arguments))
    if arguments.validate not in (None, INSTALLED):
        get(arguments.validate)  # an unknown engine is an error before anything is done
    with (
        output.progress(arguments.reference) as progress,
        ImportSession(sandbox=sandbox, consents=partial(_may_fetch, arguments, progress)) as bench,
    ):
        planned = plan(request, Names(store), bench, ANYWHERE, progress)
    path = store.path(planned.name)
    settled = _settled(arguments, planned, store)
    planned = settled.plan
    for warning in (*settled.pending(request), *settled.warnings):
        output.note(attention(warning))
    for line in output.tries(planned.fit.tries()):
        output.note(line)
    if not arguments.json and VERBOSITY.get() >= 0:
        _show(planned, path)
    _print_changes(request, settled)
    if arguments.explain:
        _explain(planned)
    if arguments.dry_run:
        output.note("Dry run: nothing was written.")
    elif (review := _review(arguments, request, settled)) is not False:
        _write(arguments, request, settled, store, review)
    if arguments.json:
        output.json_line(settled.report(path))


def _may_fetch(arguments: argparse.Namespace, progress: output.Progress, engine: str) -> bool:
    """Return whether the parsers of an engine may be fetched: a person at a terminal decides."""
    if arguments.no_fetch:
        return False
    if arguments.yes or arguments.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    question = f"The parsers of {engine} prove this without the engine: 70 MB, once. Fetch them? [Y/n] "
    return (progress.ask(question) or "").strip().lower() in {"", "y", "yes"}


def _show(planned: Plan, path: Path) -> None:
    subject = planned.snapshot.model_id or str(planned.snapshot.directory)
    revision = f" at {planned.snapshot.revision}" if planned.snapshot.revision else ""
    output.line(output.plain(f"{subject}{revision} → {path}"))
    for text in import_lines(planned):
        output.line(text)


def _explain(planned: Plan) -> None:
    """Print every decision with its reasons, the evidence, the fit, the proof and the unknowns to stderr."""
    from importer.document.receipt import evidence_json

    worded = {key: to_json(decision, messages.INSTEAD) for key, decision in planned.decisions.items()}
    output.console(stderr=True).print(output.decisions(worded))
    proof = None if planned.proof is None else planned.proof.to_json()
    output.explain(evidence_json(planned.evidence), planned.fit.to_json(), proof)
    for name, reason in planned.snapshot.unknown.items():
        output.note(f"unknown: {name}: {render(reason)}")


def _review(arguments: argparse.Namespace, request: ImportRequest, settled: Settled) -> ReviewEntry | bool:
    """Return the approval of --yes or of the terminal; True leaves it pending, False stops."""
    from importer.document.receipt import ReviewEntry

    if arguments.yes:
        return settled.approval(_approval_by_option(), request) or True
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or arguments.json:
        return True
    answer = output.ask("Accept these decisions and write the document? [y/N] ") or ""
    if answer.strip().lower() in {"y", "yes"}:
        return ReviewEntry("approved", user(), now())
    output.note("Stopped: nothing was written.")
    return False


STANDING = {"draft": "a draft", "stale": "not what was approved", "rejected": "what was rejected"}


def _settled(arguments: argparse.Namespace, planned: Plan, store: Store) -> Settled:
    try:
        return merge_plan(planned, store, arguments.take)
    except DocumentError as error:
        for conflict in error.details.get("conflicts", ()) if not arguments.json else ():  # type: ignore[attr-defined]
            output.note(render(conflict.reason))
        raise


def _print_changes(typed: ImportRequest, settled: Settled) -> None:
    """Print the settings and edits that are kept from before, and the changes of the file's values."""
    whole = settled.planned.request
    brought = {warning.key for warning in settled.pending(typed)}  # a stranger's file may have said it
    before = {} if settled.old is None else whole.added(typed)  # a first import has importer.toml alone
    remembered = [
        f"{key}={output.value(value)}" for key, value in before.items()
        if not any(grant.key in brought for grant in set_values({key: value}, settled.plan.built.data))
    ]  # fmt: skip
    if typed.template is None and whole.template is not None:
        word = whole.template.word
        output.note(f"As you said at an earlier import: --template {word}. --template none takes it back.")
    if remembered:
        output.note(f"As you said at an earlier import: {', '.join(remembered)}. --unset KEY takes it back.")
    for title, changes in (("Your edit stays", settled.edits), ("Changes", settled.changes)):
        for change in changes:
            if change.path[0] not in BOOKKEEPING:
                output.note(f"{title}: {change.line()}")


def _write(
    arguments: argparse.Namespace,
    request: ImportRequest,
    settled: Settled,
    store: Store,
    review: ReviewEntry | bool,
) -> None:
    from importer.cli.validating import after_import
    from importer.document.receipt import ReviewEntry
    from importer.hub import digests

    planned = settled.plan
    with output.progress("import") as progress:
        digests.imported(planned.snapshot, progress)  # read before the lock, and kept for the receipt
    with store.locked():
        write(settled, store, review if isinstance(review, ReviewEntry) else None)
    state = store.load(planned.name).review
    same = settled.old is not None and settled.old.text == settled.text
    wrote = f"{store.path(planned.name)} stays as it is" if same else f"Wrote {store.path(planned.name)}"
    output.note(f"{wrote}; review: {'pending' if state == 'draft' else state}.")
    if state in STANDING:
        how = output.typed("review", planned.name, arguments.folder)
        output.note(f"It is {STANDING[state]}: {how} shows it and asks.")
    try:
        after_import(arguments, planned, store, request.preferences.values)
    except ValidationError:
        if arguments.json:  # the line is always printed; the exit code has the result
            output.json_line(settled.report(store.path(planned.name)))
        raise


def error_line(reference: str | None, error: ImporterError) -> str:
    """Return the frozen line of --json for a failure."""
    members = messages.error_json(error, reference)
    conflicts = error.details.get("conflicts")
    if isinstance(conflicts, list):
        members["conflicts"] = [conflict.to_json() for conflict in conflicts]
    troubles = error.details.get("troubles")
    if isinstance(troubles, tuple):
        members["troubles"] = [one.to_json(messages.text) for one in troubles]
    return json_text({"schema": 1, "reference": reference, "error": members})


def written(decided: Decided, names: Names, store: Store, arguments: argparse.Namespace) -> Settled:
    """Plan a document of a list, and write it where this is no dry run."""
    with nullcontext() if arguments.dry_run else store.locked():
        settled = merge_plan(build_plan(decided, names), store, arguments.take)
        if not arguments.dry_run:
            approval = _approval_by_option() if arguments.yes else None
            write(settled, store, settled.approval(approval, ImportRequest.of("", chosen(arguments))))
    return settled


def _approval_by_option() -> ReviewEntry:
    """Return the review that --yes records."""
    from importer.document.receipt import ReviewEntry

    return ReviewEntry("approved", f"{user()} (--yes)", now())


def user() -> str:
    """Return the user's name, for the receipt."""
    from importer.storage.actors import NOBODY

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return NOBODY
