"""The figures of a score: shares with Wilson's intervals, and the F1 of calling a tool."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from importer.validation.outcome import wilson
from importer.validation.prompts import Tool
from importer.validation.reply import Reply, ToolCall
from importer.validation.score.questions import Call, Question


@dataclass(frozen=True, slots=True)
class Marks:
    """One answer: whether a call was due and came, how many calls fit a schema, whether all is right."""

    kind: str
    due: bool
    called: bool
    calls: int
    valid: int
    right: bool


def marked(question: Question, reply: Reply) -> Marks:
    """Return the marks of an answer: right are exactly the calls of the question, or none if it has none."""
    calls = reply.tool_calls
    valid = sum(fits(call, question.tools) for call in calls)
    right = valid == len(calls) and _same(calls, question.calls)
    return Marks(question.kind, bool(question.calls), bool(calls), len(calls), valid, right)


def fits(call: ToolCall, tools: Sequence[Tool]) -> bool:
    """Return whether a call names a tool on offer, and its arguments are JSON that fits the tool's schema."""
    from jsonschema import Draft202012Validator

    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return False
    return call.name in schemas and Draft202012Validator(schemas[call.name]).is_valid(arguments)


def _same(calls: Sequence[ToolCall], expected: Sequence[Call]) -> bool:
    """Return whether the calls, all valid, are the expected ones in any order."""
    left = list(expected)
    for call in calls:
        arguments = json.loads(call.arguments)
        found = next((one for one in left if one[0] == call.name and _holds(arguments, one[1])), None)
        if found is None:
            return False
        left.remove(found)
    return not left


def _holds(given: Any, expected: Any) -> bool:
    """Return whether a value is the expected one; texts may differ in case, objects may hold more."""
    if isinstance(expected, Mapping):
        return isinstance(given, Mapping) and all(
            key in given and _holds(given[key], value) for key, value in expected.items()
        )
    if isinstance(expected, list):
        return (
            isinstance(given, list)
            and len(given) == len(expected)
            and all(_holds(one, other) for one, other in zip(given, expected, strict=True))
        )
    if isinstance(expected, str):
        return isinstance(given, str) and given.strip().casefold() == expected.casefold()
    return isinstance(given, bool) is isinstance(expected, bool) and bool(given == expected)


def figures(marks: Sequence[Marks], kinds: Iterable[str]) -> dict[str, Any]:
    """Return the figures in the form of a receipt."""
    hit, false, missed = (
        sum(m.called is called and m.due is due for m in marks)
        for called, due in ((True, True), (True, False), (False, True))
    )
    return {
        "trigger": {
            "precision": share(hit, hit + false),
            "recall": share(hit, hit + missed),
            "f1": f1(hit, false, missed),
        },
        "schema": share(sum(m.valid for m in marks), sum(m.calls for m in marks)),
        "right": share(sum(m.right for m in marks), len(marks)),
        "kinds": {
            kind: share(sum(m.right for m in marks if m.kind == kind), sum(m.kind == kind for m in marks))
            for kind in kinds
        },
    }


def share(agreed: int, trials: int) -> dict[str, Any]:
    """Return a share with its 95 % interval; both are ``None`` without trials."""
    interval = wilson(agreed, trials)
    return {
        "value": None if interval is None else round(agreed / trials, 4),
        "interval": None if interval is None else [round(bound, 4) for bound in interval],
        "agreed": agreed,
        "trials": trials,
    }


def f1(hit: int, false: int, missed: int) -> dict[str, Any]:
    """Return F1 with its 95 % interval.

    F1 = 2 J / (1 + J) grows with J = hit / (hit + false + missed). J is a share, so that Wilson's interval
    for J gives the interval for F1.
    """
    jaccard = share(hit, hit + false + missed)
    interval = wilson(hit, hit + false + missed)
    value = None if interval is None else round(2 * hit / (2 * hit + false + missed), 4)
    bounds = None if interval is None else [round(2 * bound / (1 + bound), 4) for bound in interval]
    return {**jaccard, "value": value, "interval": bounds}
