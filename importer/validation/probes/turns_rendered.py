"""The probe of the template: each turn and call stands in the prompt, in order, opened and closed alike."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum

from importer.reasons import Reason
from importer.validation.context import Context, Render, together
from importer.validation.errors import ExchangeError, TemplateRefusedError
from importer.validation.expectations import CommonReason, no_chat, no_tools
from importer.validation.markup import without_thinking
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.prompts import (
    BEYOND_ASCII,
    CALLED,
    CALLED_EMPTY,
    LONG_TALK,
    ROUND,
    ROUND_OF_ONE,
    TAGGED,
    TALK,
    TALK_WITH_SYSTEM,
    TALK_WITH_TOOLS,
    TWO_CITIES,
    Message,
    Prompt,
)
from importer.validation.remedy import Remedy


class TurnsReason(StrEnum):
    """The reasons of ``turns-rendered``."""

    TOOLS_REFUSED = "tools-refused"
    BREAKS = "breaks"
    REFUSED = "refused"
    ALL_THERE = "all-there"
    MOVED = "moved"
    LOST = "lost"
    FOR_A_WEB_PAGE = "for-a-web-page"
    FOR_ASCII = "for-ascii"
    LEFT_OUT = "left-out"
    NOT_ENDED = "not-ended"
    SYSTEM_ONCE = "system-once"
    SYSTEM_TWICE = "system-twice"
    TAG_HARMLESS = "tag-harmless"
    TAG_CUTS = "tag-cuts"
    EMPTY_ALIKE = "empty-alike"
    EMPTY_DIFFERS = "empty-differs"
    BEGIN_ALIKE = "begin-alike"
    BEGIN_DIFFERS = "begin-differs"
    LETTERS_KEPT = "letters-kept"
    NO_CLOCK = "no-clock"
    CLOCK = "clock"


NAME = "turns-rendered"
LESSON = "Templates tried with one kind of conversation lost turns, calls and ends of turns in all others."
EVERYTHING = Reason(Remedy.RENDER_EVERYTHING)
LATER = 3661.0  # seconds: the hour, the minute and the second are others, the day is the same
ALIKE = Reason(Remedy.BEGIN_TURNS_ALIKE)
ENTITY = re.compile(r"\\u00[c-f][0-9a-f]|&(?:#[0-9]{1,5}|#x[0-9a-fA-F]{1,4}|quot|amp|lt|gt|apos);")
CALL = "assistant's call"
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Judge conversations as the template renders them; no request is sent."""
    if ctx.render is None or not ctx.render.digest:
        return NotApplicable(Reason(CommonReason.NOT_RENDERED))
    rounds = () if no_tools(ctx.promise) else (TALK_WITH_TOOLS, ROUND if _calls_two(ctx) else ROUND_OF_ONE)
    outcomes = {"tools": _letters_of_tools(ctx.render), "tags": judge_tagged(_rendered(ctx, TAGGED))}
    outcomes |= {p.name: _written(ctx.render, p) for p in (TALK, TALK_WITH_SYSTEM, LONG_TALK, *rounds)}
    outcomes["system"] = judge_system(_rendered(ctx, TALK_WITH_SYSTEM))
    if rounds:
        outcomes["arguments"] = judge_empty(_rendered(ctx, CALLED), _rendered(ctx, CALLED_EMPTY))
    return together(outcomes)


def _rendered(ctx: Context, prompt: Prompt) -> str:
    return ctx.rendered(prompt) or ""


def _letters_of_tools(render: Render) -> Outcome:
    """Judge letters beyond ASCII in tools and calls, with a tool parser or without."""
    try:
        return judge_letters(render(BEYOND_ASCII) or "", render.knows)
    except TemplateRefusedError:
        return NotApplicable(Reason(TurnsReason.TOOLS_REFUSED))


def _calls_two(ctx: Context) -> bool:
    """Return whether the model makes several calls at once: only then a prompt must hold them."""
    try:
        return len(ctx.first(TWO_CITIES).tool_calls) > 1
    except ExchangeError:
        return False


def _written(render: Render, prompt: Prompt) -> Outcome:
    """Judge a conversation with plain contents; where these are lost, with parts, as vision models need
    them.
    """
    plain = _read(render, prompt)
    if not isinstance(plain, Fail):
        return plain
    parts = _read(render, _in_parts(prompt))
    return parts if isinstance(parts, Pass) else plain


def _in_parts(prompt: Prompt) -> Prompt:
    turns = ({**m, "content": [{"type": "text", "text": m["content"]}]} for m in prompt.messages)
    return replace(prompt, name=f"{prompt.name}-in-parts", messages=tuple(turns))


def _read(render: Render, prompt: Prompt) -> Outcome:
    try:
        text = render(prompt) or ""
    except TemplateRefusedError as refused:
        return judge_refused(refused)
    whole = judge(text, prompt)
    if not isinstance(whole, Pass):
        return whole
    outcomes = {"letters": judge_letters(text, render.knows), "ends": whole}
    outcomes["later"] = judge_clock(text, _later(render, prompt))
    if prompt.name.startswith(TALK.name) and not prompt.tools and prompt.messages[0]["role"] == "user":
        opening = replace(prompt, name=f"{prompt.name}-opening", messages=prompt.messages[:1])
        outcomes["ends"] = judge_ends(text, _later(render, opening, 0) or "", render.stops)
    return together(outcomes)


def _later(render: Render, prompt: Prompt, seconds: float = LATER) -> str | None:
    try:
        return render.at(prompt, seconds)
    except TemplateRefusedError:
        return None


def judge_refused(refused: TemplateRefusedError) -> Outcome:
    """Judge the refusal of a conversation by the template."""
    if refused.broke:
        return Fail(
            Reason(TurnsReason.BREAKS, says=str(refused)), "configuration", Reason(Remedy.OTHER_TEMPLATE)
        )
    return NotApplicable(Reason(TurnsReason.REFUSED, says=str(refused)))


def spoken_parts(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """Yield role and text of each part of a conversation but the system's, that may be moved or left out."""
    for message in messages:
        words = message["content"] if isinstance(message["content"], str) else message["content"][0]["text"]
        for call in message.get("tool_calls") or ():
            yield CALL, re.findall(r"\w+", call["function"]["arguments"])[-1]
        if message["role"] == "tool":
            yield "tool", re.findall(r"\w+", words)[-1]
        elif message["role"] != "system" and words:
            yield message["role"], words


def judge(text: str, prompt: Prompt) -> Outcome:
    """Judge a conversation as the template renders it: all of it, in order.

    Calls or results that are all absent are left to other probes: not every model has tools.
    """
    parts = list(spoken_parts(prompt.messages))
    absent = {role for role in (CALL, "tool") if not any(w in text for r, w in parts if r == role)}
    position = 0
    for role, words in parts:
        if role in absent:
            continue
        place = text.find(words, position)
        if place < 0:
            lost = TurnsReason.MOVED if words in text else TurnsReason.LOST
            return Fail(Reason(lost, role=role, words=words), "configuration", EVERYTHING)
        position = place + len(words)
    return Pass(Reason(TurnsReason.ALL_THERE))


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


def judge_system(text: str) -> Outcome:
    """Judge a conversation with a system's turn; its absence is left to another probe."""
    words = TALK_WITH_SYSTEM.messages[0]["content"]
    if text.count(words) < 2:
        return Pass(Reason(TurnsReason.SYSTEM_ONCE))
    remedy = Reason(Remedy.SYSTEM_ONCE)
    return Fail(Reason(TurnsReason.SYSTEM_TWICE, times=text.count(words)), "configuration", remedy)


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


def names_in_json(text: str) -> set[str]:
    """Return each ``name`` in the JSON objects in ``text``, alone or inside another."""
    names, decoder = set(), json.JSONDecoder()
    for start in (place.start() for place in re.finditer(r"\{", text)):
        try:
            value, _ = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value.get("name"), str):
            names.add(value["name"])
    return names


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


def judge_letters(text: str, is_named: Callable[[str], bool]) -> Outcome:
    """Judge a rendered conversation without escapes; ``is_named`` returns whether the template names one."""
    match = ENTITY.search(text)
    if match is None or is_named(match.group()):
        return Pass(Reason(TurnsReason.LETTERS_KEPT))
    escaped = TurnsReason.FOR_A_WEB_PAGE if match.group().startswith("&") else TurnsReason.FOR_ASCII
    return Fail(Reason(escaped, written=match.group()), "configuration", Reason(Remedy.NO_ESCAPING))


def judge_clock(now: str, later: str | None) -> Outcome:
    """Judge the same conversation, and one rendered later on the same day."""
    if later is None or later == now:
        return Pass(Reason(TurnsReason.NO_CLOCK))
    return Fail(
        Reason(TurnsReason.CLOCK),
        "configuration",
        Reason(Remedy.NO_CLOCK),
    )
