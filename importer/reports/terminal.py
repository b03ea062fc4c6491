"""The report at a terminal: probes and their reasons, or a matrix of probes and engines."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from importer.reports.report_model import WORDS, ProbeOutcome, ReportModel, Run, pace, split, trials
from importer.sentences import plain

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

WIDTH = 140  # columns of a file
NARROW = 90  # columns below which a table of reasons is no longer read
CELL = 15  # columns of an engine in the matrix, of an outcome written out
STYLES = {"pass": "green", "fail": "bold red", "inconclusive": "yellow", "not-applicable": "dim"}
STYLES |= {"not-shown": "cyan"}
SIGNS = {"pass": "✓", "fail": "✗", "inconclusive": "?", "not-shown": "○", "not-applicable": "–"}


def write(sheet: ReportModel) -> str:
    """Return the report as plain text for a file."""
    from rich.console import Console

    file = io.StringIO()
    console = Console(file=file, width=WIDTH, force_terminal=False, highlight=False)
    show(sheet, console)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def show(sheet: ReportModel, console: Console) -> None:
    """Print the report in the width of the console."""
    for part in rendered(sheet, console.width):
        console.print(part)


def rendered(sheet: ReportModel, width: int) -> Iterator[RenderableType]:
    """Yield the head, the outcomes, and each run's time."""
    from rich.text import Text

    model = f" ({sheet.model}{'@' + sheet.revision[:12] if sheet.revision else ''})" if sheet.model else ""
    yield Text(plain(f"{sheet.name}{model}"), style="bold")
    yield Text(plain(f"review: {sheet.review}; validation: {sheet.validation}; {sheet.digest}"))
    if len(sheet.whole) == 1:
        yield outcomes(sheet.whole[0].outcomes, width)
    elif sheet.whole:
        yield matrix(sheet, width)
        for run in sheet.whole:
            bad = tuple(outcome for outcome in run.outcomes if not outcome.passed)
            if bad:
                yield Text(plain(f"What did not pass on {run.label}:"), style="bold")
                yield causes(run)
    for run in sheet.parts:
        yield Text(plain(f"Only a part, asked of {run.label}:"), style="bold")
        yield outcomes(run.outcomes, width)
    for run in sheet.runs:
        spent = f"{split(run.seconds)}{pace(run.speed)}"
        yield Text(plain(f"{run.label}: {run.state} ({counted(run)}; {spent}), {run.started}"))
        if run.verdict:
            yield Text(plain(run.verdict))


def outcomes(probe_outcomes: Sequence[ProbeOutcome], width: int) -> RenderableType:
    """Return a table of probes with attribution, trials and reason, and the remedy below the reason."""
    if width < NARROW:
        return _listed(probe_outcomes)
    rows = [
        (f.probe, f.outcome, f.attribution or "", trials(f.agreed, f.trials, f.interval), _reason(f))
        for f in probe_outcomes
    ]
    return table(("probe", "outcome", "attribution", "trials", "reason"), rows, painted=True)


def causes(run: Run) -> RenderableType:
    """Return a block for each cause: what, the evidence, one remedy, and in one line what follows."""
    from rich.text import Text

    text = Text(overflow="fold")
    for cause in run.causes:
        lead = cause.lead
        text.append(f"{SIGNS.get(lead.outcome, ' ')} {WORDS.get(lead.outcome, lead.outcome)}",
                    STYLES.get(lead.outcome, ""))  # fmt: skip
        part = lead.ability if lead.outcome == "not-shown" else lead.attribution
        text.append(plain(f" {lead.probe}{f' [{part}]' if part else ''}\n"))
        text.append("".join(f"    {line}\n" for line in plain(_reason(lead)).split("\n")))
        if cause.following:
            text.append(plain(f"    follows: {', '.join(cause.following)}\n"))
    text.rstrip()
    return text


def matrix(sheet: ReportModel, width: int) -> Table:
    """Return a row for each probe, a column for each run; signs alone where words do not fit."""
    longest = max(len(probe) for probe in sheet.validating)
    short = longest + 2 + len(sheet.whole) * (CELL + 3) > width
    heads = [f"{run.label}{' (outdated)' if run.state == 'stale' else ''}" for run in sheet.whole]
    rows = []
    for probe in sheet.validating:
        cells = [run.by_probe.get(probe) for run in sheet.whole]
        words = ["" if f is None else SIGNS.get(f.outcome, "") if short else f.outcome for f in cells]
        rows.append((probe, *words))
    title = ", ".join(f"{sign} {name}" for name, sign in SIGNS.items()) if short else ""
    if short:
        title += "".join(f"\n{number}: {head}" for number, head in enumerate(heads, 1))
        heads = [str(number) for number, _ in enumerate(heads, 1)]
    return table(("probe", *heads), rows, title, painted=True)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], title: str = "", *, painted: bool = False
) -> Table:
    """Return a borderless table; cells are plain text, never markup, since some come from repositories.

    ``painted``: outcomes, by word or sign, have colours, where the console has any.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    styles = STYLES | {sign: STYLES[name] for name, sign in SIGNS.items()} if painted else {}
    head = Text(plain(title)) if title else None
    made = Table(title=head, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        made.add_column(Text(plain(column)))
    for row in rows:
        made.add_row(*(Text(plain(cell), styles.get(cell, ""), overflow="fold") for cell in row))
    return made


def _listed(outcomes: Sequence[ProbeOutcome]) -> RenderableType:
    """Return a line for each probe, the reason below where it did not pass: for narrow terminals."""
    from rich.text import Text

    text = Text(overflow="fold")
    for f in outcomes:
        text.append(f"{SIGNS.get(f.outcome, ' ')} {plain(f.outcome)}", STYLES.get(f.outcome, ""))
        text.append(plain(f" {f.probe}{f' [{f.attribution}]' if f.attribution else ''}\n"))
        if not f.passed:
            text.append("".join(f"    {line}\n" for line in plain(_reason(f)).split("\n")))
    return text


def _reason(outcome: ProbeOutcome) -> str:
    """Return the reason, the first broken stage of its exchange, and the remedy."""
    broken = [] if outcome.broken is None else [": ".join(outcome.broken)]
    remedy = [f"→ {outcome.told}"] if outcome.told else []
    return "\n".join([outcome.reason, *broken, *remedy])


def counted(run: Run) -> str:
    """Return the number of outcomes of each kind."""
    return ", ".join(f"{number} {WORDS.get(name, name)}" for name, number in run.counts.items() if number)
