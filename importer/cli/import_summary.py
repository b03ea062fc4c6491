"""The summary of an import: key, value and source, the fit and the plans, with no figure cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from importer.app.import_ import Plan
from importer.chat_template.request_coverage.findings import CoverageKind
from importer.cli import messages, output
from importer.decisions.decide import PARSERS
from importer.decisions.decision import Decision
from importer.decisions.parsers import ParserReason
from importer.decisions.sampling import SamplingReason
from importer.document.attention import Attention
from importer.document.build import source
from importer.document.document_keys import IMPORTANT, REMARKS, UNWRITTEN
from importer.memory.choose import Choice
from importer.memory.plan_settings import gib, plan_json
from importer.memory.planner import Plan as Deployment
from importer.memory.plans import held
from importer.reasons import Reason
from importer.signals import speculation
from importer.signals.reasons import DraftReason

WIDTH, MIDDLE = 80, 20  # columns of a table where its cells fit, and of its values at least
ROWS = 16  # of a table; with what stands around it an ordinary import has 25 lines
HIDDEN = (*REMARKS, *UNWRITTEN, "quantization_scheme", "sampling_modes", "end_tokens")
FIRST = ("kind", "family", "backend", *IMPORTANT)


def import_lines(planned: Plan) -> Iterator[str]:
    """Yield the table, the number of values that it leaves out, the fit, and what is off and could be on."""
    rows = [tuple(map(output.plain, cells)) for cells in _rows(planned.decisions)]
    key, origin = (max(len(cells[at]) for cells in rows[:ROWS]) for at in (0, 2))
    room = max(MIDDLE, WIDTH - key - origin - 4)
    for name, value, text in rows[:ROWS]:
        head = f"{name:<{key}}  {value:<{room}}"
        if len(value) > room:  # the source has a line of its own: no figure is cut
            yield head
            head = " " * (key + 2 + room)
        yield f"{head}  {text}".rstrip()
    if len(rows) > ROWS:
        yield f"… and {len(rows) - ROWS} more: --explain prints all"
    yield output.plain(f"fit: {_fit(planned.fit)}")
    for word, layout in zip(
        ("plan", *["next"] * len(planned.fit.plans)), _compared(planned.fit), strict=False
    ):
        yield from map(output.plain, _plan(word, layout))
    worth = [one for decision in planned.decisions.values() for one in decision.why if _worth_knowing(one)]
    yield from (output.plain(f"worth knowing: {messages.text(reason)}") for reason in worth)
    yield from _offers(planned.decisions)


def _worth_knowing(reason: Reason) -> bool:
    """Return whether clients have to know of it: who draws, which turns are refused, which calls are lost."""
    problem = reason.fields.get("problem")
    refuses = isinstance(problem, Reason) and problem.kind is CoverageKind.REFUSED
    loses = reason.kind is ParserReason.FAILS and not reason.fields["thought"]
    return refuses or loses or reason.kind is SamplingReason.SERVER_DRAWS


def _offers(decisions: Mapping[str, Decision]) -> Iterator[str]:
    decision = decisions.get(speculation.KEY)
    why = () if decision is None or decision.value is not None else decision.why
    if any(reason.kind is DraftReason.OFFERED for reason in why):
        yield messages.SPECULATION.format(key=speculation.KEY.partition(".")[2], method=speculation.OWN_HEADS)


def attention(warning: Attention) -> str:
    """Return a warning in one line, with the flags that help."""
    about = messages.ABOUT.get(warning.key, warning.key)
    return f"Needs attention: {about}: {messages.text(warning.reason)}"


def _rows(decisions: Mapping[str, Decision]) -> Iterator[tuple[str, str, str]]:
    for key in dict.fromkeys((*FIRST, *decisions)):
        decision = decisions.get(key)
        if decision is None or (key in HIDDEN and decision.status != "planned"):
            continue
        if decision.value is not None:
            yield key, _value(decision.value), source(decision)
        elif key in PARSERS:
            yield key, "–", "unknown" if decision.status == "unknown" else source(decision)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_value(inner)}" for name, inner in value.items())
    return ", ".join(map(_value, value)) if isinstance(value, list) else str(value)


def _sizes(choice: Choice) -> str:
    """Return the sizes of a document that is for no device in particular."""
    if choice.fit is None:
        return "unknown"
    weights = choice.fit.term("weights")
    loaded = gib(0 if weights is None else weights.amount.likely)
    return (
        f"no limits; weights {loaded}, cache {gib(choice.fit.cache)} for {choice.fit.load.context:,} tokens"
    )


def _compared(choice: Choice) -> tuple[Deployment, ...]:
    """Return the plans where there are several: the document's, then the next-best."""
    return choice.plans if len(choice.plans) > 1 else ()


def _plan(word: str, plan: Deployment) -> Iterator[str]:
    """Yield the layout of a plan with the sequences that it holds, then the bounds of its times."""
    record: dict[str, Any] = plan_json(plan)
    yield f"{word}: {output.layout(record)}; context {record['max_model_len']:,}; {held(record)}"
    if (step := record["step_ms"]) is not None:
        yield f"      at best {step:.1f} ms/token, {record['tokens_per_second'] or 0:,} tokens/s (calculated)"


def _fit(choice: Choice) -> str:
    """Return the device, and the share of its memory that the model needs."""
    if choice.device is None:
        return _sizes(choice)
    plan = choice.plan
    if plan is None:
        return f"unknown on {choice.device.label}"
    amounts = f"{gib(plan.fit.total.likely)} of {gib(plan.budget)}"
    more = plan.case.device.label
    if more != choice.device.label:
        return f"{choice.verdict.replace('-', ' ')} for {choice.device.label}; {more}: {amounts} on each"
    cards = f" on each of {plan.split.cards}" if plan.split.cards > 1 else ""
    return f"{choice.verdict} on {choice.device.label}, about {amounts}{cards}"
