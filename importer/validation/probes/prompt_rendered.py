"""The probe of the prompt: the engine's is that of the model's own template."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from importer.reasons import Reason, ReasonKind
from importer.validation import proof_check
from importer.validation.context import Context, together
from importer.validation.expectations import CommonReason, no_chat, no_tools
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.prompts import (
    GREETED,
    GREETING,
    ROUNDS,
    WEATHER,
    WEATHER_ANSWERED,
    WEATHER_TWO_TOOLS,
)
from importer.validation.remedy import Remedy


class PromptReason(ReasonKind):
    """The reasons of ``prompt-rendered``."""

    BEGINS_TWICE = "begins-twice", "the template writes {bos} twice"
    BEGINS_ONCE = "begins-once", "begins once"
    NOTHING_TAKEN = "nothing-taken", "no variable is the engine's own"
    TAKEN = "taken", "{variable} is the engine's to say to the template"
    TURN_BEGUN = "turn-begun", "the assistant's turn is begun"
    NO_TURN = (
        "no-turn",
        "the template begins no turn of the assistant, though {shown!r} stands before its words",
    )
    PROVED = "proved", "the template is the one that was proved"
    ALL_KNOWN = "all-known", "every variable is known"
    UNKNOWN = "unknown", "the template does not know {variable}: it changes nothing"
    STARTED = "started", "the engine was started with the document's template variables"
    NOT_STARTED = (
        "not-started",
        "the prompt has {plain} tokens, and {told} where a request names the document's variables",
    )
    HISTORY_ALIKE = "history-alike", "calls and results are rendered as the template does"
    HISTORY_DIFFERS = (
        "history-differs",
        "calls and results take {more} tokens, and {rendered} as the template renders them",
    )
    TAKEN_FOR_YES = "taken-for-yes", "the template takes {variable}, the text {value!r}, for yes"
    SWITCHES_HEEDED = "switches-heeded", "no switch is taken for its contrary"
    COUNTED = "counted", "{tokens} tokens"
    DIFFERS = "differs", "the prompt has {chat} tokens, and what the template renders {rendered}"
    ANOTHER_READ = "another-read", "the engine reads another template"
    TEXT_SHOWN = "text-shown", "a question's words are in the prompt"
    TEXT_LOST = (
        "text-lost",
        "{words!r} does not reach the prompt: the template writes no content that is a plain text",
    )


NAME = "prompt-rendered"
LESSON = "A template file that was not read, a token written twice, a switch by another name: nobody looked."
SLACK = 8  # tokens: a template may write the date, and importer renders a fixed one
SHARE = 0.05
FORM = 6  # tokens: white space may differ
# Variables that an engine sets for each request.
TAKEN = ("messages", "tools", "add_generation_prompt", "continue_final_message", "bos_token", "eos_token")
ANSWER = str(GREETED.messages[-1]["content"])
RESULT_TOLD = replace(WEATHER_ANSWERED, messages=(*WEATHER_ANSWERED.messages, GREETED.messages[-1]))
HEED_TURN = Reason(Remedy.HEED_GENERATION_PROMPT)
NO = ("false", "no", "off")
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Judge the rendered prompt, then compare its length with the engine's count."""
    text = ctx.rendered(GREETING)
    if ctx.render is None or text is None:
        return NotApplicable(Reason(CommonReason.NOT_RENDERED))
    taken = [name for name in ctx.promise.variables if name in TAKEN]
    unknown = [name for name in ctx.promise.variables if not ctx.render.knows(name)]
    outcomes = {
        "beginning": judge_beginning(text, ctx.render.bos),
        "taken": judge_taken(taken),
        "variables": judge_variables(unknown),
    }
    greeted, unasked = ctx.rendered(GREETED), ctx.rendered(replace(GREETING, begins=False))
    if greeted is not None and unasked is not None:
        outcomes["turn"] = judge_turn(text, unasked, greeted.partition(ANSWER)[0])
        if not no_tools(ctx.promise):
            outcomes["turn behind results"] = _behind_results(ctx, text.removeprefix(unasked).strip())
    if ctx.proof is not None:
        outcomes["template"] = judge_template(same=proof_check.same_template(ctx, ctx.proof))
    outcomes["switches"] = judge_switches(
        {k: v for k, v in ctx.promise.variables.items() if isinstance(v, str)},
        lambda name, value: ctx.rendered(replace(GREETING, switches={name: value})),
    )
    for prompt in (GREETING,) if no_tools(ctx.promise) else (GREETING, WEATHER):
        counts = ctx.counted(prompt)
        if counts is not None:
            outcomes[prompt.name] = judge_counts(*counts, ctx.render.others)
        if prompt is GREETING and counts is not None:
            outcomes["text"] = judge_text(text, *counts)
    if not no_tools(ctx.promise):
        outcomes["history"] = judge_history(
            *(ctx.counted(prompt) for prompt in (WEATHER_TWO_TOOLS, ROUNDS[-1]))
        )
    if ctx.promise.variables and not ctx.promise.lacks("switches"):
        outcomes["start"] = _at_start(ctx)
    return together(outcomes)


def _behind_results(ctx: Context, begun: str) -> Outcome:
    """Judge the beginning of a turn behind a tool's result; some formats go on in the turn of the call.

    ``begun``  what begins a turn behind a user's.
    """
    answered = replace(RESULT_TOLD, name="result-answered", begins=False)
    asked = replace(RESULT_TOLD, name="result-told", messages=RESULT_TOLD.messages[:-1])
    told, prompt, unasked = map(ctx.rendered, (answered, asked, replace(asked, begins=False)))
    if told is None or prompt is None or unasked is None:
        return NotApplicable(Reason(CommonReason.NOT_RENDERED))
    history = told.partition(ANSWER)[0]
    header = history.removeprefix(prompt).strip()
    alike = bool(begun and header) and (header.startswith(begun) or begun.startswith(header))
    return judge_turn(prompt, unasked, history) if alike else Pass(Reason(PromptReason.TURN_BEGUN))


def _at_start(ctx: Context) -> Outcome:
    """Compare a greeting with the same one with the variables of the document in the request."""
    switched = replace(
        GREETING, name="greeting-told", switches=ctx.promise.variables, extra={"max_tokens": 1}
    )
    return judge_start(ctx.first(GREETING).usage.prompt, ctx.first(switched).usage.prompt)


def judge_beginning(text: str, bos: str) -> Outcome:
    """Judge a rendered prompt; ``bos`` is the token that begins a text, or empty."""
    if bos and text.startswith(bos * 2):
        remedy = Reason(Remedy.TAKE_OUT_BEGINNING, bos=bos)
        return Fail(Reason(PromptReason.BEGINS_TWICE, bos=bos), "configuration", remedy)
    return Pass(Reason(PromptReason.BEGINS_ONCE))


def judge_taken(taken: list[str]) -> Outcome:
    """Judge template variables of the document that the engine itself sets."""
    if not taken:
        return Pass(Reason(PromptReason.NOTHING_TAKEN))
    remedy = Reason(Remedy.TAKE_OUT_VARIABLE, variable=taken[0], variables=tuple(taken))
    return Fail(Reason(PromptReason.TAKEN, variable=taken[0]), "configuration", remedy)


def judge_turn(prompt: str, without_turn: str, history: str) -> Outcome:
    """Judge the beginning of a turn: the prompt, the prompt without it, and the history up to an answer."""
    header = history.removeprefix(prompt)
    if prompt != without_turn or not history.startswith(prompt) or not re.search(r"\w", header):
        return Pass(Reason(PromptReason.TURN_BEGUN))
    shown = header.strip()[:40]
    reason = Reason(PromptReason.NO_TURN, shown=shown)
    return Fail(reason, "configuration", HEED_TURN)


def judge_template(*, same: bool) -> Outcome:
    """Judge the served template: ``same`` if it is the one of the proof, or renders as it does."""
    if same:
        return Pass(Reason(PromptReason.PROVED))
    return Fail(Reason(CommonReason.NOT_PROVED), "configuration", Reason(Remedy.IMPORT_AGAIN))


def judge_variables(unknown: list[str]) -> Outcome:
    """Judge template variables of the document that the template does not name."""
    if not unknown:
        return Pass(Reason(PromptReason.ALL_KNOWN))
    remedy = Reason(Remedy.RENAME_VARIABLE, variable=unknown[0])
    return Fail(Reason(PromptReason.UNKNOWN, variable=unknown[0]), "configuration", remedy)


def judge_start(plain: int | None, switched: int | None) -> Outcome:
    """Judge prompt tokens of a request, and of one with the template variables of the document."""
    if plain == switched:
        return Pass(Reason(PromptReason.STARTED))
    reason = Reason(PromptReason.NOT_STARTED, plain=plain, told=switched)
    remedy = Reason(Remedy.START_WITH_VARIABLES)
    return Fail(reason, "configuration", remedy, trials=2)


def judge_text(text: str, chat: int, rendered: int) -> Outcome:
    """Judge a question in the rendered text; an engine that makes parts of a text has more tokens."""
    words = str(GREETING.messages[0]["content"])
    if words.casefold() in text.casefold() or chat != rendered:
        return Pass(Reason(PromptReason.TEXT_SHOWN))
    return Fail(Reason(PromptReason.TEXT_LOST, words=words), "configuration", Reason(Remedy.RENDER_TEXT))


def judge_history(short: tuple[int, int] | None, longer: tuple[int, int] | None) -> Outcome:
    """Judge tokens of the chat and of the rendered text, without calls and results and with some."""
    if short is None or longer is None:
        return NotApplicable(Reason(CommonReason.NOT_COUNTED))
    more, rendered = longer[0] - short[0], longer[1] - short[1]
    if abs(more - rendered) <= FORM:
        return Pass(Reason(PromptReason.HISTORY_ALIKE))
    reason = Reason(PromptReason.HISTORY_DIFFERS, more=more, rendered=rendered)
    remedy = Reason(Remedy.OTHER_VERSION_HISTORY)
    return Fail(reason, "engine", remedy, trials=2)


def judge_switches(switches: Mapping[str, str], write: Callable[[str, object], str | None]) -> Outcome:
    """Judge the variables of the document that are texts; ``write`` renders with another value of one."""
    for name, value in switches.items():
        if value.strip().casefold() in NO and write(name, value) == write(name, True) != write(name, False):
            remedy = Reason(Remedy.WITHOUT_QUOTES, variable=name)
            return Fail(
                Reason(PromptReason.TAKEN_FOR_YES, variable=name, value=value), "configuration", remedy
            )
    return Pass(Reason(PromptReason.SWITCHES_HEEDED))


def judge_counts(chat: int, rendered: int, others: tuple[str, ...] = ()) -> Outcome:
    """Judge prompt tokens of a chat and of the rendered text; ``others`` hold another template."""
    if abs(chat - rendered) <= SLACK + SHARE * rendered:
        return Pass(Reason(PromptReason.COUNTED, tokens=chat))
    reason = Reason(PromptReason.DIFFERS, chat=chat, rendered=rendered)
    if others:
        one = Reason(Remedy.ONE_TEMPLATE, files=others)
        note = Reason(PromptReason.ANOTHER_READ)
        return Fail(reason, "configuration", one, trials=2, notes=(note,))
    return Fail(reason, "engine", Reason(Remedy.OTHER_VERSION_TEMPLATE), trials=2)
