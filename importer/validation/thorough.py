"""The figures of a thorough run: an ability is asked until its interval is narrow; a stopped run goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import islice

from importer import kept
from importer.frozen import frozen
from importer.hub.snapshot import mapping
from importer.progress import Progress, Step
from importer.validation.calls import judge_call, judge_unread
from importer.validation.context import SIDE_BY_SIDE, Context
from importer.validation.errors import attempt
from importer.validation.outcome import NotShown, Pass, ProbeRow, wilson
from importer.validation.probes.requests import judge_forced, needs_tool_choice
from importer.validation.prompts import TIME_TOOL, WEATHER_TOOL, Prompt, user, weather_answered
from importer.validation.reply import Reply

HALF = 0.05  # of an interval at most: five points
MOST = 400  # questions of an ability: a share of one half needs 385
PLACES = (
    "Lisbon", "Tokyo", "Cairo", "Lima", "Oslo", "Madrid", "Athens", "Sydney", "Berlin", "Rome", "Quito",
    "Dublin", "Nairobi", "Vienna", "Toronto", "Seoul", "Warsaw", "Havana", "Delhi", "Prague",
)  # fmt: skip
WEATHER = (
    "What is the weather in {}?", "Do I need an umbrella in {} at this moment?", "Is it snowing in {}?",
    "How warm is it in {} right now?", "Look up the weather in {} for me.", "Is it windy in {} today?",
    "Tell me how the sky looks in {} now.", "Should I wear a coat in {} today?", "Is it raining in {}?",
    "Which temperature does {} have at present?",
)  # fmt: skip
TIMES = (
    "What time is it in {}?", "Tell me the current time in {}, please.", "Is it late already in {}?",
    "I call a friend in {}: which time do they have there?", "Look up the time in {}.",
    "Is it morning in {} now?", "How late is it in {}?", "Which hour is it in {} right now?",
    "Can I call an office in {} at this hour?", "What does the clock show in {}?",
)  # fmt: skip
PLAIN = (
    "Write one sentence about a {}.", "Translate the word {} into French.", "Spell the word {} backwards.",
    "What is the first letter of {}?", "Write a rhyme with the word {}.", "Which colour may a {} have?",
    "Thank you for your help with the {}, that is all.", "Is {} a noun or a verb?",
    "Which letters does the word {} have?", "Use the word {} in a question.",
)  # fmt: skip
THINGS = (
    "tree", "river", "bread", "music", "winter", "garden", "letter", "candle", "bridge", "mirror", "paper",
    "silver", "teacher", "kitchen", "island", "button", "ladder", "orange", "pencil", "blanket", "harbour",
    "violin", "carpet", "engine", "feather", "hammer", "jacket", "lantern", "meadow", "needle", "oven",
    "pillow", "quilt", "ribbon", "saddle", "thread", "umbrella", "valley", "window", "yarn",
)  # fmt: skip
SKIES = ("snowy", "sunny", "rainy", "foggy", "windy", "cloudy", "stormy", "misty", "humid", "frosty")
Judge = Callable[[Reply, Prompt], bool]
Figures = Mapping[str, tuple[int, int]]  # answers that show an ability, and all of them


@frozen
class Ability:
    """Questions for one ability; ``shows`` returns whether an answer shows it."""

    name: str
    prompts: Sequence[Prompt]
    shows: Judge


def figures(
    ctx: Context, rows: Sequence[ProbeRow], of: Mapping[str, object], progress: Progress, spared: float = 0.0
) -> Figures:
    """Return the figures of the abilities that probes have judged, each asked until its interval is narrow.

    ``of``      what is asked: a run of the same goes on where one was stopped, or its time was over.
    ``spared``  seconds of the run that are for something else.
    """
    if not ctx.thorough:
        return {}
    judged = {row.ability for row in rows if row.outcome.trials and isinstance(row.outcome, Pass | NotShown)}
    digest = hashlib.sha256(json.dumps(of, sort_keys=True, default=str).encode()).hexdigest()
    place = kept.place("thorough", f"{digest}.json")
    found = {k: (v[0], v[1]) for k, v in mapping(kept.read(place)).items()}
    for ability in (one for one in _abilities(ctx) if one.name in judged):
        for did, asked in _asked(ctx, ability, *found.get(ability.name, (0, 0)), progress):
            found[ability.name] = did, asked
            kept.write(place, found)
            if ctx.client.seconds_left <= spared:
                return found
    if ctx.client.over is None:
        place.unlink(missing_ok=True)
    return found


def _asked(
    ctx: Context, ability: Ability, did: int, asked: int, progress: Progress
) -> Iterator[tuple[int, int]]:
    """Yield both figures of an ability after each few answers, until its interval is narrow or none comes."""
    questions = iter(ability.prompts[asked:])
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        while not narrow(did, asked) and (batch := [*islice(questions, SIDE_BY_SIDE)]):
            told = f"{ability.name}: {did} of {asked}, until 5 points on each side"
            progress(Step(told, asked, len(ability.prompts)))
            tried = pool.map(partial(_shows, ctx, ability), batch)
            answers = [shown for shown in tried if shown is not None]
            if ctx.client.over is not None or not answers:
                return
            did, asked = did + sum(answers), asked + len(answers)
            yield did, asked


def _shows(ctx: Context, ability: Ability, prompt: Prompt) -> bool | None:
    """Return whether an answer shows the ability; ``None`` without one: that is no answer of the model."""
    reply = attempt(partial(ctx.apart().ask, prompt))
    return None if reply is None else ability.shows(reply, prompt)


def narrow(did: int, asked: int) -> bool:
    """Return whether the interval of a share has five points on each side at most."""
    interval = wilson(did, asked)
    return interval is not None and interval[1] - interval[0] <= 2 * HALF


def _abilities(ctx: Context) -> Iterator[Ability]:
    yield Ability("tools", _of_tools(), lambda reply, prompt: isinstance(judge_call(reply, prompt), Pass))
    yield Ability("restraint", _of_none(), _declines)
    yield Ability("results", _of_results(), lambda reply, prompt: prompt.answered_by(reply.content))
    if needs_tool_choice(ctx.promise) is None:
        required = _of_tools(tool_choice="required")
        yield Ability(
            "required", required, lambda reply, prompt: isinstance(judge_forced(reply, prompt, None), Pass)
        )


def _declines(reply: Reply, prompt: Prompt) -> bool:
    """Return whether an answer is no call: read as one, or left as text."""
    return not reply.tool_calls and judge_unread(reply, prompt) is None


def _mixed(forms: Sequence[str], words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each form with each word, and the word; any few in a row have several of both."""
    for turn in range(len(words)):
        for place, form in enumerate(forms):
            word = words[(place + turn) % len(words)]
            yield form.format(word), word


def _of_tools(**extra: object) -> tuple[Prompt, ...]:
    """Return questions that need one of two tools."""
    forms, tools = (*WEATHER, *TIMES), (WEATHER_TOOL, TIME_TOOL)
    return tuple(
        Prompt(f"due-{n}", (user(text),), tools, (place.casefold(),), extra=extra)
        for n, (text, place) in enumerate(_mixed(forms, PLACES))
    )


def _of_none() -> tuple[Prompt, ...]:
    """Return questions that need no tool, with one on offer."""
    return tuple(
        Prompt(f"not-due-{n}", (user(text),), (WEATHER_TOOL,))
        for n, (text, _) in enumerate(_mixed(PLAIN, THINGS))
    )


def _of_results() -> tuple[Prompt, ...]:
    """Return conversations with a result that no model guesses."""
    told = [(sky, -degrees) for degrees in range(1, MOST // len(SKIES) + 1) for sky in SKIES]
    prompts = (
        weather_answered(f"told-{n}", {"temperature": degrees, "condition": sky})
        for n, (sky, degrees) in enumerate(told)
    )
    return tuple(
        replace(prompt, expects=(sky, str(degrees)))
        for prompt, (sky, degrees) in zip(prompts, told, strict=True)
    )
