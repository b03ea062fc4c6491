"""The probe of simple questions: where most are answered wrong, it looks for the part at fault."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from importer.reasons import Reason, ReasonKind
from importer.validation import alternate_forms
from importer.validation.context import STEADY, Context
from importer.validation.diagnosis import endless
from importer.validation.errors import ExchangeError
from importer.validation.expectations import CommonReason, no_chat
from importer.validation.outcome import Fail, Outcome, Pass, failing
from importer.validation.probes import tokenizer_whole, turns_rendered
from importer.validation.prompts import COUNT, GREETING, NAME_RECALL, SUM, TALK, Prompt
from importer.validation.remedy import Remedy
from importer.validation.reply import Reply
from importer.validation.tokens import OWN, altered
from importer.validation.tool_markup import blanked, control_token


class SimpleAnswersReason(ReasonKind):
    """The reasons of ``simple-answers``."""

    RIGHT = "right", "{right} of {asked} are right"
    UNBROKEN = (
        "unbroken",
        "the template begins an answer without the {rest!r} that stands before earlier ones",
    )
    WRONG = "wrong", "{missed} of {asked} simple questions are answered wrong"
    UNKNOWN_MARKER = "unknown-marker", "the template's {marker} is no token of the tokenizer's"
    GAP = "gap", "counting to ten, the model leaves out {gap!r} and goes on"
    OTHER_FORM = "other-form", "in turns of {form} all of them are right"
    UNOPENED = "unopened", "behind {opening!r} all of them are right, and the template does not write it"
    RIGHT_BY_ITSELF = (
        "right-by-itself",
        "behind the same text the weights answer right, where no chat is asked for",
    )


NAME = "simple-answers"
SHOWN = 12  # characters behind the end of an answer
LESSON = (
    "Values of another model, a foreign tokenizer, weights that were rounded away: fluent start, then noise."
)
QUESTIONS = (SUM, COUNT, NAME_RECALL)
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Judge the answers to three questions; where most are wrong, check template and tokenizer."""
    answers = {prompt.name: ctx.first(prompt) for prompt in QUESTIONS}
    missed, trials = _missed(answers), len(QUESTIONS)
    if 2 * len(missed) > len(QUESTIONS) and not ctx.promise.hot:  # a small model misses some by chance
        steady = {prompt.name: _steadily(ctx, prompt, answers[prompt.name]) for prompt in missed}
        answers, trials = answers | steady, trials + len(missed)
        missed = _missed(answers)
    gap = left_out(answers[COUNT.name])
    if 2 * len(missed) <= len(QUESTIONS) and gap is None:
        right = len(QUESTIONS) - len(missed)
        return Pass(Reason(SimpleAnswersReason.RIGHT, right=right, asked=len(QUESTIONS)), trials)
    if any(_right_before_token(answers[prompt.name], prompt) for prompt in QUESTIONS):
        cut = [reply for reply in answers.values() if reply.finish_reason == "length"]
        cut_failure = endless(cut[0], ctx.promise.markers) if cut else None
        if isinstance(cut_failure, Fail):
            return cut_failure
    failure = judge_missed(unknown_marker(ctx), len(missed), len(QUESTIONS), gap)
    noise = len(missed) == len(QUESTIONS)
    return (
        template_fault(failure, ctx)
        or form_fault(failure, ctx, noise=noise)
        or opening_fault(failure, ctx)
        or tokenizer_fault(failure, ctx)
        or options_fault(failure, ctx, answers)
        or failure
    )


def _steadily(ctx: Context, prompt: Prompt, reply: Reply) -> Reply:
    """Return a steady answer; with its whole room where a slow engine's shorter one has cut the first."""
    if not ctx.promise.slow or reply.finish_reason != "length":
        return ctx.ask(prompt, **STEADY)
    return ctx.ask(prompt, max_tokens=replace(ctx.promise, plain=None).limit(prompt.tokens), **STEADY)


def _missed(answers: Mapping[str, Reply]) -> list[Prompt]:
    return [prompt for prompt in QUESTIONS if not prompt.answered_by(answers[prompt.name].content)]


def _right_before_token(reply: Reply, prompt: Prompt) -> bool:
    """Return whether a right answer is gone on with behind a control token; noise may hold any token."""
    text = (reply.written or reply.content).casefold()
    token = control_token(text)
    return token is not None and prompt.answered_by(text.partition(token)[0])


def template_fault(failure: Fail, ctx: Context) -> Fail | None:
    """Return the failure as a fault of the template, where that is not the one of the import."""
    if ctx.render is None:
        return None
    if ctx.without_template:
        note, remedy = Reason(CommonReason.NO_TEMPLATE), Reason(Remedy.FETCH_TEMPLATE)
    elif ctx.proof is not None and ctx.proof.template not in ("", ctx.render.digest):
        note, remedy = Reason(CommonReason.NOT_PROVED), Reason(Remedy.IMPORT_AGAIN)
    elif (broken := unbroken(ctx)) is not None:
        note, remedy = broken, turns_rendered.ALIKE
    else:
        return None
    return failing(failure, "configuration", remedy, note)


def form_fault(failure: Fail, ctx: Context, *, noise: bool) -> Fail | None:
    """Return the failure as a fault of the template, where the weights answer to turns of a known form."""
    several = ctx.render is not None and ctx.render.others  # the engine may read another template
    form = None if several else alternate_forms.answering(ctx, QUESTIONS, noise=noise)
    if form is None:
        return None
    turns = alternate_forms.text_of(form, SUM)
    remedy = Reason(Remedy.WRITE_TURNS, form=form.name, turns=turns)
    note = Reason(SimpleAnswersReason.OTHER_FORM, form=form.name)
    return failing(failure, "configuration", remedy, note)


def opening_fault(failure: Fail, ctx: Context) -> Fail | None:
    """Return the failure as a fault of the template, where the weights answer behind an opened thought."""
    opening = alternate_forms.opening(ctx, QUESTIONS)
    if opening is None:
        return None
    note = Reason(SimpleAnswersReason.UNOPENED, opening=opening)
    return failing(failure, "configuration", Reason(Remedy.OPEN_THOUGHT, opening=opening), note)


def unbroken(ctx: Context) -> Reason | None:
    """Return the line break that earlier answers begin with, and a new one does not.

    Some models write that break themselves, so it is no fault where answers are right.
    """
    opening = replace(TALK, name="told-opening", messages=TALK.messages[:1])
    earlier, new = turns_rendered.beginnings(ctx.rendered(TALK) or "", ctx.rendered(opening) or "")
    rest = earlier.removeprefix(new)
    if not new or not earlier.startswith(new) or rest.strip() or "\n" not in rest:
        return None
    return Reason(SimpleAnswersReason.UNBROKEN, rest=rest)


def tokenizer_fault(failure: Fail, ctx: Context) -> Fail | None:
    """Return the failure as a fault of the tokenizer, where that changes prompts or answers."""
    whole = tokenizer_whole.run(ctx)
    note = whole.reason if isinstance(whole, Fail) else altered(ctx)
    return None if note is None else failing(failure, "configuration", OWN, note)


def options_fault(failure: Fail, ctx: Context, answers: Mapping[str, Reply]) -> Fail | None:
    """Return the failure as a fault of what stands before the weights, where they answer right to the same
    tokens without a chat. Values of the document that change an answer are tried elsewhere.
    """
    wrote = {name: f"{reply.reasoning}\n{reply.content}" for name, reply in answers.items()}
    missed = [prompt for prompt in QUESTIONS if not prompt.answered_by(wrote[prompt.name])]
    bent = ctx.promise.hot or ctx.promise.stopwords or {*ctx.promise.client_sampling} - {*STEADY}
    counts = ctx.counted(missed[0]) if missed and not bent else None
    if counts is None or counts[0] != counts[1] or not alternate_forms.right_by_itself(ctx, missed):
        return None
    note = Reason(SimpleAnswersReason.RIGHT_BY_ITSELF)
    own = alternate_forms.by_itself(ctx, missed[0])
    before = ended_before(own, answers[missed[0].name])
    remedy = (
        Reason(Remedy.OPTIONS_UNALTERED) if before is None else Reason(Remedy.NO_OWN_STOPS, before=before)
    )
    return failing(failure, "engine", remedy, note)


def ended_before(own: str, reply: Reply) -> str | None:
    """Return the text that an answer ends before, where it is the beginning of what the weights write."""
    came = "".join(f"{reply.reasoning}{reply.content}".split())
    if reply.finish_reason != "stop" or not came:
        return None
    shown = [(place, letter) for place, letter in enumerate(blanked(own)) if not letter.isspace()]
    if "".join(letter for _, letter in shown[: len(came)]) != came:
        return None
    place = shown[len(came) - 1][0] + 1
    return own[place : place + SHOWN] or None


def judge_missed(marker: str | None, missed: int, questions: int, gap: str | None = None) -> Fail:
    """Return the failure of wrong answers; ``marker`` is one of the template that the tokenizer does not
    know.

    ``gap`` is a number that was left out in the middle of counting.
    """
    reason = Reason(SimpleAnswersReason.WRONG, missed=missed, asked=questions)
    if gap is not None:
        reason = Reason(SimpleAnswersReason.GAP, gap=gap)
    if marker is not None:
        note = Reason(SimpleAnswersReason.UNKNOWN_MARKER, marker=marker)
        return Fail(reason, "configuration", OWN, notes=(note,))
    return Fail(reason, "model", Reason(Remedy.WHOLE_WEIGHTS))


def unknown_marker(ctx: Context) -> str | None:
    """Return a control token of the prompt that the engine counts as several, or ``None``."""
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
    """Return the first number that an answer to a count to ten leaves out in the middle.

    An answer counts in words if it has half of the numbers in order; dots stand for omitted ones.
    """
    text = reply.content.casefold()
    if reply.finish_reason != "stop" or "..." in text or "…" in text:
        return None
    numbers = in_order(text)
    gaps = [
        n for n in NUMBERS if n not in numbers and any(NUMBERS.index(s) > NUMBERS.index(n) for s in numbers)
    ]
    return gaps[0] if gaps and 2 * len(numbers) >= len(NUMBERS) and numbers[:2] == list(NUMBERS[:2]) else None


def in_order(text: str) -> list[str]:
    """Return the numbers in words that ``text`` holds, each behind the one before."""
    numbers, position = [], 0
    for number in NUMBERS:
        match = re.compile(rf"\b{number}\b").search(text, position)
        if match is not None:
            numbers.append(number)
            position = match.end()
    return numbers
