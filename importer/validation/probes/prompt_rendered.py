"""The engine's prompt is the one that the model's own template writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum

from importer.reasons import Reason
from importer.validation.context import Context, together
from importer.validation.expectations import CommonReason, no_chat, no_tools
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.prompts import GREETED, GREETING, ROUNDS, WEATHER, WEATHER_TWO_TOOLS
from importer.validation.remedy import Remedy


class PromptReason(StrEnum):
    """What ``prompt-rendered`` finds."""

    BEGINS_TWICE = "begins-twice"
    BEGINS_ONCE = "begins-once"
    NOTHING_TAKEN = "nothing-taken"
    TAKEN = "taken"
    TURN_BEGUN = "turn-begun"
    NO_TURN = "no-turn"
    PROVED = "proved"
    ALL_KNOWN = "all-known"
    UNKNOWN = "unknown"
    STARTED = "started"
    NOT_STARTED = "not-started"
    HISTORY_ALIKE = "history-alike"
    HISTORY_DIFFERS = "history-differs"
    TAKEN_FOR_YES = "taken-for-yes"
    SWITCHES_HEEDED = "switches-heeded"
    COUNTED = "counted"
    DIFFERS = "differs"
    ANOTHER_READ = "another-read"


NAME = "prompt-rendered"
LESSON = "A template file that was not read, a token written twice, a switch by another name: nobody looked."
SLACK = 8  # tokens: a template may write the date, and ours is another day's
SHARE = 0.05
FORM = 6  # tokens: white space may differ
# What an engine itself gives a template, for each request anew.
TAKEN = ("messages", "tools", "add_generation_prompt", "continue_final_message", "bos_token", "eos_token")
SAID = str(GREETED.messages[-1]["content"])
HEEDS = Reason(Remedy.HEED_GENERATION_PROMPT)
NO = ("false", "no", "off")
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Read the rendered prompt, then count it beside the engine's own."""
    text = ctx.rendered(GREETING)
    if ctx.render is None or text is None:
        return NotApplicable(Reason(CommonReason.NOT_RENDERED))
    taken = [name for name in ctx.promise.variables if name in TAKEN]
    unknown = [name for name in ctx.promise.variables if not ctx.render.knows(name)]
    found = {
        "beginning": judge_beginning(text, ctx.render.bos),
        "taken": judge_taken(taken),
        "variables": judge_variables(unknown),
    }
    greeted, unasked = ctx.rendered(GREETED), ctx.rendered(replace(GREETING, begins=False))
    if greeted is not None and unasked is not None:
        found["turn"] = judge_turn(text, unasked, greeted.partition(SAID)[0])
    if ctx.proof is not None:
        found["template"] = judge_template(ctx.render.digest, ctx.proof.template)
    found["switches"] = judge_switches(
        {k: v for k, v in ctx.promise.variables.items() if isinstance(v, str)},
        lambda name, value: ctx.rendered(replace(GREETING, switches={name: value})),
    )
    for prompt in (GREETING,) if no_tools(ctx.promise) else (GREETING, WEATHER):
        counts = ctx.counted(prompt)
        if counts is not None:
            found[prompt.name] = judge_counts(*counts, ctx.render.others)
    if not no_tools(ctx.promise):
        found["history"] = judge_history(*(ctx.counted(prompt) for prompt in (WEATHER_TWO_TOOLS, ROUNDS[-1])))
    if ctx.promise.variables and not ctx.promise.lacks("switches"):
        found["start"] = _at_start(ctx)
    return together(found)


def _at_start(ctx: Context) -> Outcome:
    """Return a greeting as it is, and with the document's variables in the request: they were there
    already.
    """
    told = replace(GREETING, name="greeting-told", switches=ctx.promise.variables, extra={"max_tokens": 1})
    return judge_start(ctx.first(GREETING).usage.prompt, ctx.first(told).usage.prompt)


def judge_beginning(text: str, bos: str) -> Outcome:
    """Return a rendered prompt; ``bos`` is the token that begins a text, where there is one."""
    if bos and text.startswith(bos * 2):
        remedy = Reason(Remedy.TAKE_OUT_BEGINNING, bos=bos)
        return Fail(Reason(PromptReason.BEGINS_TWICE, bos=bos), "configuration", remedy)
    return Pass(Reason(PromptReason.BEGINS_ONCE))


def judge_taken(taken: list[str]) -> Outcome:
    """Return the document's template variables that are not its to set."""
    if not taken:
        return Pass(Reason(PromptReason.NOTHING_TAKEN))
    remedy = Reason(Remedy.TAKE_OUT_VARIABLE, variable=taken[0])
    return Fail(Reason(PromptReason.TAKEN, variable=taken[0]), "configuration", remedy)


def judge_turn(asked: str, unasked: str, answered: str) -> Outcome:
    """Return a prompt, the same where no answer is asked for, and as far as an answer's first word in
    history.
    """
    header = answered.removeprefix(asked)
    if asked != unasked or not answered.startswith(asked) or not re.search(r"\w", header):
        return Pass(Reason(PromptReason.TURN_BEGUN))
    shown = header.strip()[:40]
    reason = Reason(PromptReason.NO_TURN, shown=shown)
    return Fail(reason, "configuration", HEEDS)


def judge_template(digest: str, proved: str) -> Outcome:
    """Return the template that is served, and the one of which the document speaks."""
    if not proved or digest == proved:
        return Pass(Reason(PromptReason.PROVED))
    return Fail(Reason(CommonReason.NOT_PROVED), "configuration", Reason(Remedy.IMPORT_AGAIN))


def judge_variables(unknown: list[str]) -> Outcome:
    """Return the document's template variables that the template does not speak of."""
    if not unknown:
        return Pass(Reason(PromptReason.ALL_KNOWN))
    remedy = Reason(Remedy.RENAME_VARIABLE, variable=unknown[0])
    return Fail(Reason(PromptReason.UNKNOWN, variable=unknown[0]), "configuration", remedy)


def judge_start(plain: int | None, told: int | None) -> Outcome:
    """Prompt tokens of a request, and of one that names the document's template variables."""
    if plain == told:
        return Pass(Reason(PromptReason.STARTED))
    reason = Reason(PromptReason.NOT_STARTED, plain=plain, told=told)
    remedy = Reason(Remedy.START_WITH_VARIABLES)
    return Fail(reason, "configuration", remedy, trials=2)


def judge_history(short: tuple[int, int] | None, longer: tuple[int, int] | None) -> Outcome:
    """Return tokens of a chat and of what the template renders, without calls and results and with some."""
    if short is None or longer is None:
        return NotApplicable(Reason(CommonReason.NOT_COUNTED))
    more, rendered = longer[0] - short[0], longer[1] - short[1]
    if abs(more - rendered) <= FORM:
        return Pass(Reason(PromptReason.HISTORY_ALIKE))
    reason = Reason(PromptReason.HISTORY_DIFFERS, more=more, rendered=rendered)
    remedy = Reason(Remedy.OTHER_VERSION_HISTORY)
    return Fail(reason, "engine", remedy, trials=2)


def judge_switches(switches: Mapping[str, str], write: Callable[[str, object], str | None]) -> Outcome:
    """Return the document's variables that are texts, by name; ``write`` renders with another value of
    one.
    """
    for name, value in switches.items():
        if value.strip().casefold() in NO and write(name, value) == write(name, True) != write(name, False):
            remedy = Reason(Remedy.WITHOUT_QUOTES, variable=name)
            return Fail(
                Reason(PromptReason.TAKEN_FOR_YES, variable=name, value=value), "configuration", remedy
            )
    return Pass(Reason(PromptReason.SWITCHES_HEEDED))


def judge_counts(chat: int, rendered: int, others: tuple[str, ...] = ()) -> Outcome:
    """Prompt tokens of a chat, and of what the template renders for it; ``others`` hold another template."""
    if abs(chat - rendered) <= SLACK + SHARE * rendered:
        return Pass(Reason(PromptReason.COUNTED, tokens=chat))
    reason = Reason(PromptReason.DIFFERS, chat=chat, rendered=rendered)
    if others:
        one = Reason(Remedy.ONE_TEMPLATE, files=others)
        note = Reason(PromptReason.ANOTHER_READ)
        return Fail(reason, "configuration", one, trials=2, notes=(note,))
    return Fail(reason, "engine", Reason(Remedy.OTHER_VERSION_TEMPLATE), trials=2)
