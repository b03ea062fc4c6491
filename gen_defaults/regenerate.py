"""``python -m gen_defaults``: regenerate the tables from their sources, or print what that would change."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from gen_defaults import checks, report
from gen_defaults.checks import CheckFinding
from gen_defaults.job import Result, run
from gen_defaults.paths import folder
from gen_defaults.place import Place, load, write
from gen_defaults.released import Index
from gen_defaults.sources import ON_REQUEST, SOURCES, SourceRequest
from importer.wheels.index import IndexFailure
from importer.wheels.web import ByteListener, Web


@contextmanager
def bars() -> Iterator[ByteListener | None]:
    """Yield a listener that shows the bytes of each file on a terminal; ``None`` elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def advance(name: str, came: int, size: int) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(name.replace("[", "\\["), total=size or None)
            progress.update(tasks[name], advance=came)

        yield advance


NOTHING = "nothing was written"
FAILING = "these rows fail their checks"
WORSE = "it would make the tables worse; give --accept-worse to take it all the same"


def main(options: argparse.Namespace) -> int:
    """Regenerate the tables, or check them, or print the difference; return the exit status.

    0 for success, 1 for a failure, 2 for invalid arguments, 130 for an interrupt.
    """
    _check(options)
    place: Place = options.place
    if not place.parsers.is_file():
        _print(f"{place.root} is no checkout: it has no {place.parsers.name}")
        return 1
    try:
        with bars() as advance:
            index = Index(options.offline)
            index.web.on_bytes = advance
            request = SourceRequest(
                index, place, options.check, tuple(options.vllm), options.offline, options.recipes
            )
            result = run(request, _names(options))
        result, worse = _measured(result, options)
        return _finish(result, worse, options, index.web)
    except (IndexFailure, OSError, ValueError) as failure:
        _print(f"{failure}; {NOTHING}")
    except (KeyError, TypeError, AttributeError) as failure:
        _print(f"a file that this job wrote is not as it was written ({failure}); {NOTHING}")
    except KeyboardInterrupt:
        _print(f"stopped; {NOTHING}")
        return 130
    return 1


def _finish(result: Result, worse: list[CheckFinding], options: argparse.Namespace, web: Web) -> int:
    refused = result.fails or (worse and not options.accept_worse)
    for finding in (*result.findings, *worse):
        _print(f"{'' if finding.fails else 'note: '}{finding}")
    if options.diff:
        sys.stdout.write(report.markdown(result, web.fetched))
        return 1 if refused else 0
    if options.check:
        sys.stdout.write(_difference(result))
        return 1 if refused or result.changed else 0
    if refused:
        _print(f"{FAILING if result.fails else WORSE}; {NOTHING}")
        return 1
    written = write(result.files)
    for path in result.files:
        sys.stderr.write(f"{path.name}: {'written' if path in written else 'unchanged'}\n")
    return 0


def _measured(result: Result, options: argparse.Namespace) -> tuple[Result, list[CheckFinding]]:
    """Return the result with checks of the new proofs, and the families that the new tables make worse."""
    if options.accuracy is None or result.fails:
        return result, []
    from gen_defaults import accuracy  # renders templates and may ask an engine
    from gen_defaults.truth import ROOT, ROWS

    place = result.place
    before = accuracy.ScoredTables.of(load(place.parsers), load(place.sampling))
    after = accuracy.ScoredTables.of(load(place.parsers), result.data(place.sampling))
    comparison = accuracy.compare(
        options.accuracy, before, after, proves=options.proof, truth=place.root / ROWS.relative_to(ROOT)
    )
    refuted = (
        checks.run(replace(result.subject, proofs=comparison.proved))
        if comparison.proved
        else result.findings
    )
    return replace(result, findings=tuple(refuted)), comparison.worse


def _difference(result: Result) -> str:
    lines: list[str] = []
    for path, text in result.changed.items():
        name = str(path.relative_to(result.place.root))
        before = path.read_text(encoding="utf-8") if path.is_file() else ""
        lines += difflib.unified_diff(
            before.splitlines(keepends=True),
            text.splitlines(keepends=True),
            f"committed/{name}",
            f"sources/{name}",
        )
    return "".join(lines)


def _names(options: argparse.Namespace) -> list[str]:
    return [
        name for name in SOURCES if name in (options.only or {*SOURCES} - {*ON_REQUEST} | {*options.beside})
    ]


def _print(text: str) -> None:
    plain = " ".join(text.split())
    sys.stderr.write(f"gen_defaults: {''.join(c if c.isprintable() else '?' for c in plain)}\n")


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the job."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--check", action="store_true", help="the very releases that the files name; 1 and the difference"
    )
    what.add_argument(
        "--diff", action="store_true", help="what the newest releases would change, as Markdown"
    )
    parser.add_argument("--only", action="append", choices=[*SOURCES], metavar="SOURCE", help=_sources())
    parser.add_argument(
        "--with", action="append", default=[], choices=ON_REQUEST, dest="beside", metavar="SOURCE",
        help=f"one of {', '.join(ON_REQUEST)}, beside the sources of every run; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--vllm",
        nargs="+",
        default=[],
        type=version,
        metavar="VERSION",
        help="versions of vLLM in place of the supported ones",
    )
    parser.add_argument(
        "--offline",
        type=folder,
        metavar="DIR",
        help="wheels and sdists in DIR, models' files in DIR/<org>__<name>",
    )
    parser.add_argument(
        "--recipes",
        type=folder,
        metavar="FOLDER",
        help="for --only vllm-recipes: a checkout of vllm-project/recipes",
    )
    parser.add_argument(
        "--accuracy", type=folder, metavar="FOLDER", help="refuse tables that answer less of FOLDER"
    )
    parser.add_argument(
        "--proof", action="store_true", help="for --accuracy, ask the installed vLLM's parsers"
    )
    parser.add_argument("--accept-worse", action="store_true", help="write what --accuracy refuses")


def _check(options: argparse.Namespace) -> None:
    """End with the usage for options that contradict each other."""
    if options.recipes and "vllm-recipes" not in _names(options):
        options.refuse("--recipes is for the source vllm-recipes; add --only vllm-recipes")
    if options.vllm and "vllm" not in _names(options):
        options.refuse("--vllm is for the source vllm, which --only leaves out")


def version(text: str) -> str:
    """Return a version or the start of one; raises ArgumentTypeError."""
    if not re.fullmatch(r"\d+(\.\d+)*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no version; one is 0.32 or 0.32.0")
    return text


def _sources() -> str:
    return f"one of {', '.join(SOURCES)}; may be repeated; {', '.join(ON_REQUEST)} only so, or by --with"
