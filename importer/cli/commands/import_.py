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
    parser.add_argument(
        "--from-org",
        metavar="NAME",
        dest="organisation",
        help="all models of an organisation or a user; prints a summary, with --json also a line for each",
    )
    parser.add_argument(
        "--filter",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="filters",
        help="for --from-org: library, task, name, family, downloads, likes, updated, gated, "
        "sort; repeatable",
    )
    parser.add_argument("--limit", metavar="N", type=int, help="with --from-org: at most N repositories")
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
    parser.add_argument("--version", action="version", version=f"importer {__version__}")


def run_import(arguments: argparse.Namespace) -> None:
    """Import one model, or every one of a list; raises ImporterError."""
    _check(arguments)
    from importer.sandbox.pool import borrowed

    with borrowed(arguments.sandbox) as sandbox:
        if arguments.organisation is not None:
            from importer.cli import bulk

            bulk.import_organisation(arguments, sandbox)
        elif arguments.source is not None:
            from importer.cli import bulk

            bulk.run(arguments, sandbox)
        else:
            from importer.cli import importing

            importing.run(arguments, sandbox)


def _check(arguments: argparse.Namespace) -> None:
    """Raise UsageError unless there is one reference, or a list without options of a single import."""
    sources = (arguments.reference, arguments.source, arguments.organisation)
    if sum(source is not None for source in sources) != 1:
        problem = "one reference is required, or a list with --from, or an organisation with --from-org"
        raise UsageError("bad-option", option="REFERENCE", problem=problem)
    _check_organisation(arguments)
    single = {o.flag: getattr(arguments, o.name) for o in OPTIONS.values() if o.single}
    single |= {"--validate": arguments.validate, "--explain": arguments.explain}
    several = "--from" if arguments.source is not None else "--from-org"
    for option, value in single.items() if arguments.reference is None else ():
        if value:
            raise UsageError("bad-option", option=option, problem=f"is for one reference, not for {several}")


def _check_organisation(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options of an organisation beside another source, and for those it cannot have."""
    if arguments.organisation is None:
        for option, value in {"--filter": arguments.filters, "--limit": arguments.limit}.items():
            if value:
                raise UsageError("bad-option", option=option, problem="is for --from-org alone")
        return
    if arguments.limit is not None and arguments.limit < 1:
        raise UsageError("bad-option", option="--limit", problem="must be 1 or more")
    for option, value in {"--revision": arguments.revision, "--offline": arguments.offline}.items():
        if value:
            raise UsageError("bad-option", option=option, problem="cannot be used with --from-org")
