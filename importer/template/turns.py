"""What begins the next turn, where a template ends the model's own with nothing."""

from __future__ import annotations

from importer.template.bench import Ask, Bench
from importer.template.cases import ANSWER, ASK, ASK_AGAIN, ONE, RESULT, TOOLS, Turn
from importer.template.marks import SHAPE
from importer.template.render import Rendered, Result


def next_turns(bench: Bench) -> tuple[str, ...]:
    """The markers that follow right behind an answer and right behind a call, each once."""
    plain, tools = Ask((ASK,), ASK, bench.no_tools), Ask((ASK,), ASK, TOOLS)
    answer, call = (ASK, Turn("assistant", ANSWER)), (ASK, Turn("assistant", calls=(ONE,)))
    results = bench.render(
        [
            bench.job(answer, plain, generate=False),
            bench.job((*answer, ASK_AGAIN), plain, generate=False),
            bench.job(call, tools, generate=False),
            bench.job((*call, Turn("tool", RESULT)), tools, generate=False),
        ]
    )
    found = (_marker(*results[i : i + 2]) for i in (0, 2))
    return tuple(dict.fromkeys(m for m in found if m))


def _marker(alone: Result, going_on: Result) -> str:
    """What goes on with a marker, if all before it is the same."""
    if not isinstance(alone, Rendered) or not isinstance(going_on, Rendered):
        return ""
    before = alone.text.rstrip()
    if not before or not going_on.text.startswith(before):
        return ""
    begun = SHAPE.match(going_on.text[len(before) :].lstrip())
    return begun[0] if begun is not None else ""
