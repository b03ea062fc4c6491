"""The questions of the score, each with the calls that answer it; written for this purpose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, zip_longest

from importer.chat_template.samples import Tool
from importer.frozen import frozen
from importer.validation.prompts import TIME_TOOL, WEATHER_TOOL, Prompt, function, user

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
