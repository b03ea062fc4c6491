"""Questions that every model answers are answered right; where not, what spoils the answers is looked for."""

from __future__ import annotations

import re
from dataclasses import replace

from importer.validation.blame import (
    FETCH_TEMPLATE,
    IMPORT_AGAIN,
    NO_TEMPLATE,
    NOT_PROVED,
    WHOLE_WEIGHTS,
    endless,
    without_template,
)
from importer.validation.context import Context
from importer.validation.errors import ExchangeError
from importer.validation.outcome import Fail, Outcome, Pass
from importer.validation.probes import tokenizer_whole, turns_rendered
from importer.validation.promise import no_chat
from importer.validation.prompts import COUNT, GREETING, NAME_TOLD, SUM, Prompt
from importer.validation.prompts.told import TALK
from importer.validation.reply import Reply
from importer.validation.signs import control_token
from importer.validation.tokenised import OWN, changed_prompt

NAME = "simple-answers"
LESSON = (
    "Values of another model, a foreign tokenizer, weights that were rounded away: fluent start, then noise."
)
ASKED = (SUM, COUNT, NAME_TOLD)
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Ask as clients do; where most answers are wrong, see whether tokenizer and template belong together."""
    answers = {prompt.name: ctx.first(prompt) for prompt in ASKED}
    gap = left_out(answers[COUNT.name])
    missed = [prompt for prompt in ASKED if not right(answers[prompt.name], prompt)]
    if 2 * len(missed) <= len(ASKED) and gap is None:
        return Pass(f"{len(ASKED) - len(missed)} of {len(ASKED)} are right", trials=len(ASKED))
    if any(control_token(reply.written or reply.content) for reply in answers.values()):
        cut = [reply for reply in answers.values() if reply.finish_reason == "length"]
        told = endless(cut[0], ctx.promise.markers) if cut else None
        if isinstance(told, Fail):
            return told
    found = judge_missed(unknown_marker(ctx), len(missed), len(ASKED), gap)
    return template_fault(found, ctx) or tokenizer_fault(found, ctx) or found


def template_fault(found: Fail, ctx: Context) -> Fail | None:
    """The same, where the model is asked in another way than it was imported with."""
    if ctx.render is None:
        return None
    if without_template(ctx):
        reason, mend = NO_TEMPLATE, FETCH_TEMPLATE
    elif ctx.proof is not None and ctx.proof.template not in ("", ctx.render.digest):
        reason, mend = NOT_PROVED, IMPORT_AGAIN
    elif (broken := unbroken(ctx)) is not None:
        reason, mend = broken, turns_rendered.ALIKE
    else:
        return None
    return Fail(f"{found.reason}, and {reason}", "configuration", mend)


def unbroken(ctx: Context) -> str | None:
    """What a new answer begins without, where the template writes a line break before earlier ones.

    Some models write that break themselves, so it is no fault where answers are right.
    """
    opening = replace(TALK, name="told-opening", messages=TALK.messages[:1])
    earlier, new = turns_rendered.beginnings(ctx.rendered(TALK) or "", ctx.rendered(opening) or "")
    rest = earlier.removeprefix(new)
    if not new or not earlier.startswith(new) or rest.strip() or "\n" not in rest:
        return None
    return f"the template begins an answer without the {rest!r} that stands before earlier ones"


def tokenizer_fault(found: Fail, ctx: Context) -> Fail | None:
    """The same, where the tokenizer changes what the model reads, or what it writes."""
    changed = changed_prompt(ctx)
    whole = tokenizer_whole.run(ctx)
    if isinstance(whole, Fail):
        reason = whole.reason
    elif changed is not None:
        reason = f"the tokenizer makes {changed[:80]!r} of the prompt"
    else:
        return None
    return Fail(f"{found.reason}, and {reason}", "configuration", OWN)


def judge_missed(marker: str | None, missed: int, asked: int, gap: str | None = None) -> Fail:
    """Answers that are wrong; ``marker`` is one of the template's that the tokenizer does not know.

    ``gap`` is a number that was left out in the middle of counting.
    """
    reason = f"{missed} of {asked} simple questions are answered wrong"
    if gap is not None:
        reason = f"counting to ten, the model leaves out {gap!r} and goes on"
    if marker is not None:
        reason = f"{reason}, and the template's {marker} is no token of the tokenizer's"
        return Fail(reason, "configuration", OWN)
    return Fail(reason, "model", WHOLE_WEIGHTS)


def unknown_marker(ctx: Context) -> str | None:
    """A control token in the rendered prompt that the engine counts as several; ``None`` if none is."""
    marker = control_token(ctx.rendered(GREETING) or "")
    if marker is None or ctx.promise.lacks("completions"):
        return None
    try:
        one, two = (_tokens(ctx, marker * times) for times in (1, 2))
    except ExchangeError:
        return None
    return marker if one is not None and two is not None and two - one > 1 else None


def _tokens(ctx: Context, text: str) -> int | None:
    body = {"model": ctx.model, "prompt": text, "max_tokens": 1}
    return ctx.client.completion(body, ctx.log).usage.prompt


def left_out(reply: Reply) -> str | None:
    """The first number that an answer which counts to ten leaves out, though it goes on behind it.

    Who says half of the numbers in order counts in words; dots stand for what need not be said.
    """
    text = reply.content.casefold()
    if reply.finish_reason != "stop" or "..." in text or "…" in text:
        return None
    said = in_order(text)
    gaps = [n for n in NUMBERS if n not in said and any(NUMBERS.index(s) > NUMBERS.index(n) for s in said)]
    return gaps[0] if gaps and 2 * len(said) >= len(NUMBERS) and said[:2] == list(NUMBERS[:2]) else None


def in_order(text: str) -> list[str]:
    """The numbers in words that ``text`` says, each behind the one before."""
    said, at = [], 0
    for number in NUMBERS:
        found = re.compile(rf"\b{number}\b").search(text, at)
        if found is not None:
            said.append(number)
            at = found.end()
    return said


def right(reply: Reply, prompt: Prompt) -> bool:
    """Whether an answer holds what a right one does."""
    return any(word in reply.content.casefold() for word in prompt.expects)
