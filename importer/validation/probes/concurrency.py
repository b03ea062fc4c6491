"""The probe of load: of sixteen parallel questions each gets its own answer, and one afterwards is right."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.errors import ExchangeError, ServerUnreachable
from importer.validation.expectations import no_chat
from importer.validation.failures import failed
from importer.validation.outcome import Fail, Outcome, Pass
from importer.validation.prompts import AGAIN, COUNT, NAME_RECALL, SUM, Prompt
from importer.validation.reply import Reply


class SixteenReason(ReasonKind):
    """The reasons of ``sixteen-at-once``."""

    FAILED = "failed", "of {count} requests at once one failed: {error}"
    MIXED = "mixed", "{prompt!r} got the answer to {other!r}"
    FAILED_AFTER = "failed-after", "after {count} requests at once a single one failed: {error}"
    ANSWERED = "answered", "{good} of {count} answered as each alone"


NAME = "sixteen-at-once"
LESSON = "Entries of another batch's shape crashed every later request, and answers went to the wrong client."
ALONE = True  # it is a load
AT_ONCE = 16
FEWER = 8  # of a slow engine
APART = 0.02  # seconds between two requests: the load is for the engine, not for its queue of connections
QUESTIONS = (SUM, COUNT, NAME_RECALL, AGAIN)
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Send the questions that the model answers right by itself, several times each and all at once."""
    count = FEWER if ctx.promise.slow else AT_ONCE
    known = [prompt for prompt in QUESTIONS if right(ctx.first(prompt), prompt)] or [SUM]
    prompts = [known[i % len(known)] for i in range(count)]
    with ThreadPoolExecutor(count) as pool:
        answers = list(pool.map(lambda i: _ask(ctx, prompts[i], APART * i), range(count)))
    outcome = judge(prompts, answers, lambda: _ask(ctx, known[0]))
    broken = next((answer for answer in answers if isinstance(answer, ExchangeError)), None)
    failure = failed(broken, ctx) if broken is not None else None
    return failure if isinstance(failure, Fail) and failure.attribution == "environment" else outcome


def _ask(ctx: Context, prompt: Prompt, later: float = 0.0) -> Reply | ExchangeError:
    """Return one answer after ``later`` seconds; a broken connection is retried once, as clients do."""
    time.sleep(later)
    for last in (False, True):
        try:
            return ctx.ask(prompt)
        except ExchangeError as error:
            failed = error
            if last or not isinstance(error, ServerUnreachable):
                break
    return failed


def judge(
    prompts: Sequence[Prompt],
    answers: Sequence[Reply | ExchangeError],
    again: Callable[[], Reply | ExchangeError],
) -> Outcome:
    """Judge answers to parallel questions; ``again`` repeats the first one by itself."""
    for answer in answers:
        if isinstance(answer, ExchangeError):
            return Fail(
                Reason(SixteenReason.FAILED, count=len(answers), error=answer.reason),
                "engine",
                trials=len(answers),
            )
    for prompt, answer in zip(prompts, answers, strict=True):
        other = next((p for p in prompts if p.name != prompt.name and right(answer, p)), None)
        if isinstance(answer, Reply) and not right(answer, prompt) and other is not None:
            return Fail(
                Reason(SixteenReason.MIXED, prompt=prompt.name, other=other.name),
                "engine",
                trials=len(answers),
            )
    last = again()
    if isinstance(last, ExchangeError):
        return Fail(Reason(SixteenReason.FAILED_AFTER, count=len(answers), error=last.reason), "engine")
    good = sum(right(answer, prompt) for prompt, answer in zip(prompts, answers, strict=True))
    return Pass(
        Reason(SixteenReason.ANSWERED, good=good, count=len(answers)), trials=len(answers), agreed=good
    )


def right(reply: Reply | ExchangeError, prompt: Prompt) -> bool:
    """Return whether an answer holds an expected word."""
    return isinstance(reply, Reply) and prompt.answered_by(reply.content)
