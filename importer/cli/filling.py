"""``importer fill``: add to a hand-written document what it leaves out."""

from __future__ import annotations

import argparse
import difflib
from pathlib import Path

from importer.app.fill import Filling, plan, write
from importer.app.import_request import ImportRequest
from importer.app.session import ImportSession
from importer.cli import output
from importer.cli.options import chosen
from importer.document.document_keys import json_text
from importer.hub.local import ANYWHERE
from importer.sentences import counted


def run(arguments: argparse.Namespace) -> None:
    """Decide, add, write; with --dry-run show the difference instead. Raises ImporterError."""
    path = Path(arguments.file)
    path = path.resolve() if path.is_symlink() else path
    request = ImportRequest.of("", chosen(arguments))
    with output.progress(arguments.file) as progress, ImportSession() as bench:
        filling = plan(path, request, bench, ANYWHERE, progress)
    added = filling.filled.added
    for problem in filling.problems:
        output.note(f"Kept, though it is a mistake: {problem}.")
    if arguments.dry_run:
        if not arguments.json:
            _difference(filling)
        output.note("Dry run: nothing was written." if added else f"{path} leaves nothing out.")
    else:
        receipt = write(filling)
        if not arguments.json:
            _added(filling)
        state = receipt.state(receipt.digest)
        values = counted(len(added), "value", "values")
        what = f"Added {values} to {path}" if added else f"{path} leaves nothing out"
        output.note(f"{what}; review: {'pending' if state == 'draft' else state}.")
    if arguments.json:
        output.json_line(filling.report())


def _difference(filling: Filling) -> None:
    name = str(filling.stored.path)
    before, after = (t.splitlines(keepends=True) for t in (filling.stored.text, filling.filled.text))
    for line in difflib.unified_diff(before, after, name, name):
        output.line(output.plain(line.rstrip("\r\n")))


def _added(filling: Filling) -> None:
    for entry in filling.added:
        why = f"  # {entry['why']}" if entry["why"] else ""
        output.line(output.plain(f"{entry['path']}: {json_text(entry['value'])}{why}"))
