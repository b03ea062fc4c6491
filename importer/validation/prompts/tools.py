"""Questions that need a tool, or only look as if they did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from importer.validation.prompts.base import Prompt, call, function, result, user
from importer.validation.prompts.talk import GREETING

LOCATION = {"location": {"type": "string", "description": "The city"}}
TIME_TOOL = function("get_time", "Get the current time.", LOCATION)
WEATHER_TOOL = function("get_weather", "Get the current weather in a location.", LOCATION)
ALARMS_TOOL = function("list_alarms", "List all alarms.", {})
# Every type that arguments have, letters that are not ASCII, and objects in an array in an object.
TRIP_TOOL = function(
    "book_trip",
    "Book a trip.",
    {
        "destination": {"type": "string", "description": "The city, as the user wrote it"},
        "seats": {"type": "integer"},
        "budget": {"type": "number"},
        "refundable": {"type": "boolean"},
        "stops": {"type": "array", "items": {"type": "string"}},
        "traveller": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
            "required": ["name", "age"],
        },
    },
)

WEATHER = Prompt("weather", (user("What is the weather in Paris?"),), (WEATHER_TOOL,), ("paris",))
# Longer by a tool, if tools are shown to the model at all.
WEATHER_TWO_TOOLS = replace(WEATHER, name="weather-two-tools", tools=(WEATHER_TOOL, TIME_TOOL))
GREETING_WITH_TOOL = Prompt("greeting-with-tool", GREETING.messages, (WEATHER_TOOL,))
TWO_CITIES = Prompt(
    "two-cities",
    (user("What is the weather in Paris and in Rome? Look up both at once."),),
    (WEATHER_TOOL,),
    ("paris", "rome"),
)
ALARMS = Prompt("alarms", (user("Which alarms do I have?"),), (ALARMS_TOOL,))
TRIP_WANTED: Mapping[str, Any] = {
    "destination": "Köln",
    "seats": 2,
    "budget": 99.5,
    "refundable": True,
    "stops": ["Liège", "Aachen"],
    "traveller": {"name": "Zoë", "age": 31},
}
TRIP = Prompt(
    "trip",
    (
        user(
            "Book a refundable trip to Köln with stops in Liège and Aachen: 2 seats, budget 99.5, "
            "traveller Zoë, age 31."
        ),
    ),
    (TRIP_TOOL,),
    ("köln",),
)
# A question for a tool that is not on offer: a name that nobody offered must not come back.
NOT_OFFERED = Prompt("not-offered", (user("What time is it in Rome?"),), (WEATHER_TOOL,))
REQUIRED = replace(GREETING_WITH_TOOL, name="required", extra={"tool_choice": "required"})
NAMED = replace(
    WEATHER_TWO_TOOLS,
    name="named",
    extra={"tool_choice": {"type": "function", "function": {"name": "get_time"}}},
)
FORBIDDEN = replace(WEATHER, name="forbidden", extra={"tool_choice": "none"})


def weather_answered(name: str, value: Mapping[str, Any]) -> Prompt:
    """The weather question after the tool has answered with ``value``."""
    asked = call(1, "get_weather", {"location": "Paris"})
    answered = result(1, "get_weather", value)
    messages = (*WEATHER.messages, asked, answered)
    return Prompt(name, messages, WEATHER.tools, ("snow", "-3"))


# A result that nobody would guess: an answer that holds it has read it.
WEATHER_ANSWERED = weather_answered("weather-answered", {"temperature": -3, "condition": "snowy"})
# The same turn with a longer result: a prompt of equal length means the result never reached the model.
WEATHER_ANSWERED_LONGER = weather_answered(
    "weather-answered-longer",
    {"temperature": -3, "condition": "snowy", "wind": "north", "humidity": 80, "pressure": 1021},
)
# Two calls in one turn and the results of both, which nobody would take for the other's.
_PARIS, _ROME = (call(n, "get_weather", {"location": city}) for n, city in ((1, "Paris"), (2, "Rome")))
BOTH_ANSWERED = Prompt(
    "both-answered",
    (
        *TWO_CITIES.messages,
        {**_PARIS, "tool_calls": _PARIS["tool_calls"] + _ROME["tool_calls"]},
        result(1, "get_weather", {"condition": "sunny"}),
        result(2, "get_weather", {"condition": "rainy"}),
    ),
    TWO_CITIES.tools,
    ("sunny", "rainy"),
)
# The same turn after a call with longer arguments: a prompt of equal length means that no call reaches it.
WEATHER_CALLED_LONGER = replace(
    WEATHER_ANSWERED,
    name="weather-called-longer",
    messages=(
        WEATHER_ANSWERED.messages[0],
        call(1, "get_weather", {"location": "Paris, which is the capital of France, in the north of it"}),
        *WEATHER_ANSWERED.messages[2:],
    ),
)
# The conversation goes on, and a structured call is wanted again: after one, two and three of them.
_TOLD = (
    *WEATHER_ANSWERED.messages,
    {"role": "assistant", "content": "It is snowy there now."},
    user("What is the weather in Rome?"),
    call(2, "get_weather", {"location": "Rome"}),
    result(2, "get_weather", {"temperature": 20, "condition": "sunny"}),
    {"role": "assistant", "content": "It is sunny there now."},
    user("What time is it in Oslo?"),
    call(3, "get_time", {"location": "Oslo"}),
    result(3, "get_time", {"time": "12:30"}),
    {"role": "assistant", "content": "It is 12:30 there now."},
    user("What is the weather in Berlin?"),
)
ROUNDS = tuple(
    Prompt(f"round-{number}", _TOLD[:length], (WEATHER_TOOL, TIME_TOOL), (city,))
    for number, length, city in ((2, 5, "rome"), (3, 9, "oslo"), (4, 13, "berlin"))
)
