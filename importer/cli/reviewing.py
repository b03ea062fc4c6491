"""``importer review``: show a document, then accept, edit or reject it, at a terminal or by an option."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from importer.app import approvals
from importer.app.parser_choice import check_approval, lacking
from importer.app.why import values
from importer.cli import messages, output
from importer.cli.editing import edit
from importer.cli.importing import user
from importer.config import now
from importer.document.receipt import ReviewEntry
from importer.document.review import page, record_review
from importer.document.store import Store, StoredDocument
from importer.errors import DocumentError, UsageError
from importer.exports.kinds import loss_json
from importer.exports.localai import losses
from importer.hub.snapshot import listed

QUESTION = "Accept, edit, reject or quit? [a/e/r/q] "
CHOICES = {"a": "accept", "e": "edit", "r": "reject", "q": "quit"}
HELP = "a accepts it as it is, e opens your editor, r NOTE rejects it, q leaves it."
DIGEST = re.compile("sha256:[0-9a-f]{64}")
LONGEST_NOTE = 4000  # characters
State = Literal["approved", "rejected"]


def review(arguments: argparse.Namespace) -> None:
    """Run the command ``review NAME``; raises ImporterError."""
    _check(arguments)
    store, name = Store(Path(arguments.folder)), arguments.name
    state: State | None = (
        "approved" if arguments.approve else None if arguments.reject is None else "rejected"
    )
    if state is not None:
        stored = _record(store, name, state, arguments.reject or arguments.note, arguments.digest)
    elif arguments.json or not _at_terminal():
        stored = store.load(name)
    else:
        _Interview(store, name, arguments.explain).run()
        return
    if arguments.json:
        output.json_line(_page(stored))
    elif state is None:
        _show(_page(stored))
        output.note("No terminal, so nothing was asked: --approve and --reject NOTE say it.")
    if arguments.explain:
        _evidence(stored)


def _check(arguments: argparse.Namespace) -> None:
    """Raise UsageError for invalid options."""
    if arguments.note is not None and not arguments.approve:
        raise UsageError("bad-option", option="--note", problem="is valid with --approve only")
    if arguments.digest is not None:
        if not (arguments.approve or arguments.reject is not None):
            raise UsageError(
                "bad-option", option="--digest", problem="is valid with --approve or --reject only"
            )
        if not DIGEST.fullmatch(arguments.digest):
            problem = "must be 'sha256:' and 64 hex digits"
            raise UsageError("bad-option", option=f"--digest {arguments.digest}", problem=problem)
    for option, text in (("--note", arguments.note), ("--reject", arguments.reject)):
        if text is not None and (unfit := _unfit(text)):
            raise UsageError("bad-option", option=option, problem=unfit)


def _unfit(note: str) -> str | None:
    """Return why a receipt cannot hold a note."""
    if not note.strip():
        return "must not be empty"
    if len(note) > LONGEST_NOTE:
        return f"must have at most {LONGEST_NOTE} characters"
    return "must be text" if any("\ud800" <= c <= "\udfff" for c in note) else None


def _at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()


class _Interview:
    """Asks until there is a review or the person leaves; a failed action is reported, and asked again."""

    def __init__(self, store: Store, name: str, explain: bool) -> None:
        self._store, self._name = store, name
        self._stored = self._look()
        if explain and self._stored is not None:
            _evidence(self._stored)

    def run(self) -> None:
        """Ask for actions; raises ImporterError where the document is missing."""
        done = False
        actions = {"accept": self._accept, "edit": self._edit, "reject": self._reject}
        while not done:
            choice, rest = _choice()
            if choice == "quit":
                return
            try:
                done = actions[choice](rest)
            except (DocumentError, UsageError) as error:
                output.note(messages.line(error))
                if error.kind == "changed":
                    self._stored = self._look()

    def _look(self) -> StoredDocument | None:
        """Show the document; return ``None`` and print the problem where its text is invalid."""
        try:
            stored = self._store.load(self._name)
        except DocumentError as error:
            if error.kind != "invalid":
                raise
            output.note(messages.line(error))
            return None
        _show(_page(stored))
        return stored

    def _accept(self, note: str) -> bool:
        return self._record("approved", note)

    def _reject(self, note: str) -> bool:
        note = note or (output.ask("Why? ") or "").strip()
        if note:
            return self._record("rejected", note)
        output.note("Not rejected: a rejection says why.")
        return False

    def _record(self, state: State, note: str) -> bool:
        problem = _unfit(note) if note else None
        if self._stored is None or problem is not None:
            output.note(f"Not {state}: {problem or 'it cannot be read as it is; e opens your editor'}.")
            return False
        _record(self._store, self._name, state, note or None, self._stored.digest)
        return True

    def _edit(self, _: str) -> bool:
        facts = None if self._stored is None else self._stored.facts
        if edit(self._store, self._store.path(self._name), facts):
            self._stored = self._look()
        return False


def _choice() -> tuple[str, str]:
    """Return the chosen action and its argument; the end of input leaves."""
    while True:
        answer = output.ask(QUESTION)
        word, _, rest = ("q" if answer is None else answer.strip()).partition(" ")
        choice = CHOICES.get(word.lower(), word.lower())
        if choice in CHOICES.values():
            return choice, rest.strip()
        output.note(HELP)


def _record(store: Store, name: str, state: State, note: str | None, seen: str | None) -> StoredDocument:
    note = None if note is None else note.strip()
    present = store.load(name)
    if state == "approved":
        check_approval(present)
    entry = ReviewEntry(state, user(), now(), note)
    with approvals.recorded(present.data, present.digest, approved=state == "approved"):
        stored = record_review(store, name, entry, seen or present.digest)
    output.note(f"{state.capitalize()} {name} at {stored.digest}{f': {note}' if note else ''}.")
    return stored


def _page(stored: StoredDocument) -> dict[str, object]:
    """Return everything that a reviewer is shown, effective values and losses of an entry included."""
    found = losses(stored.data, stored.receipt) if stored.fault is None else None
    shown = page(stored)
    unknown = [error.message for _, error in lacking(stored.data)]
    return {
        **shown,
        "problems": [*listed(shown["problems"]), *unknown],
        "values": values(stored),
        "losses": None if found is None else [loss_json(loss) for loss in found],
    }


def _show(view: Mapping[str, Any]) -> None:
    """Print the document for a review: warnings first, then the decisions, the states last."""
    revision = f" at {view['revision']}" if view["revision"] else ""
    output.line(output.plain(f"{view['model']}{revision} → {view['path']}"))
    for text in view["warnings"]:
        output.line(output.plain(f"warning: {text}"))
    output.console().print(output.decisions(view["decisions"]))
    lines = [f"fit: {view['fit']['message']}"] if view["fit"] else []
    lines += [f"proof: {text}" for text in view["proof"]]
    lines += [f"unknown: {name}: {reason}" for name, reason in view["unknown"].items()]
    lines += [f"LocalAI, {loss['effect']}: {loss['message']}" for loss in view["losses"] or ()]
    if view["edited"]:
        lines += ["Edited since it was imported:", *_changes(view["edited"])]
    lines += _approval(view)
    if view["problems"]:
        lines += ["It cannot be approved as it is:", *(f"  {p}" for p in view["problems"])]
    if view["last_review"]["state"] == "rejected":
        lines.append(f"Rejected by {_who(view['last_review'])}: {view['last_review'].get('note')}")
    lines.append(f"digest: {view['digest']}")
    for text in lines:
        output.line(output.plain(text))
    output.line(f"review: {view['review']}; validation: {view['validation']}")


def _approval(view: Mapping[str, Any]) -> list[str]:
    """Return what differs from the version that was approved last."""
    if view["approved"] is None:
        return ["Never approved."]
    who = _who(view["approved"])
    if not view["differences"]:
        return [f"The same data as approved by {who}."]
    return [f"Changed since it was approved by {who}:", *_changes(view["differences"])]


def _changes(changes: list[dict[str, object]]) -> list[str]:
    return [f"  {output.change(change)}" for change in changes]


def _who(word: Mapping[str, object]) -> str:
    return f"{word.get('by')}, {word.get('at')}"


def _evidence(stored: StoredDocument) -> None:
    receipt = stored.need_receipt()
    output.without_details(stored)
    output.explain(receipt.evidence, receipt.fit, receipt.proof)
