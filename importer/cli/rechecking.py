"""``importer recheck``: what importing again would change, one document after another."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from importer.app.parser_choice import check_version
from importer.app.recheck import Rechecked
from importer.app.recheck import recheck as import_dry
from importer.app.request import again
from importer.app.session import ImportSession
from importer.cli import bulk, messages, output
from importer.cli.import_summary import attention
from importer.cli.options import in_folder
from importer.document.build import source
from importer.document.store import Store
from importer.errors import ImporterError, described
from importer.hub.local import ANYWHERE
from importer.hub.rate_limit import Budget, under
from importer.progress import Step
from importer.sentences import counted

CHANGED = 1  # the exit code where something would change, as diff has it
UNPROVED = (
    "{documents} had a proof of the engine's parsers and would have none: those of the version are not "
    "here. 'importer engine list' shows what is."
)


def recheck(arguments: argparse.Namespace) -> int:
    """Return 1 where a document would change, else 0; after a failed check the first failure's exit code.

    Raises UsageError for a version that no engine has.
    """
    version = arguments.engine_version
    check_version(version)
    store = Store(Path(arguments.folder))
    names = list(dict.fromkeys(arguments.names)) or store.names()
    code = failed = unproved = 0
    with output.progress("recheck") as progress, ImportSession() as bench:
        budget = Budget()

        def work(name: str) -> Rechecked:
            with under(budget, progress):
                return import_dry(
                    store, name, bench, ANYWHERE, engine_version=version, offline=arguments.offline
                )

        for number, (name, future) in enumerate(bulk.in_order(names, work), 1):
            try:
                found = future.result()
            except Exception as error:  # one document must not cost the others their answers
                failed = failed or described(error).exit_code
                _print_error(name, described(error), as_json=arguments.json)
            else:
                code = CHANGED if found.changed else code
                unproved += found.unproved
                _print(found, arguments.folder, as_json=arguments.json)
            progress(Step(f"{number} of {len(names)}", number, len(names)))
    if unproved:
        output.note(UNPROVED.format(documents=counted(unproved, "document", "documents")))
    return failed or code


def _print_error(name: str, error: ImporterError, *, as_json: bool) -> None:
    if as_json:
        output.json_line({"schema": 1, "name": name, "error": messages.error_json(error)})
    else:
        output.line(output.plain(f"{name}: not checked: {messages.line(error)}"))


def _print(found: Rechecked, folder: str, *, as_json: bool) -> None:
    if as_json:
        output.json_line(found.to_json(messages.error_json))
        return
    for text in _lines(found, folder):
        output.line(output.plain(text))


def _lines(found: Rechecked, folder: str) -> Iterator[str]:
    if found.refused is not None:
        outcome = "left out" if found.left_out else "an import would be refused"
        yield f"{found.name}: {outcome}: {messages.line(found.refused)}"
        return
    if not found.changed:
        yield f"{found.name}: nothing would change."
        return
    yield f"{found.name}: an import would differ."
    for warning in found.warnings:
        yield f"  {attention(warning)}"
    for change in found.changes:
        if change.path[0] != "artifacts":  # the commit again
            decision = found.decision(change)
            yield f"  {change.line()}" + ("" if decision is None else f"  ({source(decision)})")
    if found.weights:
        yield f"  other weights: {', '.join(found.weights)}"
    command = again({**found.request, "name": found.name}, *in_folder(folder))
    yield f"  again: {command}"
