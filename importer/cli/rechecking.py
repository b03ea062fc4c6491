"""``importer recheck``: what importing again would change, one document after another."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from importer.app.recheck import Altered, CauseKind, ChangeCause, RecheckFinding, Yours
from importer.app.recheck import recheck as plan_again
from importer.app.session import ImportSession
from importer.cli import bounded_map, messages, output
from importer.cli.options import FOLDER
from importer.config_file.document_keys import shown
from importer.config_file.store import Store
from importer.errors import ImporterError, described
from importer.hub.local import ANYWHERE
from importer.hub.rate_limit import Budget, under
from importer.progress import Step
from importer.sentences import render

CHANGED = 1  # the exit code where something would change, as diff has it
# Paths whose changes follow from a cause, which has a line of its own.
FOLLOWING = {
    "commit": (("importer", "revision"), ("artifacts",)),
    "engine": (("importer", "engine", "version"),),
    "backend": (("importer", "engine", "name"),),
    "model": (("importer", "model_id"), ("parameters", "model"), ("description",)),
}
SHOWN = 6  # files of a cause in one line
REMEMBERED = (
    "reference",
    "observed",
    "preferences",
    "device",
    "memory",
    "goal",
    "concurrency",
    "context",
)  # an import goes on with these by itself


def recheck(arguments: argparse.Namespace) -> int:
    """Return 1 where a document would change, else 0; after a failed check the first failure's exit code."""
    store = Store(Path(arguments.folder))
    names = list(dict.fromkeys(arguments.names)) or store.names()
    code = failed = 0
    with output.progress("recheck") as progress, ImportSession() as bench:
        budget = Budget()

        def work(name: str) -> RecheckFinding:
            with under(budget, progress):
                return plan_again(store, name, bench, ANYWHERE, offline=arguments.offline)

        for number, (name, future) in enumerate(bounded_map.in_order(names, work), 1):
            try:
                finding = future.result()
            except Exception as error:  # one document must not cost the others their answers
                failed = failed or described(error).exit_code
                print_error(name, described(error), as_json=arguments.json)
            else:
                code = CHANGED if finding.changed else code
                _print_finding(finding, arguments.folder, as_json=arguments.json)
            progress(Step(f"{number} of {len(names)}", number, len(names)))
    return failed or code


def print_error(name: str, error: ImporterError, *, as_json: bool) -> None:
    """Print that a document was not checked."""
    if as_json:
        members = messages.error_json(error)
        output.json_line(output.json_text({"schema": 1, "name": name, "error": members}))
    else:
        output.line(output.plain(f"{name}: not checked: {messages.line(error)}"))


def _print_finding(finding: RecheckFinding, folder: str, *, as_json: bool) -> None:
    if as_json:
        output.json_line(output.json_text(finding.to_json(messages.error_json)))
        return
    if not finding.changed:
        output.line(output.plain(f"{finding.name}: nothing would change."))
        return
    output.line(output.plain(f"{finding.name}: {_headline(finding)}"))
    for line in _lines(finding):
        output.line(output.plain(f"  {line}"))
    output.line(output.plain(f"  again: {again(finding.request, folder)}"))


def _headline(finding: RecheckFinding) -> str:
    if finding.refused is not None:
        return "it would not be imported again."
    number = len(finding.decisions)
    if finding.kinds == (CauseKind.WEIGHTS,) and not (number or finding.moved):
        return "its weights are others."
    if not number:
        return "no decision would change, but what is written of them."
    return f"{number} decision{'s' if number > 1 else ''} would change."


def _lines(finding: RecheckFinding) -> Iterator[str]:
    if finding.refused is not None:
        yield messages.line(finding.refused)
    for cause in finding.causes:
        yield from _cause(cause)
    for altered in finding.decisions:
        yield f"{altered.key}: {_change(altered)}"
        yield from (f"    {messages.text(why)}" for why in altered.why)
        yield from _covered(altered.yours)
    implied = [path for cause in finding.causes for path in FOLLOWING.get(cause.what, ())]
    for moved in finding.moved:
        if not any(moved.change.path[: len(path)] == path for path in implied):
            yield moved.change.line()
            yield from _covered(moved.yours)
    for conflict in finding.conflicts:
        yield f"conflict: {render(conflict.reason)}; --on-conflict mine or --on-conflict theirs decides it"


def _cause(cause: ChangeCause) -> Iterator[str]:
    """Yield the cause, and the first files that it names."""
    if cause.before or cause.after:
        yield f"{cause.what}: {cause.before or 'none'} → {cause.after or 'none'}"
    else:
        yield f"{cause.what}: {', '.join(cause.keys or ())}"
    if cause.files:
        more = len(cause.files) - SHOWN
        rest = f" and {more} more" if more > 0 else ""
        yield f"    files: {', '.join(cause.files[:SHOWN])}{rest}"


def _change(altered: Altered) -> str:
    if altered.before == altered.after:
        return f"{shown(altered.after)}, with a warning"
    return f"{shown(altered.before)} → {shown(altered.after)}"


def _covered(yours: Yours | None) -> Iterator[str]:
    if yours is not None:
        yield f"    yours: {shown(yours.value)}"


def again(request: Mapping[str, object], folder: str) -> str:
    """Return the command that imports the same again; what was set then is remembered by the receipt."""
    words = ["importer", str(request["reference"])]
    for key, value in request.items():
        if key not in REMEMBERED and value not in (None, False):
            words += [f"--{key.replace('_', '-')}", *([] if value is True else [str(value)])]
    words += ["--dir", folder] if folder != FOLDER else []
    return shlex.join(words)
