"""Documents in a table, a line for each, and the facts of one document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from importer.app.overview import Overview
from importer.cli import messages, output
from importer.memory.plan_settings import gib
from importer.sentences import render

if TYPE_CHECKING:
    from rich.table import Table


NARROW = 110  # columns below which validation, licence and attention are left out
WHOLE = 10_000  # columns where there is no terminal, so that nothing is cut
HEADS = ("name", "state", "tools", "thinking", "context", "weights")
WIDE = (*HEADS, "backend", "validated", "needs attention")
ATTENTION = "needs attention"


def table(rows: Sequence[Mapping[str, object]], width: int) -> Table:
    """Return the table of rows as ``app.overview`` has them, a line for each; what is too long is cut."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in WIDE if width >= NARROW else HEADS:
        made.add_column(head, no_wrap=head not in ("name", ATTENTION))  # the others keep their width
    for row in rows:
        cells = dict(_cells(row))
        texts = (output.plain(output.value(cells[str(one.header)])) for one in made.columns)
        made.add_row(*(Text(text, no_wrap=True, overflow="ellipsis") for text in texts))
    return made


def _cells(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    facts = row["facts"] or {}
    yield from ((key, row[key]) for key in ("name", "state", "backend"))
    yield "tools", facts.get("tool_parser")
    yield "thinking", facts.get("reasoning_parser")
    yield "context", _number(facts.get("context"))
    yield "weights", _size(facts.get("weights"))
    yield "validated", row["validation"] if facts.get("validated") is None else _run(facts["validated"])
    yield ATTENTION, _first([one["message"] for one in row["needs_attention"]])


def _first(messages: Sequence[str]) -> str:
    """Return the first message, behind the number of all where there are several."""
    if not messages:
        return ""
    return messages[0] if len(messages) == 1 else f"{len(messages)}: {messages[0]}"


def _run(validated: Mapping[str, Any]) -> str:
    """Return ``mlx-lm 0.32.2: 45 of 45``: of the probes that apply."""
    outcomes = validated["outcomes"]
    applicable = validated["probes"] - outcomes.get("not-applicable", 0)
    counted = f"{outcomes['pass']} of {applicable}" if validated["probes"] else validated["state"]
    return f"{validated['label']}: {counted}"


def _number(count: int | None) -> str | None:
    return None if count is None else f"{count:,}"


def _size(count: int | None) -> str | None:
    return None if count is None else gib(count)


def lines(shown: Overview) -> Iterator[str]:
    """Yield what one document is: its state, its description, its facts, and what needs attention."""
    reason, facts = shown.state.reason, shown.facts
    yield f"state: {shown.state.state}{'' if reason is None else f'; {render(reason)}'}"
    yield f"description ({facts.described_by}): {facts.description}"
    yield from (line for line in facts.lines if line != facts.description)
    yield f"tags: {', '.join(facts.tags)}"
    for one in shown.needs_attention:
        yield f"needs attention: {messages.ABOUT.get(str(one['key']), one['key'])}: {one['message']}"
