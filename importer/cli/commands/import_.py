"""``importer import REFERENCE``, or ``importer REFERENCE``: decide, review, write, validate."""

from __future__ import annotations

import argparse

from importer.app.request import OPTIONS
from importer.cli import options
from importer.errors import UsageError
from importer.version import __version__

# The options of the request in the order of --help; one that is not named here follows the second group.
FIRST = ("name", "backend", "engine_version", "frontend", "revision", "settings", "unset")
NEXT = ("device", "memory", "goal", "concurrency", "context", "per_device", "exact_fit", "template")
LAST = ("offline", "ignore_name")


def add_arguments_import(parser: argparse.ArgumentParser) -> None:
    """Add a reference or a list of them, and the options of the document."""
    parser.add_argument(
        "reference",
        nargs="?",
        metavar="REFERENCE",
        help="owner/name[@revision], hf://…, a Hub URL, or a directory such as ./model",
    )
    parser.add_argument(
        "--from",
        metavar="FILE",
        dest="source",
        help="many references, one a line ('-': stdin); one line of JSON for each, errors included",
    )
    options.folder(parser)
    options.of_import(parser, *FIRST)
    parser.add_argument(
        "--on-conflict",
        choices=("mine", "theirs"),
        dest="take",
        help="keep your edited value, or take the newly imported one",
    )
    options.of_import(parser, *NEXT, *(name for name in OPTIONS if name not in (*FIRST, *NEXT, *LAST)))
    parser.add_argument("--dry-run", action="store_true", help="everything except writing and validating")
    options.json(parser, "one line of JSON on stdout")
    parser.add_argument("--yes", action="store_true", help="accept the decisions without asking")
    parser.add_argument("--no-fetch", action="store_true", help="prove with installed parsers alone")
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--validate",
        metavar="ENGINE",
        nargs="?",
        const=options.INSTALLED,
        help="validate even if weights must be fetched first",
    )
    group.add_argument("--no-validate", action="store_true", help="write only")
    options.of_import(parser, LAST[0])
    options.explain(parser)
    options.of_import(parser, *LAST[1:])
    parser.add_argument("-V", "--version", action="version", version=f"importer {__version__}")


def run_import(arguments: argparse.Namespace) -> int:
    """Import one model, or every one of a list; raises ImporterError."""
    _check(arguments)
    from importer.sandbox.pool import borrowed

    with borrowed(arguments.sandbox) as sandbox:
        if arguments.source is not None:
            from importer.cli import bulk

            return bulk.run(arguments, sandbox)
        from importer.cli import importing

        importing.run(arguments, sandbox)
        return 0


def _check(arguments: argparse.Namespace) -> None:
    """Raise UsageError unless there is one reference, or a list without options of a single import."""
    if (arguments.reference is None) is (arguments.source is None):
        problem = "one reference is required, or a list with --from"
        raise UsageError("bad-option", option="REFERENCE", problem=problem)
    single = {o.flag: getattr(arguments, o.name) for o in OPTIONS.values() if o.single}
    single |= {"--validate": arguments.validate, "--explain": arguments.explain}
    for option, value in single.items() if arguments.reference is None else ():
        if value:
            raise UsageError("bad-option", option=option, problem="is for one reference, not for --from")
