"""Documents in a table, and the facts of one: state, sizes, licence, validation, what needs attention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from importer.app.overview import Overview
from importer.cli import messages, output
from importer.memory.plan_settings import gib
from importer.sentences import render

if TYPE_CHECKING:
    from rich.table import Table


NARROW = 110  # columns below which the model, licence, memory and variants are left out
HEADS = ("name", "state", "backend", "context", "weights", "validated", "needs attention")
WIDE = (
    "name", "state", "model", "backend", "context", "weights", "memory", "licence", "validated", "variants",
    "needs attention",
)  # fmt: skip


def table(rows: Sequence[Mapping[str, object]], width: int) -> Table:
    """Return the table of rows as ``app.overview`` has them."""
    heads = WIDE if width >= NARROW else HEADS
    cells = [{head: output.value(cell) for head, cell in _cells(row)} for row in rows]
    return output.table(heads, [tuple(cell[head] for head in heads) for cell in cells])


def _cells(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    facts = row["facts"] or {}
    memory, validated = facts.get("memory"), facts.get("validated")
    yield from ((key, row[key]) for key in ("name", "state", "model", "backend"))
    yield "context", _number(facts.get("context"))
    yield "weights", _size(facts.get("weights"))
    yield "licence", facts.get("license")
    yield "memory", None if memory is None else _each(memory)
    yield "variants", ", ".join(row["variants"]) or None
    yield "validated", row["validation"] if validated is None else _run(validated)
    yield "needs attention", _first([one["message"] for one in row["needs_attention"]])


def _first(messages: Sequence[str]) -> str:
    """Return the first message, and how many there are beside it."""
    if not messages:
        return ""
    return messages[0] if len(messages) == 1 else f"{messages[0]} (+{len(messages) - 1})"


def _run(validated: Mapping[str, Any]) -> str:
    """Return ``passed, mlx-lm 0.32.2: 45 of 45``: of the probes that apply."""
    outcomes = validated["outcomes"]
    applicable = validated["probes"] - outcomes.get("not-applicable", 0)
    counted = f": {outcomes['pass']} of {applicable}" if validated["probes"] else ""
    return f"{validated['state']}, {validated['label']}{counted}"


def _each(memory: Mapping[str, Any]) -> str:
    """Return the memory of a card, behind the number of cards where there are several."""
    cards = f"{memory['cards']} × " if memory["cards"] > 1 else ""
    return f"{cards}{gib(memory['bytes'])}"


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
