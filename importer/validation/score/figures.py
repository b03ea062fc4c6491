"""The figures of a score and their measurement: shares with Wilson's intervals, within a limit of time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import Any

from importer.chat_template.samples import Tool
from importer.frozen import frozen
from importer.progress import Progress, Step
from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.errors import ExchangeError
from importer.validation.expectations import Expectations, no_tools
from importer.validation.outcome import wilson
from importer.validation.reply import Reply, ToolCall
from importer.validation.score.questions import KINDS, QUESTIONS, Call, Question


@frozen
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


def figures(marks: Sequence[Marks], kinds: Iterable[str]) -> dict[str, object]:
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


def share(agreed: int, trials: int) -> dict[str, object]:
    """Return a share with its 95 % interval; both are ``None`` without trials."""
    interval = wilson(agreed, trials)
    return {
        "value": None if interval is None else round(agreed / trials, 4),
        "interval": None if interval is None else [round(bound, 4) for bound in interval],
        "agreed": agreed,
        "trials": trials,
    }


def f1(hit: int, false: int, missed: int) -> dict[str, object]:
    """Return F1 with its 95 % interval.

    F1 = 2 J / (1 + J) grows with J = hit / (hit + false + missed). J is a share, so that Wilson's interval
    for J gives the interval for F1.
    """
    jaccard = share(hit, hit + false + missed)
    interval = wilson(hit, hit + false + missed)
    value = None if interval is None else round(2 * hit / (2 * hit + false + missed), 4)
    bounds = None if interval is None else [round(2 * bound / (1 + bound), 4) for bound in interval]
    return {**jaccard, "value": value, "interval": bounds}


SIDE_BY_SIDE = 4  # requests at a time
LIMIT = 600.0  # seconds of all questions


def needs_score(promise: Expectations) -> Reason | None:
    """Return why a model is not scored: no chat, or no parser for calls."""
    return no_tools(promise)


def measure(
    ctx: Context,
    each: int,
    progress: Progress,
    *,
    limit: float = LIMIT,
    questions: Sequence[Question] = QUESTIONS,
) -> Mapping[str, object] | None:
    """Ask every question ``each`` times and return the figures, ``None`` where the model is not scored.

    The request of round n has the seed n. ``limit``  seconds for all; questions after it are not asked. An
    exchange that fails is counted, and is in no figure.
    """
    if needs_score(ctx.promise) is not None:
        return None
    begun = time.monotonic()
    asked, total = count(1), each * len(questions)

    def answer(seed: int, question: Question) -> Marks | ExchangeError | None:
        left = limit - (time.monotonic() - begun)
        if left <= 0 or ctx.client.over is not None:
            return None
        progress(Step(f"score: {question.name}", next(asked), total))
        client = replace(ctx.client, time_limit=min(ctx.client.time_limit, left))
        try:
            return marked(question, replace(ctx, client=client, log=[]).ask(question.prompt, seed=seed))
        except ExchangeError as error:
            return error

    rounds = [(seed, question) for seed in range(each) for question in questions]
    pool = ThreadPoolExecutor(SIDE_BY_SIDE)
    try:
        answers = list(pool.map(lambda one: answer(*one), rounds))
    finally:  # on Ctrl-C no answer is awaited: they end with the engine
        pool.shutdown(wait=False, cancel_futures=True)
    marks = [one for one in answers if isinstance(one, Marks)]
    return {
        "questions": len(questions),
        "each": each,
        "asked": sum(one is not None for one in answers),
        "answered": len(marks),
        "complete": len(marks) == total,
        "seconds": round(time.monotonic() - begun, 2),
        "limit": limit,
        **figures(marks, KINDS),
    }
