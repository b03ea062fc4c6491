"""``importer gallery``: check a gallery in git, compare two, or write one as static pages."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from importer.cli import options
from importer.cli.commands import Action, add_actions

FAULTY = 1  # the exit code with an error, or nothing published; with --strict with a warning


def add_arguments_gallery(parser: argparse.ArgumentParser) -> None:
    """Add the three actions."""
    add_actions(parser, ACTIONS)


def _add_check(parser: argparse.ArgumentParser) -> None:
    """Add the gallery, the form of the findings, and what is asked of the Hub."""
    parser.add_argument(
        "place", metavar="DIR|index.yaml", type=options.filled, help="an index, or a folder of documents"
    )
    parser.add_argument("--format", default="text", choices=("text", "json", "github"), help="default: text")
    parser.add_argument("--strict", action="store_true", help="exit code 1 with a warning, too")
    text = "ask no Hub; compare parsers with the proofs in the receipts"
    parser.add_argument("--files-only", action="store_true", help=text)
    parser.add_argument("--stale-days", type=options.days, metavar="N", help="default: 180")
    options.of_import(parser, "offline")


def _add_diff(parser: argparse.ArgumentParser) -> None:
    """Add the two galleries."""
    parser.add_argument(
        "before", metavar="A", type=options.filled, help="a folder, an index, or git's, such as main:models"
    )
    parser.add_argument("after", metavar="B", type=options.filled)


def _add_build(parser: argparse.ArgumentParser) -> None:
    """Add the documents and the folder of the site."""
    parser.add_argument("place", metavar="DIR", type=options.filled, help="a folder of documents")
    parser.add_argument(
        "--include-drafts", nargs="+", default=(), metavar="NAME",
        help="publish these documents without an approval; a rejected one stays out",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", required=True, metavar="SITE", type=options.filled, help="the folder to write"
    )


def _check(arguments: argparse.Namespace) -> int:
    import sys

    from importer.app import gallery
    from importer.app.gallery_check import STALE_DAYS, check
    from importer.app.session import ImportSession
    from importer.cli import output
    from importer.cli.gallery_report import FORMATS
    from importer.hub.rate_limit import Budget, under

    found = gallery.read(Path(arguments.place))
    days = arguments.stale_days or STALE_DAYS
    with output.progress("gallery check") as progress, ImportSession() as bench, under(Budget(), progress):
        compared = None if arguments.files_only else bench
        findings = list(
            check(found, stale_days=days, bench=compared, offline=arguments.offline, progress=progress)
        )
    sys.stdout.write(FORMATS[arguments.format](findings, len(found.items)))
    levels = {finding.level for finding in findings}
    return FAULTY if gallery.ERROR in levels or (arguments.strict and gallery.WARNING in levels) else 0


def _diff(arguments: argparse.Namespace) -> int:
    import sys

    from importer.app import gallery
    from importer.cli.gallery_report import markdown, unread
    from importer.cli.gallery_revision import opened

    with opened(arguments.before) as before, opened(arguments.after) as after:
        sides = gallery.read(before), gallery.read(after)
        sys.stdout.write(markdown(gallery.changes(*sides)))
    sys.stdout.writelines(unread(finding for side in sides for finding in side.findings))
    return 0


def _build(arguments: argparse.Namespace) -> int:
    from importer.app import gallery
    from importer.app.gallery_site import ENTRIES, build_site
    from importer.cli import output
    from importer.cli.gallery_report import line
    from importer.errors import DocumentError, UsageError
    from importer.sentences import counted, render

    site, place = Path(arguments.output), os.path.realpath(arguments.place)
    if place in (os.path.realpath(site), os.path.realpath(site / ENTRIES)):
        raise UsageError("bad-option", option="--output", problem="it is the folder of the documents")
    read = gallery.read(Path(arguments.place))
    if not any(item.stored for item in read.items) and not read.findings:
        raise DocumentError("no-documents", folder=arguments.place)
    built = build_site(read, site, arguments.include_drafts)
    for finding in built.errors:
        output.always(line(finding))
    some = len(built.left_out) < sum(item.stored is not None for item in read.items)
    for name, why in built.left_out:
        (output.note if some else output.always)(f"Left out: {name}: {render(why)}.")
    for path in built.removed:
        output.note(f"Removed: {path}.")
    if built.errors:
        output.always("Nothing was written.")
        return FAULTY
    output.note(f"Wrote {counted(len(built.files), 'file', 'files')} to {arguments.output}.")
    return 0 if some else FAULTY


ACTIONS = {
    "check": Action("find what is wrong; exit code 1 with an error", _add_check, _check),
    "diff": Action("what changes for those who run the models, as Markdown", _add_diff, _diff),
    "build": Action(
        "check the documents, then write index, entries and static pages; no server is needed",
        _add_build,
        _build,
    ),
}
