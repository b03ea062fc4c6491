"""What the probes ask: short questions that any chat model can answer, in one place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Message = Mapping[str, Any]

TIME_TOOL: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "Get the current time.",
        "parameters": {
            "type": "object",
            "properties": {"location": {"type": "string", "description": "The city"}},
            "required": ["location"],
        },
    },
}
WEATHER_TOOL: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather in a location.",
        "parameters": {
            "type": "object",
            "properties": {"location": {"type": "string", "description": "The city"}},
            "required": ["location"],
        },
    },
}


@dataclass(frozen=True, slots=True)
class Prompt:
    """A conversation and the tools offered.

    ``expects``  words one of which a right answer holds, in lower case.
    ``switches`` variables for the chat template, where the probe is about them.
    """

    name: str
    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    expects: tuple[str, ...] = ()
    switches: Mapping[str, Any] = field(default_factory=dict)


GREETING = Prompt("greeting", ({"role": "user", "content": "Say hello."},))
SUM = Prompt("sum", ({"role": "user", "content": "What is two plus two?"},), expects=("four", "4"))
WEATHER = Prompt(
    "weather",
    ({"role": "user", "content": "What is the weather in Paris?"},),
    (WEATHER_TOOL,),
    ("paris",),
)
# Longer by a tool, if tools are shown to the model at all.
WEATHER_TWO_TOOLS = replace(WEATHER, name="weather-two-tools", tools=(WEATHER_TOOL, TIME_TOOL))
# Templates know the switch by one of these names; the others ignore what they do not know.
SUM_THINKING = replace(SUM, name="sum-thinking", switches={"enable_thinking": True, "thinking": True})
GREETING_WITH_TOOL = Prompt("greeting-with-tool", GREETING.messages, (WEATHER_TOOL,))


def weather_answered(result: Mapping[str, Any]) -> Prompt:
    """The weather question after the tool has answered with ``result``.

    The id has nine letters and digits, the only form that every template takes.
    """
    call = {
        "id": "call00001",
        "type": "function",
        "function": {"name": "get_weather", "arguments": json.dumps({"location": "Paris"})},
    }
    asked = {"role": "assistant", "content": "", "tool_calls": [call]}
    answer = {
        "role": "tool",
        "tool_call_id": "call00001",
        "name": "get_weather",
        "content": json.dumps(result),
    }
    return Prompt("weather-answered", (*WEATHER.messages, asked, answer), WEATHER.tools, ("snow", "-3"))


# A result that nobody would guess: an answer that holds it has read it.
WEATHER_ANSWERED = weather_answered({"temperature": -3, "condition": "snowy"})
# The same turn with a longer result: a prompt of equal length means the result never reached the model.
WEATHER_ANSWERED_LONGER = weather_answered(
    {"temperature": -3, "condition": "snowy", "wind": "north", "humidity": 80, "pressure": 1021}
)
