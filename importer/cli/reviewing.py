"""``importer review``: show a document, then accept, edit or reject it, at a terminal or by an option.

Edit a document in the person's own editor: on a copy, checked on each save, written whole or not at
all.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from importer import launcher
from importer.app import approvals
from importer.cli import messages, output
from importer.cli.importing import user
from importer.config import now
from importer.config_file import schema
from importer.config_file.build import SCHEMA_FILE
from importer.config_file.check import RecordedFacts
from importer.config_file.effective import Editor, effective, renewed
from importer.config_file.receipt import ReviewEntry
from importer.config_file.review import page, record_review
from importer.config_file.schema import problems
from importer.config_file.store import Store, StoredDocument, load, write_all
from importer.engines.registries import sampling_defaults
from importer.errors import DocumentError, UsageError
from importer.exports.base import loss_json
from importer.exports.localai import losses

FALLBACK = "vi"
REMARK = "# importer: "
HEADING = "this cannot be saved as it is; these comments are taken out again"
MOST_REMARKS = 20


class _Remark(NamedTuple):
    """A problem with its line's number, and that line."""

    problem: str
    line: str = ""


def edit(store: Store, path: Path, model: RecordedFacts | None = None) -> bool:
    """Let the person edit a document until it is valid or given up; return whether it was written.

    ``model`` has the facts of the model that the import recorded. Raises UsageError where the editor fails,
    DocumentError("edited") where the file changed meanwhile; the document then stays.
    """
    before = _read(path)
    with tempfile.TemporaryDirectory(prefix="importer-") as folder:
        copy = Path(folder) / path.name
        write_all({Path(folder) / SCHEMA_FILE: schema.text("document")})
        text, remarks = before, _remarks_on(before, model)
        while True:
            _write(copy, _with_remarks(text, remarks))
            _run(copy)
            text = _without_remarks(_read(copy))
            if text == before:
                output.note("Nothing was changed.")
                return False
            remarks = _remarks_on(text, model)
            if not remarks:
                break
            _print_remarks(remarks)
            answer = output.ask("Edit it again? [Y/n] ")
            if answer is None or answer.strip().lower() in {"n", "no"}:
                output.note(f"Given up: {path} is as it was.")
                return False
    _replace(store, path, before, text)
    output.note(f"Wrote {path}.")
    return True


def command() -> list[str]:
    """Return the editor's command line, by VISUAL, then EDITOR, then vi, without a shell; raises
    UsageError.
    """
    typed = next((v for n in ("VISUAL", "EDITOR") if (v := os.environ.get(n, "").strip())), FALLBACK)
    try:
        return shlex.split(typed)
    except ValueError as error:
        raise UsageError("editor", editor=typed, problem=error) from None


def _run(copy: Path) -> None:
    """Raise UsageError where the editor cannot be started or ends with anything but success."""
    words = command()
    try:
        with _its_terminal():
            code = launcher.attend([*words, str(copy)])
    except OSError as error:
        raise UsageError("editor", editor=words[0], problem=error.strerror or error) from None
    if code:
        ended = f"exit code {code}" if code > 0 else f"signal {-code}"
        raise UsageError("editor", editor=words[0], problem=f"it ended with {ended}")


@contextmanager
def _its_terminal() -> Iterator[None]:
    """Leave Ctrl-C to the editor while it runs, and restore the terminal after an editor that dies."""
    import termios

    # A handler and not SIG_IGN, which the editor would inherit.
    handler = signal.signal(signal.SIGINT, lambda *_: None)
    modes = None
    with suppress(termios.error, OSError, ValueError):
        modes = termios.tcgetattr(sys.stdin.fileno())
    try:
        yield
    finally:
        if modes is not None:
            with suppress(termios.error):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, modes)
        signal.signal(signal.SIGINT, handler)


def _remarks_on(text: str, model: RecordedFacts | None) -> list[_Remark]:
    """Return the problems of the text, with line numbers below these remarks; empty for a valid text."""
    number = len(problems(text, model=model))
    shown = min(number, MOST_REMARKS)
    below = "#\n" * (1 + shown + (number > shown)) + text
    lines = below.splitlines()
    remarks = [
        _Remark(
            " ".join(output.plain(str(p)).split()), lines[p.line - 1].strip() if p.line <= len(lines) else ""
        )
        for p in problems(below, model=model)[:shown]
    ]
    return remarks + [_Remark(f"and {number - shown} more")] * (number > shown)


def _with_remarks(text: str, remarks: Sequence[_Remark]) -> str:
    above = [HEADING, *(r.problem for r in remarks)] if remarks else []
    return "".join(f"{REMARK}{line}\n" for line in above) + text


def _without_remarks(text: str) -> str:
    lines = text.splitlines(keepends=True)
    first = next((n for n, line in enumerate(lines) if not line.startswith(REMARK)), len(lines))
    return "".join(lines[first:])


def _print_remarks(remarks: Sequence[_Remark]) -> None:
    """Print each problem, and below it its line."""
    output.note("This cannot be saved as it is:")
    for remark in remarks:
        output.note(f"  {remark.problem}" + (f"\n      {remark.line[:200]}" if remark.line else ""))


def _replace(store: Store, path: Path, before: str, text: str) -> None:
    """Write the edited text; where another process wrote meanwhile, keep it in a file beside."""
    with store.locked():
        if _read(path) == before:
            write_all({path: _commented(path, text)})
            return
    descriptor, name = tempfile.mkstemp(prefix=f"{path.stem}-", suffix=path.suffix)
    os.close(descriptor)
    _write(Path(name), text)
    raise DocumentError("edited", path=path, copy=name)


def _commented(path: Path, text: str) -> str:
    """Return the edited text with the person's name in the comments of importer at changed values."""
    try:
        stored = load(path)
    except DocumentError:  # the text before the edit was no document: it has no comments of importer
        return text
    return renewed(stored, text, Editor(user(), now()))


def _read(path: Path) -> str:
    """Return a file's text; bytes that are not UTF-8 are found by the check."""
    try:
        return path.read_bytes().decode(errors="surrogateescape")
    except OSError as error:
        raise DocumentError("invalid", path=path, problem=error.strerror or error) from None


def _write(path: Path, text: str) -> None:
    try:
        path.write_bytes(text.encode(errors="surrogateescape"))
    except OSError as error:
        raise DocumentError("cannot-write", path=path, problem=error.strerror or error) from None


QUESTION = "Accept, edit, evidence, reject or quit? [a/e/v/r/q] "
CHOICES = {"a": "accept", "e": "edit", "v": "evidence", "r": "reject", "q": "quit"}
HELP = (
    "a accepts it as it is, e opens your editor, v KEY shows what was found, r NOTE rejects it, q leaves it."
)
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
        if explain:
            self._evidence("")

    def run(self) -> None:
        """Ask for actions; raises ImporterError where the document is missing."""
        done = False
        actions = {
            "accept": self._accept, "edit": self._edit, "evidence": self._evidence, "reject": self._reject,
        }  # fmt: skip
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

    def _evidence(self, key: str) -> bool:
        if self._stored is not None:
            _evidence(self._stored, key)
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
    stored = record_review(store, name, ReviewEntry(state, user(), now(), note), seen)
    approvals.remember(stored)
    output.note(f"{state.capitalize()} {name} at {stored.digest}{f': {note}' if note else ''}.")
    return stored


def _page(stored: StoredDocument) -> dict[str, object]:
    """Return everything that a reviewer is shown, effective values and losses of an entry included."""
    found = losses(stored.data, stored.receipt)
    values = [
        one.to_json()
        for one in effective(stored.data, stored.need_receipt(), defaults=sampling_defaults(stored.data))
    ]
    return {
        **page(stored),
        "values": values,
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


def _evidence(stored: StoredDocument, key: str = "") -> None:
    receipt = stored.need_receipt()
    evidence = [e for e in receipt.evidence if not key or key in (e["key"], str(e["key"]).rpartition(".")[2])]
    output.explain(evidence, *((None, None) if key else (receipt.fit, receipt.proof)))
