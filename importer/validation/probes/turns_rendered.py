"""The probe of turns in the template: each is opened and closed alike, at any time of the day."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from importer.chat_template.render import date_at, now
from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context, together
from importer.validation.errors import TemplateRefusedError
from importer.validation.evidence_sources import Render
from importer.validation.expectations import CommonReason, no_chat, no_tools
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.probes import stop_words
from importer.validation.prompts import CALLED, CALLED_EMPTY, SYSTEM, TAGGED, TALK, Prompt
from importer.validation.remedy import Remedy
from importer.validation.tool_markup import without_thinking


class TurnsReason(ReasonKind):
    """The reasons of ``turns-rendered``."""

    LEFT_OUT = "left-out", "see what is left out"
    NOT_ENDED = "not-ended", "nothing ends an earlier answer in the prompt: {behind!r} stands behind it"
    TAG_HARMLESS = "tag-harmless", "a tag of a user's cuts nothing off"
    TAG_CUTS = "tag-cuts", "where a user writes </think>, the rest is not in the prompt: {words!r}"
    EMPTY_ALIKE = "empty-alike", "a call without arguments is written as others are"
    EMPTY_DIFFERS = (
        "empty-differs",
        "a call without arguments is no JSON in the prompt, and one with arguments is",
    )
    BEGIN_ALIKE = "begin-alike", "answers begin alike"
    BEGIN_DIFFERS = "begin-differs", "earlier answers begin with {earlier!r}, a new one with {new!r}"
    NO_CLOCK = "no-clock", "the same an hour later"
    CLOCK = "clock", "the template writes the time of day: no prompt begins like another, and no cache helps"
    ENDED_BETWEEN = (
        "ended-between",
        "{token} ends answers, and the template writes it between two calls of one turn",
    )
    ENDS_BEHIND = "ends-behind", "what ends a turn stands between no two calls"
    DATED = "dated", "prompts have the date of this machine's clock: {date}"


NAME = "turns-rendered"
LESSON = "Templates ended new turns and not earlier ones, began them otherwise, or wrote the time of day."
YEARS = 450 * 86_400.0  # seconds: the day, the month and the year are others
LATER = 3661.0  # seconds: the hour, the minute and the second are others, the day is the same
BRACES = 1000  # that begin no JSON; a prompt with its tools has fewer
ALIKE = Reason(Remedy.BEGIN_TURNS_ALIKE)
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Judge conversations as the template renders them; no request is sent."""
    if ctx.render is None or not ctx.render.digest:
        return NotApplicable(Reason(CommonReason.NOT_RENDERED))
    talk = TALK if _shows(ctx, TALK) else _in_parts(TALK)
    opening = replace(talk, name=f"{talk.name}-opening", messages=talk.messages[:1])
    text = _rendered(ctx, talk)
    outcomes = {
        "tags": judge_tagged(_rendered(ctx, TAGGED)),
        talk.name: judge_ends(text, _rendered(ctx, opening), ctx.render.stops),
        "later": judge_clock(*(_at(ctx.render, SYSTEM, later) for later in (0.0, LATER, YEARS)), today=now()),
    }
    if no_tools(ctx.promise) is None:
        outcomes["arguments"] = judge_empty(_rendered(ctx, CALLED), _rendered(ctx, CALLED_EMPTY))
        outcomes["calls"] = judge_calls(stop_words.between(ctx), ctx.render.stops)
    return together(outcomes)


def _rendered(ctx: Context, prompt: Prompt) -> str:
    return ctx.rendered(prompt) or ""


def _shows(ctx: Context, prompt: Prompt) -> bool:
    """Return whether a template shows plain contents; those of vision models may need parts."""
    return prompt.messages[0]["content"] in _rendered(ctx, prompt)


def _in_parts(prompt: Prompt) -> Prompt:
    turns = ({**m, "content": [{"type": "text", "text": m["content"]}]} for m in prompt.messages)
    return replace(prompt, name=f"{prompt.name}-in-parts", messages=tuple(turns))


def _at(render: Render, prompt: Prompt, later: float) -> str | None:
    try:
        return render.at(prompt, later)
    except TemplateRefusedError:
        return None


def judge_ends(text: str, opening: str, stops: Sequence[str]) -> Outcome:
    """Judge a question, an answer and a question, beside the first question alone; ``stops`` end an answer.

    Where one of them ends the question, one ends the answer, too; and an answer begins as a new one does.
    """
    question, answer, other = (message["content"] for message in TALK.messages)
    if not all(part in text for part in (question, answer, other)) or question not in opening:
        return Pass(Reason(TurnsReason.LEFT_OUT))
    before, new = beginnings(text, opening)
    behind = text.partition(answer)[2].partition(other)[0]
    if any(stop in before for stop in stops) and not any(stop in behind for stop in stops):
        return Fail(
            Reason(TurnsReason.NOT_ENDED, behind=behind),
            "configuration",
            Reason(Remedy.END_TURNS),
        )
    return judge_beginnings(before, new)


def beginnings(text: str, opening: str) -> tuple[str, str]:
    """Return the text between TALK's question and its answer, and behind the question without an answer."""
    question, answer = (message["content"] for message in TALK.messages[:2])
    return text.partition(question)[2].partition(answer)[0], opening.partition(question)[2]


def judge_tagged(text: str) -> Outcome:
    """Judge a question with a tag in it, as the template renders it; the tag itself may be changed."""
    parts = [part.strip() for part in TAGGED.messages[0]["content"].split("</think>")]
    lost = [part for part in parts if part not in text]
    if len(lost) != 1:
        return Pass(Reason(TurnsReason.TAG_HARMLESS))
    reason = Reason(TurnsReason.TAG_CUTS, words=lost[0])
    return Fail(reason, "configuration", Reason(Remedy.TAKE_THOUGHTS_OFF))


def judge_empty(called: str, empty: str) -> Outcome:
    """Judge conversations with a call with arguments and one without; many formats are no JSON."""
    with_some, with_none = (names_in_json(text) for text in (called, empty))
    if "find_events" not in with_some or not empty or "list_events" in with_none:
        return Pass(Reason(TurnsReason.EMPTY_ALIKE))
    return Fail(
        Reason(TurnsReason.EMPTY_DIFFERS),
        "configuration",
        Reason(Remedy.WRITE_EMPTY),
    )


def judge_calls(between: str, stops: Sequence[str]) -> Outcome:
    """Judge the text between two calls in one turn: what ends a turn there loses the second."""
    token = next((stop for stop in stops if stop and stop in between), None)
    if token is None:
        return Pass(Reason(TurnsReason.ENDS_BEHIND))
    remedy = Reason(Remedy.TAKE_OUT_END, token=token)
    return Fail(Reason(TurnsReason.ENDED_BETWEEN, token=token), "configuration", remedy)


def names_in_json(text: str) -> set[str]:
    """Return each ``name`` in the JSON objects in ``text``, alone or inside another."""
    found: list[Any] = []
    decoder, start, braces = json.JSONDecoder(object_hook=found.append), text.find("{"), 0
    while start >= 0 and braces < BRACES:
        try:
            _, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end, braces = start + 1, braces + 1
        start = text.find("{", end)
    return {name for value in found if isinstance(name := value.get("name"), str)}


def judge_beginnings(earlier: str, new: str) -> Outcome:
    """Judge the text between a question and its answer: of an earlier turn, and of the new one."""
    before, now = ("".join(without_thinking(part).casefold().split()) for part in (earlier, new))
    if before.startswith(now) or now.startswith(before):
        return Pass(Reason(TurnsReason.BEGIN_ALIKE))
    return Fail(
        Reason(TurnsReason.BEGIN_DIFFERS, earlier=earlier, new=new),
        "configuration",
        ALIKE,
    )


def judge_clock(first: str | None, later: str | None, years: str | None, *, today: float) -> Outcome:
    """Judge a conversation, the same one later on the same day, and after years.

    A template that writes the date has that of the machine: the reason names the one of ``today``, in seconds
    after the fixed time.
    """
    if later is None or later == first:
        dated = years is not None and years != first
        return Pass(Reason(TurnsReason.DATED, date=date_at(today)) if dated else Reason(TurnsReason.NO_CLOCK))
    return Fail(
        Reason(TurnsReason.CLOCK),
        "configuration",
        Reason(Remedy.NO_CLOCK),
    )
