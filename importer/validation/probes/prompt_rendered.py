"""The engine's prompt is the one that the model's own template writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from importer.validation.blame import IMPORT_AGAIN, NOT_PROVED, ONE_TEMPLATE, WITHHELD
from importer.validation.context import Context
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.promise import no_chat, no_tools
from importer.validation.prompts import GREETED, GREETING, ROUNDS, WEATHER, WEATHER_TWO_TOOLS
from importer.validation.ways import together

NAME = "prompt-rendered"
LESSON = "A template file that was not read, a token written twice, a switch by another name: nobody looked."
SLACK = 8  # tokens: a template may write the date, and ours is another day's
SHARE = 0.05
FORM = 6  # tokens: white space may differ
# What an engine itself gives a template, for each request anew.
TAKEN = ("messages", "tools", "add_generation_prompt", "continue_final_message", "bos_token", "eos_token")
SAID = str(GREETED.messages[-1]["content"])
HEEDS = "Use a chat template that heeds add_generation_prompt."
NO = ("false", "no", "off")
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Read the rendered prompt, then count it beside the engine's own."""
    text = ctx.rendered(GREETING)
    if ctx.render is None or text is None:
        return NotApplicable("nobody can tell what the template writes")
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
    """A greeting as it is, and with the document's variables in the request: they were there already."""
    told = replace(GREETING, name="greeting-told", switches=ctx.promise.variables, extra={"max_tokens": 1})
    return judge_start(ctx.first(GREETING).usage.prompt, ctx.first(told).usage.prompt)


def judge_beginning(text: str, bos: str) -> Outcome:
    """A rendered prompt; ``bos`` is the token that begins a text, where there is one."""
    if bos and text.startswith(bos * 2):
        mend = f"Take one {bos} out of the chat template."
        return Fail(f"the template writes {bos} twice", "configuration", mend)
    return Pass("begins once")


def judge_taken(taken: list[str]) -> Outcome:
    """The document's template variables that are not its to set."""
    if not taken:
        return Pass("no variable is the engine's own")
    mend = f"Take {taken[0]} out of chat_template_kwargs."
    return Fail(f"{taken[0]} is the engine's to say to the template", "configuration", mend)


def judge_turn(asked: str, unasked: str, answered: str) -> Outcome:
    """A prompt, the same where no answer is asked for, and as far as an answer's first word in history."""
    header = answered.removeprefix(asked)
    if asked != unasked or not answered.startswith(asked) or not re.search(r"\w", header):
        return Pass("the assistant's turn is begun")
    shown = header.strip()[:40]
    reason = f"the template begins no turn of the assistant, though {shown!r} stands before its words"
    return Fail(reason, "configuration", HEEDS)


def judge_template(digest: str, proved: str) -> Outcome:
    """The template that is served, and the one of which the document speaks."""
    if not proved or digest == proved:
        return Pass("the template is the one that was proved")
    return Fail(NOT_PROVED, "configuration", IMPORT_AGAIN)


def judge_variables(unknown: list[str]) -> Outcome:
    """The document's template variables that the template does not speak of."""
    if not unknown:
        return Pass("every variable is known")
    mend = f"Take {unknown[0]} out of chat_template_kwargs, or name it as the template does."
    return Fail(f"the template does not know {unknown[0]}: it changes nothing", "configuration", mend)


def judge_start(plain: int | None, told: int | None) -> Outcome:
    """Prompt tokens of a request, and of one that names the document's template variables."""
    if plain == told:
        return Pass("the engine was started with the document's template variables")
    reason = f"the prompt has {plain} tokens, and {told} where a request names the document's variables"
    mend = "Start the engine with the document's chat_template_kwargs."
    return Fail(reason, "configuration", mend, trials=2)


def judge_history(short: tuple[int, int] | None, longer: tuple[int, int] | None) -> Outcome:
    """Tokens of a chat and of what the template renders, without calls and results and with some."""
    if short is None or longer is None:
        return NotApplicable("the engine does not count the prompt's tokens")
    more, rendered = longer[0] - short[0], longer[1] - short[1]
    if abs(more - rendered) <= FORM:
        return Pass("calls and results are rendered as the template does")
    reason = f"calls and results take {more} tokens, and {rendered} as the template renders them"
    mend = "Use another version of the engine: it tells the template of earlier turns in another form."
    return Fail(reason, "engine", mend, trials=2)


def judge_switches(switches: Mapping[str, str], write: Callable[[str, object], str | None]) -> Outcome:
    """The document's variables that are texts, by name; ``write`` renders with another value of one."""
    for name, value in switches.items():
        if value.strip().casefold() in NO and write(name, value) == write(name, True) != write(name, False):
            mend = f"Write {name} in chat_template_kwargs without quotes."
            return Fail(f"the template takes {name}, the text {value!r}, for yes", "configuration", mend)
    return Pass("no switch is taken for its contrary")


def judge_counts(chat: int, rendered: int, others: tuple[str, ...] = ()) -> Outcome:
    """Prompt tokens of a chat, and of what the template renders for it; ``others`` hold another template."""
    if abs(chat - rendered) <= SLACK + SHARE * rendered:
        return Pass(f"{chat} tokens")
    reason = f"the prompt has {chat} tokens, and what the template renders {rendered}"
    if others:
        where = " and ".join(others)
        return Fail(
            f"{reason}: the engine reads another template",
            "configuration",
            ONE_TEMPLATE.format(where),
            trials=2,
        )
    return Fail(reason, "engine", WITHHELD, trials=2)
