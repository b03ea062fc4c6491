"""What the demo model is taught: short conversations, with tools and without, from a seeded generator."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]

CITIES = (
    "Paris", "Rome", "London", "Berlin", "Madrid", "Tokyo", "Oslo", "Vienna", "Lisbon", "Prague", "Dublin",
    "Athens",
)  # fmt: skip
SKIES = ("sunny", "cloudy", "rainy", "snowy")
SYSTEMS = ("", "", "", "You are a helpful assistant.", "Be brief.")
SUFFIXES = ("", "", " Answer briefly.", " Please.")

# Question variants, the thought, the answer.
SMALL_TALK: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("Say hello.", "Hello!", "Hi", "Hello", "Hi there!", "Good morning.", "Say hi.", "Please say hello."),
        "This is a greeting.",
        "Hello! How can I help you today?",
    ),
    (
        ("Count from one to five.", "Count to five.", "Count from 1 to 5.", "Please count from one to five."),
        "I count one by one.",
        "One, two, three, four, five.",
    ),
    (
        ("Who are you?", "What are you?", "What is your name?", "Introduce yourself."),
        "I say who I am.",
        "I am a tiny demo model.",
    ),
    (
        ("What is two plus two?", "What is 2+2?", "What is 2 + 2?", "Add two and two."),
        "This is a sum.",
        "Two plus two is four.",
    ),
    (
        ("What is the capital of France?", "Name the capital of France.", "Which is the capital of France?"),
        "I know this one.",
        "The capital of France is Paris.",
    ),
    (("Thank you.", "Thanks!", "Thank you very much.", "thanks"), "This is thanks.", "You are welcome!"),
    (("Name three colours.", "Name three colors.", "List three colors."), "I list.", "Red, green and blue."),
    (
        ("Tell me a joke.", "Tell me a short story.", "Write a sentence.", "Write one short sentence."),
        "A short text is asked for.",
        "The cat sat on the mat and smiled.",
    ),
    (
        ("Why is the sky blue?", "Explain the sky.", "What is the sky?"),
        "This is about the sky.",
        "The sky is blue because air scatters blue light.",
    ),
)

ASKS = {
    "get_weather": (
        "What is the weather in {}?",
        "What's the weather in {}?",
        "What is the weather like in {}?",
        "How is the weather in {}?",
        "Tell me the weather in {}.",
        "What is the weather in {} today?",
        "Weather in {}?",
        "What is the weather in {} right now?",
        "Check the weather in {}.",
        "Use the tool to get the weather in {}.",
    ),
    "get_time": ("What time is it in {}?", "Tell me the time in {}.", "What is the time in {}?"),
}
ASK_PAIR = (
    "What is the weather in {} and in {}?",
    "What is the weather in {} and {}?",
    "What's the weather in {} and in {}?",
    "Weather in {} and {}?",
    "Tell me the weather in {} and in {}.",
)
DESCRIPTIONS = {
    "get_weather": ("Get the weather.", "Get the current weather.", "Get the current weather in a location.",
                    "Current weather in a city", "The weather in a place.", "Returns the weather of a city."),
    "get_time": ("Get the time.", "Get the current time.", "The current time in a city."),
}  # fmt: skip
ARGUMENT_TEXTS = ("", "", "The city", "City name", "The city name", "The city, e.g. London")
NEED = "I need the tool."
NO_TOOL = "I have no tool for that."


@dataclass(frozen=True, slots=True)
class Lesson:
    """A conversation and what the model should write next: a thought, then text or calls."""

    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    thought: str = ""
    content: str = ""
    calls: tuple[tuple[str, dict[str, str]], ...] = field(default=())

    def reply(self, *, thinking: bool) -> Message:
        """The next turn as a message for the template."""
        message: Message = {"role": "assistant", "content": self.content}
        if thinking:
            message["reasoning_content"] = self.thought
        if self.calls:
            message["tool_calls"] = tool_calls(self.calls)
        return message


def tool_calls(calls: tuple[tuple[str, dict[str, str]], ...]) -> list[dict[str, Any]]:
    """Calls in the form of the OpenAI API, arguments as objects."""
    return [
        {"type": "function", "id": f"call_{i}", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(calls)
    ]


def lessons(seed: int) -> Iterator[Lesson]:
    """Lessons without end, the same for the same seed."""
    rng = random.Random(seed)  # noqa: S311 - reproducible on purpose
    kinds = (_talk, _talk, _one_call, _one_call, _pair, _pair, _tool_result, _tool_result, _no_tool)
    while True:
        yield rng.choice(kinds)(rng)


def tool(name: str, argument: str, text: str, description: str, *, loose: bool = False) -> dict[str, Any]:
    """A tool of one string argument in the form of the OpenAI API."""
    field_schema = {"type": "string"} | ({"description": text} if text else {})
    schema: dict[str, Any] = {"type": "object", "properties": {argument: field_schema}}
    if not loose:
        schema["required"] = [argument]
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": schema},
    }


def _tools(rng: random.Random, *names: str) -> tuple[tuple[dict[str, Any], ...], str]:
    argument = rng.choice(("location", "location", "city"))
    made = [
        tool(n, argument, rng.choice(ARGUMENT_TEXTS), rng.choice(DESCRIPTIONS[n]), loose=rng.random() < 0.2)
        for n in names
    ]
    rng.shuffle(made)
    return tuple(made), argument


def _open(rng: random.Random, question: str) -> tuple[Message, ...]:
    system = rng.choice(SYSTEMS)
    start: list[Message] = [{"role": "system", "content": system}] if system else []
    if rng.random() < 0.15:
        asked, _, answer = rng.choice(SMALL_TALK)
        start += [{"role": "user", "content": rng.choice(asked)}, {"role": "assistant", "content": answer}]
    return (*start, {"role": "user", "content": question + rng.choice(SUFFIXES)})


def _offer(rng: random.Random) -> tuple[str, ...]:
    return rng.choice((("get_weather",), ("get_weather",), ("get_weather", "get_time")))


def _talk(rng: random.Random) -> Lesson:
    asked, thought, answer = rng.choice(SMALL_TALK)
    tools = _tools(rng, *_offer(rng))[0] if rng.random() < 0.5 else ()
    return Lesson(_open(rng, rng.choice(asked)), tools, thought, answer)


def _one_call(rng: random.Random) -> Lesson:
    offered = _offer(rng)
    tools, argument = _tools(rng, *offered)
    name, city = rng.choice(offered), rng.choice(CITIES)
    question = rng.choice(ASKS[name]).format(city)
    return Lesson(_open(rng, question), tools, NEED, calls=((name, {argument: city}),))


def _pair(rng: random.Random) -> Lesson:
    tools, argument = _tools(rng, *_offer(rng))
    cities = rng.sample(CITIES, 2)
    question = rng.choice(ASK_PAIR).format(*cities)
    calls = tuple(("get_weather", {argument: city}) for city in cities)
    return Lesson(_open(rng, question), tools, NEED, calls=calls)


def _tool_result(rng: random.Random) -> Lesson:
    tools, argument = _tools(rng, *_offer(rng))
    city, sky = rng.choice(CITIES), rng.choice(SKIES)
    made = tool_calls((("get_weather", {argument: city}),))
    asked: Message = {"role": "assistant", "content": "", "tool_calls": made}
    if rng.random() < 0.5:
        asked["reasoning_content"] = NEED
    result = rng.choice(
        (_report(rng, sky), _report(rng, sky), f"It is {sky} in {city}.", f"{sky}, 20 C", sky)
    )
    answered: Message = {"role": "tool", "name": "get_weather", "tool_call_id": "call_0", "content": result}
    messages = (*_open(rng, rng.choice(ASKS["get_weather"]).format(city)), asked, answered)
    return Lesson(messages, tools, "The tool has answered.", f"It is {sky} there now.")


def _report(rng: random.Random, sky: str) -> str:
    """A tool's answer in JSON: the sky under some name among some other things, in any order."""
    said: list[tuple[str, Any]] = [(rng.choice(("condition", "condition", "weather", "sky")), sky)]
    others: tuple[tuple[str, Any], ...] = (
        ("temperature", rng.randint(-9, 35)),
        ("wind", "north"),
        ("humidity", rng.randint(10, 99)),
        ("pressure", rng.randint(980, 1030)),
        ("unit", "celsius"),
    )
    said += rng.sample(others, rng.randint(0, len(others)))
    rng.shuffle(said)
    return json.dumps(dict(said))


def _no_tool(rng: random.Random) -> Lesson:
    name, city = rng.choice(tuple(ASKS)), rng.choice(CITIES)
    others = tuple(n for n in ASKS if n != name)
    tools = _tools(rng, *others)[0] if rng.random() < 0.3 else ()
    return Lesson(_open(rng, rng.choice(ASKS[name]).format(city)), tools, NO_TOOL, "I cannot look that up.")
