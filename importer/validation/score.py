"""The figures of a score and their measurement: shares with Wilson's intervals, within a limit of time.

The questions of the score, each with the calls that answer it; written for this purpose.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain, count, zip_longest
from typing import Any

from importer.chat_template.samples import Tool
from importer.frozen import frozen
from importer.progress import Progress, Step
from importer.validation.context import Context
from importer.validation.errors import ExchangeError
from importer.validation.expectations import no_tools
from importer.validation.outcome import wilson
from importer.validation.prompts import TIME_TOOL, WEATHER_TOOL, Prompt, function, user
from importer.validation.reply import Reply, ToolCall

Call = tuple[str, Mapping[str, object]]  # a tool's name and the arguments that it must get; others are free


@frozen
class Question:
    """A question to a model with ``tools``; without ``calls`` none of them should be called."""

    name: str
    kind: str
    text: str
    tools: tuple[Tool, ...]
    calls: tuple[Call, ...]

    @property
    def prompt(self) -> Prompt:
        """Return the conversation."""
        return Prompt(f"score-{self.name}", (user(self.text),), self.tools)


_TEXT, _WHOLE, _NUMBER, _YES = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))
_CURRENCY = {"type": "string", "enum": ["EUR", "USD", "JPY", "GBP"]}
TIMER_TOOL = function("set_timer", "Set a timer.", {"minutes": _WHOLE})
MONEY_TOOL = function(
    "convert_currency",
    "Convert an amount of money.",
    {"amount": _NUMBER, "source": _CURRENCY, "target": _CURRENCY},
)
MESSAGE_TOOL = function("send_message", "Send a message to a contact.", {"recipient": _TEXT, "text": _TEXT})
BOOK_TOOL = function("find_book", "Look up a book in the library's catalogue.", {"title": _TEXT})
LIGHT_TOOL = function(
    "set_light",
    "Switch the light of a room on or off.",
    {"room": _TEXT, "on": _YES, "percent": _WHOLE},
    "room",
    "on",
)
LIST_TOOL = function(
    "add_to_list", "Add items to the shopping list.", {"items": {"type": "array", "items": _TEXT}}
)
TABLE_TOOL = function(
    "book_table",
    "Book a table in a restaurant.",
    {
        "restaurant": _TEXT,
        "guests": _WHOLE,
        "contact": {
            "type": "object",
            "properties": {"name": _TEXT, "phone": _TEXT},
            "required": ["name"],
        },
    },
)
ALL = (
    WEATHER_TOOL, TIME_TOOL, TIMER_TOOL, MONEY_TOOL, MESSAGE_TOOL, BOOK_TOOL, LIGHT_TOOL, LIST_TOOL,
    TABLE_TOOL,
)  # fmt: skip


def _weather(*cities: str) -> tuple[Call, ...]:
    return tuple(("get_weather", {"location": city}) for city in cities)


def _time(*cities: str) -> tuple[Call, ...]:
    return tuple(("get_time", {"location": city}) for city in cities)


def _money(amount: float, source: str, target: str) -> tuple[Call, ...]:
    return (("convert_currency", {"amount": amount, "source": source, "target": target}),)


# By kind: text, tools, calls.
_ROWS: Mapping[str, tuple[tuple[str, tuple[Tool, ...], tuple[Call, ...]], ...]] = {
    "one-tool": (
        ("What is the weather in Oslo right now?", (WEATHER_TOOL,), _weather("Oslo")),
        ("Do I need an umbrella in Lisbon at this moment?", (WEATHER_TOOL,), _weather("Lisbon")),
        ("What time is it in Tokyo?", (TIME_TOOL,), _time("Tokyo")),
        ("Tell me the current time in Lima, please.", (TIME_TOOL,), _time("Lima")),
        ("Set a timer for 12 minutes.", (TIMER_TOOL,), (("set_timer", {"minutes": 12}),)),
        ("Is the book Moby-Dick in the library?", (BOOK_TOOL,), (("find_book", {"title": "Moby-Dick"}),)),
        ("Send Ada this message: Dinner is ready", (MESSAGE_TOOL,),
         (("send_message", {"recipient": "Ada", "text": "Dinner is ready"}),)),
        ("How many US dollars are 250 euros today?", (MONEY_TOOL,), _money(250, "EUR", "USD")),
    ),
    "no-tool": (
        ("Hello! How are you?", (WEATHER_TOOL,), ()),
        ("What is two plus three?", (WEATHER_TOOL,), ()),
        ("Write one sentence about a cat.", (TIMER_TOOL,), ()),
        ("Thank you, that is all for today.", (MESSAGE_TOOL,), ()),
        ("Translate the word tree into French.", (BOOK_TOOL,), ()),
        ("Which of these is a colour: chair, green, run?", (LIGHT_TOOL,), ()),
        ("What is a timer?", (TIMER_TOOL,), ()),
        ("Why is the sky blue?", (WEATHER_TOOL, TIME_TOOL), ()),
        ("Name the days of the week.", ALL, ()),
        ("Who wrote the play Hamlet?", (WEATHER_TOOL, TIMER_TOOL, MONEY_TOOL), ()),
    ),
    "distractors": (
        ("What is the weather in Cairo?", ALL, _weather("Cairo")),
        ("What time is it in Madrid?", ALL, _time("Madrid")),
        ("Wake me in 45 minutes with a timer.", ALL, (("set_timer", {"minutes": 45}),)),
        ("Look up the book Emma in the catalogue.", ALL, (("find_book", {"title": "Emma"}),)),
        ("Change 80 pounds into euros.", ALL, _money(80, "GBP", "EUR")),
        ("Put milk on the shopping list.", ALL, (("add_to_list", {"items": ["milk"]}),)),
        ("Turn off the light in the kitchen.", ALL, (("set_light", {"room": "kitchen", "on": False}),)),
        ("Write to Ben: See you at noon", ALL,
         (("send_message", {"recipient": "Ben", "text": "See you at noon"}),)),
    ),
    "parallel": (
        ("What is the weather in Rome and in Athens?", (WEATHER_TOOL,), _weather("Rome", "Athens")),
        ("What time is it in Delhi, and what time in Seoul?", (TIME_TOOL,), _time("Delhi", "Seoul")),
        ("Tell me the weather in Bern and the time in Bern.", (WEATHER_TOOL, TIME_TOOL),
         (*_weather("Bern"), *_time("Bern"))),
        ("Set two timers: one of 5 minutes and one of 20 minutes.", (TIMER_TOOL,),
         (("set_timer", {"minutes": 5}), ("set_timer", {"minutes": 20}))),
        ("Is it warm in Accra, in Quito and in Hanoi?", ALL, _weather("Accra", "Quito", "Hanoi")),
        ("Convert 10 euros into dollars, and 10 euros into yen.", ALL,
         (*_money(10, "EUR", "USD"), *_money(10, "EUR", "JPY"))),
    ),
    "typed": (
        ("Convert 99.5 dollars into yen.", (MONEY_TOOL,), _money(99.5, "USD", "JPY")),
        ("Convert 0.75 pounds into dollars.", (MONEY_TOOL,), _money(0.75, "GBP", "USD")),
        ("Switch on the light in the hall.", (LIGHT_TOOL,), (("set_light", {"room": "hall", "on": True}),)),
        ("Switch on the light in the attic at 30 percent.", (LIGHT_TOOL,),
         (("set_light", {"room": "attic", "on": True, "percent": 30}),)),
        ("Put bread, salt and rice on my shopping list, in this order.", (LIST_TOOL,),
         (("add_to_list", {"items": ["bread", "salt", "rice"]}),)),
        ("Put Käse and crème fraîche on the list, in this order.", (LIST_TOOL,),
         (("add_to_list", {"items": ["Käse", "crème fraîche"]}),)),
        ("Book a table for 4 guests at Aurora for Mira.", (TABLE_TOOL,),
         (("book_table", {"restaurant": "Aurora", "guests": 4, "contact": {"name": "Mira"}}),)),
        ("Book a table for 2 guests at Lindenhof; I am Jonas, phone 5550100.", (TABLE_TOOL,),
         (("book_table",
           {"restaurant": "Lindenhof", "guests": 2, "contact": {"name": "Jonas", "phone": "5550100"}}),)),
    ),
}  # fmt: skip


def _questions() -> Iterator[Question]:
    """Yield the questions, kinds in turn: a run that ends early has asked some of each."""
    made = [
        [Question(f"{kind}-{number}", kind, *row) for number, row in enumerate(rows, 1)]
        for kind, rows in _ROWS.items()
    ]
    yield from (one for one in chain.from_iterable(zip_longest(*made)) if one is not None)


QUESTIONS = tuple(_questions())
KINDS = tuple(_ROWS)


@frozen
class Marks:
    """One answer: whether a call was due and came, how many calls fit a schema, whether all is right."""

    kind: str
    due: bool
    called: bool
    calls: int
    valid: int
    right: bool


def marked(question: Question, reply: Reply) -> Marks:
    """Return the marks of an answer: right are exactly the calls of the question, or none if it has none."""
    calls = reply.tool_calls
    valid = sum(fits(call, question.tools) for call in calls)
    right = valid == len(calls) and _same(calls, question.calls)
    return Marks(question.kind, bool(question.calls), bool(calls), len(calls), valid, right)


def fits(call: ToolCall, tools: Sequence[Tool]) -> bool:
    """Return whether a call names a tool on offer, and its arguments are JSON that fits the tool's schema."""
    from jsonschema import Draft202012Validator

    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return False
    return call.name in schemas and Draft202012Validator(schemas[call.name]).is_valid(arguments)


def _same(calls: Sequence[ToolCall], expected: Sequence[Call]) -> bool:
    """Return whether the calls, all valid, are the expected ones in any order."""
    left = list(expected)
    for call in calls:
        arguments = json.loads(call.arguments)
        found = next((one for one in left if one[0] == call.name and _holds(arguments, one[1])), None)
        if found is None:
            return False
        left.remove(found)
    return not left


def _holds(given: Any, expected: Any) -> bool:
    """Return whether a value is the expected one; texts may differ in case, objects may hold more."""
    if isinstance(expected, Mapping):
        return isinstance(given, Mapping) and all(
            key in given and _holds(given[key], value) for key, value in expected.items()
        )
    if isinstance(expected, list):
        return (
            isinstance(given, list)
            and len(given) == len(expected)
            and all(_holds(one, other) for one, other in zip(given, expected, strict=True))
        )
    if isinstance(expected, str):
        return isinstance(given, str) and given.strip().casefold() == expected.casefold()
    return isinstance(given, bool) is isinstance(expected, bool) and bool(given == expected)


def figures(marks: Sequence[Marks], kinds: Iterable[str]) -> dict[str, object]:
    """Return the figures in the form of a receipt."""
    hit, false, missed = (
        sum(m.called is called and m.due is due for m in marks)
        for called, due in ((True, True), (True, False), (False, True))
    )
    return {
        "trigger": {
            "precision": share(hit, hit + false),
            "recall": share(hit, hit + missed),
            "f1": f1(hit, false, missed),
        },
        "schema": share(sum(m.valid for m in marks), sum(m.calls for m in marks)),
        "right": share(sum(m.right for m in marks), len(marks)),
        "kinds": {
            kind: share(sum(m.right for m in marks if m.kind == kind), sum(m.kind == kind for m in marks))
            for kind in kinds
        },
    }


def share(agreed: int, trials: int) -> dict[str, object]:
    """Return a share with its 95 % interval; both are ``None`` without trials."""
    interval = wilson(agreed, trials)
    return {
        "value": None if interval is None else round(agreed / trials, 4),
        "interval": None if interval is None else [round(bound, 4) for bound in interval],
        "agreed": agreed,
        "trials": trials,
    }


def f1(hit: int, false: int, missed: int) -> dict[str, object]:
    """Return F1 with its 95 % interval.

    F1 = 2 J / (1 + J) grows with J = hit / (hit + false + missed). J is a share, so that Wilson's interval
    for J gives the interval for F1.
    """
    jaccard = share(hit, hit + false + missed)
    interval = wilson(hit, hit + false + missed)
    value = None if interval is None else round(2 * hit / (2 * hit + false + missed), 4)
    bounds = None if interval is None else [round(2 * bound / (1 + bound), 4) for bound in interval]
    return {**jaccard, "value": value, "interval": bounds}


SIDE_BY_SIDE = 4  # requests at a time
LIMIT = 600.0  # seconds of all questions


def measure(
    ctx: Context,
    each: int,
    progress: Progress,
    *,
    limit: float = LIMIT,
    questions: Sequence[Question] = QUESTIONS,
) -> Mapping[str, object] | None:
    """Ask every question ``each`` times and return the figures, ``None`` where the model is not scored.

    The request of round n has the seed n. ``limit``  seconds for all; questions after it are not asked. An
    exchange that fails is counted, and is in no figure.
    """
    if no_tools(ctx.promise) is not None:
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
