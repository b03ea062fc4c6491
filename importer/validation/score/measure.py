"""The measurement of a score: every question, several times, within a limit of time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import Any

from importer.progress import Progress, Step
from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.errors import ExchangeError
from importer.validation.expectations import Expectations, no_tools
from importer.validation.score.figures import Marks, figures, marked
from importer.validation.score.questions import KINDS, QUESTIONS, Question

SIDE_BY_SIDE = 4  # requests at a time
LIMIT = 600.0  # seconds of all questions


def needs(promise: Expectations) -> Reason | None:
    """Return why a model is not scored: no chat, or no parser for calls."""
    return no_tools(promise)


def measure(
    ctx: Context,
    each: int,
    progress: Progress,
    *,
    limit: float = LIMIT,
    questions: Sequence[Question] = QUESTIONS,
) -> Mapping[str, Any] | None:
    """Ask every question ``each`` times and return the figures, ``None`` where the model is not scored.

    The request of round n has the seed n. ``limit``  seconds for all; questions after it are not asked. An
    exchange that fails is counted, and is in no figure.
    """
    if needs(ctx.promise) is not None:
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
