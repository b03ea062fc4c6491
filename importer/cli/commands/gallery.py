"""``importer gallery check|diff|build``: a gallery in a git repository, or any folder of documents."""

from __future__ import annotations

import argparse
from pathlib import Path

from importer.cli import options

FAULTY = 1  # the exit code with an error; with --strict with a warning, too


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the three actions."""
    actions = parser.add_subparsers(dest="action", metavar="check|diff|build", required=True)
    check = actions.add_parser("check", help="find what is wrong; exit code 1 with an error")
    check.add_argument("place", metavar="DIR|index.yaml", help="an index, or a folder of documents")
    check.add_argument(
        "--format", default="text", choices=("text", "json", "github", "sarif"), help="default: text"
    )
    check.add_argument("--strict", action="store_true", help="exit code 1 with a warning, too")
    check.add_argument(
        "--files-only", action="store_true", help="do not compare parsers with the models' own templates"
    )
    check.add_argument("--stale-days", type=options.days, metavar="N", help="default: 180")
    options.of_import(check, "offline")
    diff = actions.add_parser("diff", help="what changes for those who run the models, as Markdown")
    diff.add_argument("before", metavar="A", help="a folder or an index")
    diff.add_argument("after", metavar="B")
    build = actions.add_parser("build", help="write index, entries and static pages; no server is needed")
    build.add_argument("place", metavar="DIR", help="a folder of documents")
    build.add_argument("-o", "--output", required=True, metavar="SITE", help="the folder to write")


def run(arguments: argparse.Namespace) -> int:
    """Check, compare or build; raises UsageError("no-such-directory") and DocumentError."""
    return {"check": _check, "diff": _diff, "build": _build}[arguments.action](arguments)


def _check(arguments: argparse.Namespace) -> int:
    import sys

    from importer.app import gallery
    from importer.app.session import ImportSession
    from importer.cli import output
    from importer.cli.gallery_report import FORMATS
    from importer.hub.rate_limit import Budget, under

    found = gallery.read(Path(arguments.place))
    days = arguments.stale_days or gallery.STALE_DAYS
    with output.progress("gallery check") as progress, ImportSession() as bench, under(Budget(), progress):
        compared = None if arguments.files_only else bench
        checked = gallery.check(
            found, stale_days=days, bench=compared, offline=arguments.offline, progress=progress
        )
        findings = list(checked)
    sys.stdout.write(FORMATS[arguments.format](findings, len(found.items)))
    levels = {finding.level for finding in findings}
    return FAULTY if gallery.ERROR in levels or (arguments.strict and gallery.WARNING in levels) else 0


def _diff(arguments: argparse.Namespace) -> int:
    import sys

    from importer.app import gallery
    from importer.cli.gallery_report import markdown

    before, after = (gallery.read(Path(place)) for place in (arguments.before, arguments.after))
    sys.stdout.write(markdown(gallery.changes(before, after)))
    return 0


def _build(arguments: argparse.Namespace) -> int:
    from importer.app import gallery
    from importer.app.gallery_site import build
    from importer.cli import output
    from importer.errors import DocumentError
    from importer.sentences import counted

    read = gallery.read(Path(arguments.place))
    if not any(item.stored for item in read.items):
        raise DocumentError("no-documents", folder=arguments.place)
    written = build(read, Path(arguments.output))
    output.note(f"Wrote {counted(len(written), 'file', 'files')} to {arguments.output}.")
    for finding in read.findings:
        output.note(f"Left out: {finding.entry}: it cannot be read; see 'importer gallery check'.")
    return 1 if read.findings else 0
