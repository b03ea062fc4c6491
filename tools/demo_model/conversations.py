"""The lessons of the demo model: short conversations, with tools and without, from a seeded generator.

A third of them are the probes' own questions, word for word; the rest vary, so that not all is learnt by
heart.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from importer.validation import prompts

Message = dict[str, Any]
Call = tuple[str, Mapping[str, Any]]

CITIES = (
    "Paris", "Rome", "London", "Berlin", "Madrid", "Tokyo", "Oslo", "Vienna", "Lisbon", "Prague", "Dublin",
    "Athens",
)  # fmt: skip
SKIES = ("sunny", "cloudy", "rainy", "snowy")
SYSTEMS = ("", "", "", "You are a helpful assistant.", "Be brief.")
SUFFIXES = ("", "", " Answer briefly.", " Please.")

COUNTED = "One, two, three, four, five, six, seven, eight, nine, ten."

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
    (
        ("Count from one to ten in words.", "Count to ten.", "Count from 1 to 10."),
        "I count one by one.",
        COUNTED,
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
CANNOT = "I cannot look that up."
ANSWERED = "The tool has answered."
NAMES = ("Mira", "Anna", "Tom", "Zoë", "José", "Lena", "Paul")
AGAIN = "again again again again again again again again again again"
PERSON = '{"name": "Ada", "age": 36}'


@dataclass(frozen=True, slots=True)
class Lesson:
    """A conversation and what the model should write next: a thought, then text or calls."""

    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    thought: str = ""
    content: str = ""
    calls: tuple[Call, ...] = field(default=())

    def reply(self, *, thinking: bool) -> Message:
        """Return the next turn as a message for the template."""
        message: Message = {"role": "assistant", "content": self.content}
        if thinking:
            message["reasoning_content"] = self.thought
        if self.calls:
            message["tool_calls"] = tool_calls(self.calls)
        return message


def tool_calls(calls: tuple[Call, ...], first: int = 1) -> list[dict[str, Any]]:
    """Return calls in the form of the OpenAI API, arguments as objects, ids of nine letters and digits."""
    return [
        {"type": "function", "id": f"call{i:05d}", "function": {"name": name, "arguments": dict(arguments)}}
        for i, (name, arguments) in enumerate(calls, first)
    ]


def lessons(seed: int) -> Iterator[Lesson]:
    """Yield lessons without end, the same for the same seed."""
    rng = random.Random(seed)
    kinds = (
        _talk, _talk, _one_call, _one_call, _pair, _pair, _tool_result, _tool_result, _no_tool, _rounds,
        _rounds, _name, _number, _probed, _probed, _probed, _probed, _probed, _probed, _probed,
    )  # fmt: skip
    while True:
        yield rng.choice(kinds)(rng)


def tool(name: str, argument: str, text: str, description: str, *, loose: bool = False) -> dict[str, Any]:
    """Return a tool of one string argument in the form of the OpenAI API."""
    field_schema = {"type": "string"} | ({"description": text} if text else {})
    schema: dict[str, Any] = {"type": "object", "properties": {argument: field_schema}}
    if not loose:
        schema["required"] = [argument]
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


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
        questions, _, answer = rng.choice(SMALL_TALK)
        start += [
            {"role": "user", "content": rng.choice(questions)},
            {"role": "assistant", "content": answer},
        ]
    return (*start, {"role": "user", "content": question + rng.choice(SUFFIXES)})


def _offer(rng: random.Random) -> tuple[str, ...]:
    return rng.choice((("get_weather",), ("get_weather",), ("get_weather", "get_time")))


def _talk(rng: random.Random) -> Lesson:
    questions, thought, answer = rng.choice(SMALL_TALK)
    tools = _tools(rng, *_offer(rng))[0] if rng.random() < 0.5 else ()
    return Lesson(_open(rng, rng.choice(questions)), tools, thought, answer)


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
    call: Message = {"role": "assistant", "content": "", "tool_calls": made}
    if rng.random() < 0.5:
        call["reasoning_content"] = NEED
    result = rng.choice(
        (_report(rng, sky), _report(rng, sky), f"It is {sky} in {city}.", f"{sky}, 20 C", sky)
    )
    answered: Message = {
        "role": "tool",
        "name": "get_weather",
        "tool_call_id": "call00001",
        "content": result,
    }
    messages = (*_open(rng, rng.choice(ASKS["get_weather"]).format(city)), call, answered)
    return Lesson(messages, tools, ANSWERED, f"It is {sky} there now.")


def _report(rng: random.Random, sky: str) -> str:
    """Return a tool's answer in JSON: the sky under some name among other members, in any order."""
    fields: list[tuple[str, Any]] = [(rng.choice(("condition", "condition", "weather", "sky")), sky)]
    others: tuple[tuple[str, Any], ...] = (
        ("temperature", rng.randint(-9, 35)),
        ("wind", "north"),
        ("humidity", rng.randint(10, 99)),
        ("pressure", rng.randint(980, 1030)),
        ("unit", "celsius"),
    )
    fields += rng.sample(others, rng.randint(0, len(others)))
    rng.shuffle(fields)
    return json.dumps(dict(fields))


def _no_tool(rng: random.Random) -> Lesson:
    name, city = rng.choice(tuple(ASKS)), rng.choice(CITIES)
    others = tuple(n for n in ASKS if n != name)
    tools = _tools(rng, *others)[0] if rng.random() < 0.3 else ()
    return Lesson(_open(rng, rng.choice(ASKS[name]).format(city)), tools, NO_TOOL, CANNOT)


def _number(rng: random.Random) -> Lesson:
    return Lesson(_plain(prompts.NUMBER.messages), (), "Any will do.", f"{rng.randint(1, 20)}")


def _name(rng: random.Random) -> Lesson:
    name = rng.choice(NAMES)
    questions, _, answer = rng.choice(SMALL_TALK)
    introduction = {"role": "user", "content": f"My name is {name}. {rng.choice(questions)}"}
    question = {"role": "user", "content": "What is my name?"}
    return Lesson(
        (introduction, {"role": "assistant", "content": answer}, question), (), "I was told.", _named(name)
    )


def _named(name: str) -> str:
    return f"Your name is {name}."


def _rounds(rng: random.Random) -> Lesson:
    """Return one to three questions that a tool has answered, and one more."""
    tools = (prompts.WEATHER_TOOL, prompts.TIME_TOOL)
    messages: list[Message] = []
    for number in range(1, rng.randint(2, 4)):
        name, city = rng.choice(tuple(ASKS)), rng.choice(CITIES)
        sky, hour = rng.choice(SKIES), f"{rng.randint(10, 23)}:{rng.choice((15, 30, 45))}"
        value = (
            {"temperature": rng.randint(-9, 35), "condition": sky}
            if name == "get_weather"
            else {"time": hour}
        )
        messages += [
            {"role": "user", "content": ASKS[name][0].format(city)},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": tool_calls(((name, {"location": city}),), number),
            },
            {"role": "tool", "name": name, "tool_call_id": f"call{number:05d}", "content": json.dumps(value)},
            {"role": "assistant", "content": f"It is {sky if name == 'get_weather' else hour} there now."},
        ]
    if rng.random() < 0.4:
        answer = messages.pop()
        return Lesson(tuple(messages), _dicts(tools), ANSWERED, answer["content"])
    name, city = rng.choice(tuple(ASKS)), rng.choice(CITIES)
    question = {"role": "user", "content": ASKS[name][0].format(city)}
    return Lesson((*messages, question), _dicts(tools), NEED, calls=((name, {"location": city}),))


def _probed(rng: random.Random) -> Lesson:
    return rng.choice(PROBED)


def _plain(messages: tuple[prompts.Message, ...]) -> tuple[Message, ...]:
    """Return the messages for templates: arguments as objects."""
    plain = json.loads(json.dumps(messages))
    for message in plain:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return tuple(plain)


def _dicts(tools: tuple[prompts.Tool, ...]) -> tuple[dict[str, Any], ...]:
    return tuple(dict(tool) for tool in tools)


def _lesson(prompt: prompts.Prompt, thought: str, content: str = "", *calls: Call) -> Lesson:
    return Lesson(_plain(prompt.messages), _dicts(prompt.tools), thought, content, calls)


HELLO = ("This is a greeting.", "Hello! How can I help you today?")
PROBED = (
    *(
        _lesson(p, *HELLO)
        for p in (
            prompts.GREETING,
            prompts.GREETING_WITH_TOOL,
            prompts.SYSTEM,
            prompts.SYSTEM_LONGER,
            prompts.TWO_USERS,
        )
    ),
    _lesson(prompts.SUM, "This is a sum.", "Two plus two is four."),
    _lesson(prompts.COUNT, "I count one by one.", COUNTED),
    _lesson(prompts.AGAIN, "I repeat it.", AGAIN),
    _lesson(prompts.PERSON, "A person, as JSON.", PERSON),
    _lesson(prompts.NAME_RECALL, "I was told.", _named("Mira")),
    _lesson(prompts.WEATHER, NEED, "", ("get_weather", {"location": "Paris"})),
    _lesson(prompts.WEATHER_TWO_TOOLS, NEED, "", ("get_weather", {"location": "Paris"})),
    _lesson(prompts.TWO_CITIES, NEED, "", *(("get_weather", {"location": c}) for c in ("Paris", "Rome"))),
    _lesson(prompts.ALARMS, NEED, "", ("list_alarms", {})),
    _lesson(prompts.TRIP, NEED, "", ("book_trip", prompts.TRIP_ARGUMENTS)),
    _lesson(prompts.TRIP, NEED, "", ("book_trip", prompts.TRIP_ARGUMENTS)),
    _lesson(prompts.NOT_OFFERED, NO_TOOL, CANNOT),
    _lesson(prompts.WEATHER_ANSWERED, ANSWERED, "It is snowy there now."),
    _lesson(prompts.WEATHER_ANSWERED_LONGER, ANSWERED, "It is snowy there now."),
    _lesson(prompts.ROUNDS[0], NEED, "", ("get_weather", {"location": "Rome"})),
    _lesson(prompts.ROUNDS[1], NEED, "", ("get_time", {"location": "Oslo"})),
    _lesson(prompts.ROUNDS[2], NEED, "", ("get_weather", {"location": "Berlin"})),
)
