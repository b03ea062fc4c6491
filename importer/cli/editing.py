"""A document in the person's own editor: on a copy, checked on each save, written whole or not at all."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from importer import launcher
from importer.cli import output
from importer.document import schema
from importer.document.build import SCHEMA_FILE
from importer.document.edited_comments import renewed
from importer.document.model_facts import RecordedFacts
from importer.document.schema import problems
from importer.document.store import Store, load, write_all
from importer.document.yaml_edit.source_map import YamlProblem
from importer.errors import DocumentError, UsageError

FALLBACK = "vi"
MOST_SHOWN = 20  # problems


def edit(store: Store, path: Path, model: RecordedFacts | None = None) -> bool:
    """Let the person edit a document until it is valid or given up; return whether it was written.

    ``model`` has the facts of the model that the import recorded. Raises UsageError where the editor fails,
    DocumentError("edited") where the file changed meanwhile; the document then stays.
    """
    before = _read(path)
    with tempfile.TemporaryDirectory(prefix="importer-") as folder:
        copy = Path(folder) / path.name
        write_all({Path(folder) / SCHEMA_FILE: schema.text("document")})
        _write(copy, before)
        while True:
            _run(copy)
            text = _read(copy)
            if text == before:
                output.note("Nothing was changed.")
                return False
            found = problems(text, model=model)
            if not found:
                break
            _print_problems(found, text.splitlines())
            answer = output.ask("Edit it again? [Y/n] ")
            if answer is None or answer.strip().lower() in {"n", "no"}:
                output.note(f"Given up: {path} is as it was.")
                return False
    _replace(store, path, before, text)
    output.note(f"Wrote {path}.")
    return True


def _command() -> list[str]:
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
    words = _command()
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


def _print_problems(found: Sequence[YamlProblem], lines: Sequence[str]) -> None:
    """Print each problem, and below it its line."""
    output.always("This cannot be saved as it is:")
    for one in found[:MOST_SHOWN]:
        line = lines[one.line - 1].strip() if one.line <= len(lines) else ""
        output.always(f"  {one}" + (f"\n      {line[:200]}" if line else ""))
    if len(found) > MOST_SHOWN:
        output.always(f"  and {len(found) - MOST_SHOWN} more")


def _replace(store: Store, path: Path, before: str, text: str) -> None:
    """Write the edited text; where another process wrote meanwhile, keep it in a file beside."""
    with store.locked():
        if _read(path) == before:
            write_all({path.resolve(): _commented(path, text)})  # a link stays one
            return
    descriptor, name = tempfile.mkstemp(prefix=f"{path.stem}-", suffix=path.suffix)
    os.close(descriptor)
    _write(Path(name), text)
    raise DocumentError("edited", path=path, copy=name)


def _commented(path: Path, text: str) -> str:
    """Return the edited text, with importer's comments at changed values renewed."""
    try:
        stored = load(path)
    except DocumentError:  # the text before the edit was no document: it has no comments of importer
        return text
    return renewed(stored, text)


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
