"""``python -m benchmarks recipes FOLDER``: vLLM's official deployments beside our documents, flag by flag.

FOLDER holds the files of models in ``ORG__NAME/``. The recipes are those of ``gen_defaults``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.recipe_compare import Judged, Line, Outcome, compared
from benchmarks.recipe_documents import Documents
from benchmarks.recipe_written import Unwritten, unwritten
from gen_defaults.paths import folder, output
from gen_defaults.recipe_book import Book
from gen_defaults.recipe_commands import Deployment, deployments

WHOLE = ("equal", "better", "less")  # verdicts where the weights are known


def main(arguments: list[str]) -> int:
    """Print the comparison; 0 also where there are differences."""
    options = _options(arguments)
    book = Book.shipped()
    with Documents(options.folder) as documents:
        models = {*documents.models()}
        if options.every:
            found = [
                *deployments(book, models, every=True),
                *deployments(book, models, every=True, features=True),
            ]
        else:
            found = [*deployments(book, models)]
        found = [one for one in found if one.role != "worker"]  # the head's document, with another rank
        if not found:
            sys.stderr.write(f"recipes: {options.folder} has no files of a model with a recipe\n")
            return 1
        print(f"{len(found)} deployments of {len({d.model for d in found})} models")
        for line in _of_written(documents, found):
            print(line, flush=True)
        if not options.every:
            lines, judged = _of_compared(documents, book, found)
            for text in _report(lines, judged, lists=options.lines):
                print(text, flush=True)
            if options.json:
                options.json.write_text("".join(json.dumps(_row(line)) + "\n" for line in lines), "utf-8")
    return 0


def _of_written(documents: Documents, found: list[Deployment]) -> Iterator[str]:
    """Yield how many deployments can be written, and each cause that keeps others from it."""
    made: dict[Any, list[Unwritten]] = {}
    causes: Counter[str] = Counter()
    whole = 0
    for deployment in found:
        key = (deployment.model, deployment.flags, tuple(sorted(deployment.env.items())))
        if key not in made:
            made[key] = unwritten(documents, deployment)
        whole += not made[key]
        causes.update(
            {f"{one.name}: {one.outcome}, {one.why.partition(': ')[2] or one.why}" for one in made[key]}
        )
    yield f"can be written: {whole} of {len(found)} ({whole / len(found):.1%}); {len(made)} commands differ"
    for cause, count in causes.most_common():
        yield f"  {count:4}  {cause}"


def _of_compared(
    documents: Documents, book: Book, found: list[Deployment]
) -> tuple[list[Line], list[Judged]]:
    lines: list[Line] = []
    judged: list[Judged] = []
    for deployment in found:
        if deployment.role in {"", "head"}:
            more, verdicts = compared(documents, book, deployment)
            lines += more
            judged += verdicts
    return lines, judged


def _report(lines: list[Line], judged: list[Judged], *, lists: bool) -> Iterator[str]:
    """Yield the table by flag, the verdicts, and each difference with its reason."""
    by_flag: dict[str, Counter[Outcome]] = defaultdict(Counter)
    for line in lines:
        by_flag[line.name][line.outcome] += 1
    yield ""
    titles = ("recipes", *Outcome)
    yield f"{'flag or variable':44}" + "".join(f" {title:>11}" for title in titles)
    for name, counts in sorted(by_flag.items(), key=lambda item: -item[1].total()):
        cells = (counts.total(), *(counts[outcome] for outcome in Outcome))
        yield f"{name:44}" + "".join(f" {cell:>11}" for cell in cells)
    unequal = [line for line in lines if line.outcome is not Outcome.EQUAL]
    silent = [line for line in unequal if not line.why]
    yield f"{len(lines)} flags, {len(lines) - len(unequal)} equal, {len(silent)} differences without a reason"
    yield ""
    for what in ("layout", "context"):
        yield _verdicts(what, [one for one in judged if one.what == what])
    if lists:
        yield from _differences(unequal, judged)


def _verdicts(what: str, judged: list[Judged]) -> str:
    counts = Counter(one.verdict for one in judged)
    known = sum(counts[verdict] for verdict in WHOLE)
    good = counts["equal"] + counts["better"]
    share = f"{good / known:.1%}" if known else "-"
    return f"{what}: {dict(counts)}; equal or better {good} of {known} with known weights ({share})"


def _differences(unequal: Iterable[Line], judged: Iterable[Judged]) -> Iterator[str]:
    """Yield each difference once, with the number of deployments and one of them."""
    groups: dict[tuple[str, ...], list[Deployment]] = defaultdict(list)
    for line in unequal:
        groups[line.name, repr(line.theirs), repr(line.ours), line.why].append(line.deployment)
    for one in judged:
        if one.verdict != "equal":
            groups[one.what, one.theirs, one.ours, f"{one.verdict}: {one.why}"].append(one.deployment)
    yield ""
    for (name, theirs, ours, why), found in sorted(groups.items()):
        yield f"{name} | {theirs} | {ours} | {why} | {len(found)} | {found[0].name}"


def _row(line: Line) -> dict[str, Any]:
    return {
        "deployment": line.deployment.name, "model": line.deployment.model, "flag": line.name,
        "recipe": line.theirs, "document": line.ours, "outcome": line.outcome, "why": line.why,
    }  # fmt: skip


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks recipes", description=__doc__)
    parser.add_argument("folder", type=folder, help="the files of models, in ORG__NAME/")
    parser.add_argument("--lines", action="store_true", help="print each difference with its reason")
    parser.add_argument(
        "--every",
        action="store_true",
        help="write all strategies, with and without opt-in features; no comparison",
    )
    parser.add_argument(
        "--json", type=output, metavar="FILE", help="write a line for each flag of each deployment"
    )
    return parser.parse_args(arguments)
