"""The command ``export``: a document, or each of a folder, for another consumer, to stdout or into files."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from importer.app.export import export
from importer.cli import output
from importer.document.store import Store, StoredDocument, named, write_all
from importer.errors import DocumentError, UsageError
from importer.exports import FORMATS, get
from importer.exports.base import Exported, Origin
from importer.hub.folders import read_plain
from importer.sentences import render

LONGEST = 16 * 2**20  # bytes of a file that an export may find in its place


def run(arguments: argparse.Namespace) -> int:
    """List the formats, or write one; return the exit code. Raises UsageError and DocumentError."""
    if arguments.list:
        _list(json=arguments.json)
        return 0
    if arguments.name is None or arguments.format is None:
        raise UsageError("bad-option", option="NAME FORMAT", problem="both are required, or --list")
    get(arguments.format)  # an unknown format is an error before the document is read
    name = arguments.name
    if name.endswith("/") or ("/" in name and os.path.isdir(name)):  # noqa: PTH112 - never raises
        return _all(arguments)
    _put(*_made(named(arguments.name, arguments.folder)[1], arguments), arguments.output, arguments)
    return 0


def _all(arguments: argparse.Namespace) -> int:
    """Write each document of a folder that has this export, and name the others.

    Documents whose files have one name get a folder each. Return the exit code of the last one whose files
    could not be written, else 0. Raises DocumentError of the last one where none has the export.
    """
    if arguments.output is None and not arguments.json:
        raise UsageError("bad-option", option="--output", problem="the documents of a folder need one")
    store, refused, unwritten = Store(Path(arguments.name)), list[DocumentError](), list[DocumentError]()
    made: dict[str, tuple[Exported, Origin]] = {}
    for name in (names := store.names()):
        with _left_out(refused):
            made[name] = _made(store.load(name), arguments)
    uses = Counter(file for exported, _ in made.values() for file in exported.files)
    for name, (exported, origin) in made.items():
        own = f"{name}/" if any(uses[file] > 1 for file in exported.files) else ""
        with _left_out(unwritten):
            _put(exported, origin, arguments.output and f"{arguments.output}/{own}", arguments)
    if len(refused) == len(names):
        raise refused[-1] if refused else DocumentError("no-documents", folder=arguments.name)
    return unwritten[-1].exit_code if unwritten else 0


@contextmanager
def _left_out(refused: list[DocumentError]) -> Iterator[None]:
    """Print why a document is left out, and add the error to ``refused``."""
    try:
        yield
    except DocumentError as error:
        refused.append(error)
        output.note(f"Left out: {error}")


def _made(stored: StoredDocument, arguments: argparse.Namespace) -> tuple[Exported, Origin]:
    device, approved_only = arguments.device, arguments.approved_only
    return export(stored, arguments.format, device=device, approved_only=approved_only)


def _put(exported: Exported, origin: Origin, to: str | None, arguments: argparse.Namespace) -> None:
    written = None if to is None else _write(exported.files, to)
    if origin.review != "approved":
        output.note(f"Warning: {origin.name} is not approved (review: {origin.review}).")
    if arguments.json:
        _json(arguments.format, origin, exported, written)
        return
    for loss in exported.lost:
        output.note(f"Not carried over as it is: {render(loss)}")
    if written is None:
        _print(exported.files)
    else:
        output.note(f"Wrote {', '.join(map(str, written))}.")


def _list(*, json: bool) -> None:
    rows = [{"format": name, "consumer": export_format.consumer} for name, export_format in FORMATS.every()]
    output.parts(FORMATS, rows, ("format", "for"), json=json)


def _write(files: Mapping[str, str], to: str) -> list[Path]:
    """Write all files or none, over no file of another content; raises DocumentError."""
    place = Path(to)
    folder = place.is_dir() or to.endswith("/") or len(files) > 1
    contents = {place / name if folder else place: text for name, text in files.items()}
    for path, text in contents.items():
        if path.exists() and _holds(path) != text:
            raise DocumentError("exists", path=path)
    write_all(contents)
    return list(contents)


def _holds(path: Path) -> str | None:
    try:
        return read_plain(path, LONGEST).decode()
    except (OSError, UnicodeDecodeError):
        return None


def _print(files: Mapping[str, str]) -> None:
    if len(files) > 1:
        problem = f"this export is {len(files)} files; name a folder for them"
        raise UsageError("bad-option", option="--output", problem=problem)
    for text in files.values():
        output.line(text.rstrip("\n"))


def _json(name: str, origin: Origin, exported: Exported, written: list[Path] | None) -> None:
    members = {
        "schema": 1,
        "name": origin.name,
        "format": name,
        "model": origin.model,
        "revision": origin.revision,
        "digest": origin.digest,
        "review": origin.review,
        "files": dict(exported.files),
        "written": None if written is None else [str(path) for path in written],
        "lost": [render(loss) for loss in exported.lost],
    }
    output.json_line(members)
