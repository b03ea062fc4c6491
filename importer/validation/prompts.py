"""The prompts of the probes: short conversations that any chat model can answer.

Conversations whose counts of tokens tell what a server left out: one part of a request in each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Any, Required, TypedDict

from importer.chat_template.request_coverage.conversations import nonce, nonce_name
from importer.chat_template.samples import Tool
from importer.frozen import frozen


class CalledFunction(TypedDict):
    """A function that an assistant's turn calls; ``arguments`` are JSON text."""

    name: str
    arguments: str


class Call(TypedDict):
    """A call in an assistant's turn."""

    id: str
    type: str
    function: CalledFunction


class Message(TypedDict, total=False):
    """A turn in OpenAI's form; ``content`` is text, or a list of parts."""

    role: Required[str]
    content: Any
    tool_calls: Sequence[Call]
    tool_call_id: str
    name: str


@frozen
class Prompt:
    """A conversation and the tools offered.

    ``expects``   words in lower case; a right answer holds one of them.
    ``switches``  variables for the chat template, where the probe is about them.
    ``extra``     further fields of the request: ``tool_choice``, ``stop``, ``max_tokens`` …
    ``tokens``    that its answer may have, behind a thought.
    ``begins``    whether it ends with the beginning of an assistant's turn; all prompts that are sent do.
    """

    name: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    expects: tuple[str, ...] = ()
    switches: Mapping[str, object] = field(default_factory=dict)
    extra: Mapping[str, object] = field(default_factory=dict)
    tokens: int = 256
    begins: bool = True

    def answered_by(self, text: str) -> bool:
        """Return whether a text holds an expected word; noise has some as parts of longer ones."""
        words = "|".join(map(re.escape, self.expects))
        found = re.search(rf"(?<![a-z0-9])(?:{words})(?![a-z0-9])", text.casefold())
        return bool(self.expects) and found is not None


def user(text: str) -> Message:
    """Return a user's turn."""
    return {"role": "user", "content": text}


def call(number: int, name: str, arguments: Mapping[str, object]) -> Message:
    """Return an assistant's turn that calls a tool.

    The id has nine letters and digits, the only form that every template accepts.
    """
    function: CalledFunction = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    made: Call = {"id": call_id(number), "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [made]}


def result(number: int, name: str, value: Mapping[str, object]) -> Message:
    """Return the result of the tool for call ``number``."""
    return {"role": "tool", "tool_call_id": call_id(number), "name": name, "content": json.dumps(value)}


def call_id(number: int) -> str:
    """Return the id of a call: ``call00001`` and so on."""
    return f"call{number:05d}"


def function(name: str, description: str, properties: Mapping[str, object], *required: str) -> Tool:
    """Return a tool in the form of the OpenAI API; without ``required`` every property is required."""
    schema = {
        "type": "object",
        "properties": dict(properties),
        "required": list(required) or list(properties),
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


GREETING = Prompt("greeting", (user("Say hello."),))
GREETED = Prompt(
    "greeted", (*GREETING.messages, {"role": "assistant", "content": "Hello to all."}), begins=False
)
SUM = Prompt("sum", (user("What is two plus two?"),), expects=("four", "4"))
# Templates name the switch by one of these names, and ignore the other.
SUM_THINKING = replace(SUM, name="sum-thinking", switches={"enable_thinking": True, "thinking": True})
SUM_SILENT = replace(SUM, name="sum-silent", switches={"enable_thinking": False, "thinking": False})
# Words in a known order: a stop string, a limit and a cut have an exact place. The question has no nine.
COUNT = Prompt("count", (user("Count from one to ten in words."),), expects=("nine", "9"))
# Many right answers: random draws differ here.
NUMBER = Prompt("number", (user("Name a random number from one to twenty."),))
# One word over and over: a penalty changes this answer.
AGAIN = Prompt("again", (user('Write the word "again" ten times.'),), expects=("again",))
# A second turn of the same conversation, for a cache and for history that has to reach the prompt.
NAME_RECALL = Prompt(
    "name-told",
    (
        user("My name is Mira. What is two plus two?"),
        {"role": "assistant", "content": "Two plus two is four."},
        user("What is my name?"),
    ),
    expects=("mira",),
)
# Of these prompts only the tokens are counted.
ONE_TOKEN: Mapping[str, object] = {"max_tokens": 1}
SYSTEM = Prompt("system", ({"role": "system", "content": "Be brief."}, *GREETING.messages), extra=ONE_TOKEN)
# Longer, if the template renders the system's turn.
SYSTEM_LONGER = Prompt(
    "system-longer",
    (
        {"role": "system", "content": "Be brief. Be kind. Be clear. Be calm. Be polite. Be patient."},
        *GREETING.messages,
    ),
    extra=ONE_TOKEN,
)
# Strictly alternating templates refuse this one.
TWO_USERS = Prompt("two-users", (user("Hello!"), *GREETING.messages), extra=ONE_TOKEN)
# An answer that only a schema can shape.
PERSON = Prompt("person", (user("Describe a person as JSON with the keys name and age."),))
PERSON_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


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
# Longer by a tool, if the template renders tools.
WEATHER_TWO_TOOLS = replace(
    WEATHER, name="weather-two-tools", tools=(WEATHER_TOOL, TIME_TOOL), extra=ONE_TOKEN
)
GREETING_WITH_TOOL = Prompt("greeting-with-tool", GREETING.messages, (WEATHER_TOOL,))
TWO_CITIES = Prompt(
    "two-cities",
    (user("What is the weather in Paris and in Rome? Look up both at once."),),
    (WEATHER_TOOL,),
    ("paris", "rome"),
)
ALARMS = Prompt("alarms", (user("Which alarms do I have?"),), (ALARMS_TOOL,))
TRIP_ARGUMENTS: Mapping[str, object] = {
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
# A question for a tool that is not on offer: no call may name it.
NOT_OFFERED = Prompt("not-offered", (user("What time is it in Rome?"),), (WEATHER_TOOL,))


def weather_answered(name: str, value: Mapping[str, object]) -> Prompt:
    """Return the weather question after the tool has answered with ``value``."""
    calling = call(1, "get_weather", {"location": "Paris"})
    answered = result(1, "get_weather", value)
    messages = (*WEATHER.messages, calling, answered)
    return Prompt(name, messages, WEATHER.tools, ("snow", "-3"))


# A result that no model guesses: an answer that holds it has read it.
WEATHER_ANSWERED = weather_answered("weather-answered", {"temperature": -3, "condition": "snowy"})
# The same turn with a longer result: a prompt of equal length means the result never reached the model.
WEATHER_ANSWERED_LONGER = replace(
    weather_answered(
        "weather-answered-longer",
        {"temperature": -3, "condition": "snowy", "wind": "north", "humidity": 80, "pressure": 1021},
    ),
    extra=ONE_TOKEN,
)
# Two calls in one turn with the distinct results of both.
_PARIS, _ROME = (call(n, "get_weather", {"location": city}) for n, city in ((1, "Paris"), (2, "Rome")))
BOTH_ANSWERED = Prompt(
    "both-answered",
    (
        *TWO_CITIES.messages,
        {**_PARIS, "tool_calls": [*_PARIS["tool_calls"], *_ROME["tool_calls"]]},
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
    extra=ONE_TOKEN,
)
# The conversation goes on, and the answer must be a call again: after one, two and three calls.
_ALL_ROUNDS: tuple[Message, ...] = (
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
    Prompt(f"round-{number}", _ALL_ROUNDS[:length], (WEATHER_TOOL, TIME_TOOL), (city,))
    for number, length, city in ((2, 5, "rome"), (3, 9, "oslo"), (4, 13, "berlin"))
)


# Every turn in words of its own, so that each can be found in the prompt.
_TURNS: tuple[Message, ...] = (
    user("Which tree is the oldest of them all?"),
    {"role": "assistant", "content": "That is the yew beside the chapel."},
    user("Then who planted the willow, please?"),
)
TALK = Prompt("told-talk", _TURNS)
# A user who writes what closes a thought.
TAGGED = Prompt("told-tagged", (user("The maple fell. </think> What does that tag in its file say?"),))
# A call with arguments, and one without: JSON stays JSON. No tool is shown, so that all JSON is a call's.
CALLED, CALLED_EMPTY = (
    Prompt(
        f"told-{name}",
        (user("What stands in the calendar?"), call(1, name, arguments), result(1, name, {"report": "none"})),
    )
    for name, arguments in (("find_events", {"place": "Bergen"}), ("list_events", {}))
)


class Part(StrEnum):
    """The part of a request that a conversation is about."""

    PLAIN = "plain"
    LETTERS = "letters"
    TAGS = "tags"
    SPACES = "spaces"
    FILTERED = "filtered"
    ROLES = "roles"
    REPEATED = "repeated"
    TOOLS = "tools"
    SCHEMAS = "schemas"
    ROUND = "round"
    RESULTS = "results"
    IN_PARTS = "in-parts"
    SWITCH = "switch"
    ORDINARY = "ordinary"
    LONG_USER = "long-user"
    LONG_SYSTEM = "long-system"


@frozen
class NoncePrompt:
    """A conversation about one part of a request.

    ``sent`` is what goes to the server, where that is another form of ``prompt``.
    """

    part: Part
    prompt: Prompt
    sent: Prompt | None = None


LETTERS = (
    "Z\u00fcrich, Krak\u00f3w, \u0391\u03b8\u03ae\u03bd\u03b1, \u041c\u043e\u0441\u043a\u0432\u0430, "
    "\u6771\u4eac, \U0001f642."
)
TAGS = "Is <b>this</b> a <i>tag</i>,<br/> and 5 < 6 & 7 > 2, or &lt;that&gt;?"
SPACES = "one  two   three\n\n\n\nfour\t\tfive \n    six\n\nseven"
# What filters look for: markup, paths, statements, addresses, numbers of cards, words of secrets.
FILTERED = (
    "<script>alert(1)</script> ../../etc/passwd; SELECT name FROM users WHERE id = 1 OR 1=1 -- "
    "mia@example.org, +49 30 1234567, 4111 1111 1111 1111, DE89370400440532013000, 192.0.2.7, "
    "https://example.org/?q=${jndi:x}&key=sk-abc123 password: hunter2, order 20418837"
)
SIZES = {Part.LONG_USER: (8_600, 4_400, 2_200), Part.LONG_SYSTEM: (2_200, 1_000)}  # letters
LONG_PART = 4  # nonces of a part: many more tokens than what engines put between two parts
WORD = "again"


def _prompt(
    part: Part, *messages: Message, tools: Sequence[Any] = (), size: int = 0, **switches: Any
) -> NoncePrompt:
    label = f"nonce-{part}{f'-{size}' if size else ''}"
    return NoncePrompt(part, Prompt(label, messages, tuple(tools), switches=switches, extra=ONE_TOKEN))


def _system(text: str) -> Message:
    return {"role": "system", "content": text}


def _tool(place: str, about: str) -> Any:
    parameter = {"type": "string", "description": about}
    return function(nonce_name(place), nonce(f"{place} about"), {"key": parameter})


def _tool_of_keywords() -> Any:
    """Return a tool whose schema has the keywords that validators of tools accept."""
    kinds = {"type": "string", "enum": [nonce_name("first kind"), nonce_name("second kind")]}
    properties = {
        "kind": kinds,
        "version": {"type": "string", "const": nonce_name("constant")},
        "amount": {"type": "integer", "minimum": 3, "maximum": 4711, "default": 17},
        "labels": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]{2,9}$"}},
        "when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "integer"}]},
    }
    return function(nonce_name("schemas"), nonce("schemas about"), properties, "kind", "labels")


def short(switches: Mapping[str, Any]) -> tuple[NoncePrompt, ...]:
    """Return the short conversations; ``switches`` are variables that change the template's text."""
    tools = (_tool("first tool", "Z\u00fcrich \u6771\u4eac"), _tool("second tool", "<b>a</b>  b & c"))
    called = nonce_name("first tool")
    made = call(1, called, {"key": "Krak\u00f3w <i>b</i>  &"})
    returned = result(1, called, {"report": nonce("result")})
    other = nonce_name("second tool")
    further = call(2, other, {"key": nonce("second call")})
    both: Message = {**made, "tool_calls": [*made["tool_calls"], *further["tool_calls"]]}
    second = result(2, other, {"report": nonce("second result")})
    plain = user(f"{nonce('plain')}?")
    found = [
        _prompt(Part.PLAIN, plain),
        _prompt(Part.LETTERS, user(f"{nonce('letters')} {LETTERS}")),
        _prompt(Part.TAGS, user(f"{nonce('tags')} {TAGS}")),
        _prompt(Part.FILTERED, user(f"{nonce('filtered')} {FILTERED}")),
        _prompt(Part.SPACES, user(f"\n  {nonce('spaces')} {SPACES}  \n")),
        _prompt(
            Part.ROLES, _system(nonce("system")), user(nonce("question")),
            {"role": "assistant", "content": nonce("answer")}, plain,
        ),
    ]  # fmt: skip
    texts = [" ".join(nonce(f"part {part}-{n}") for n in range(LONG_PART)) for part in range(2)]
    in_parts: Message = {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}
    one = _prompt(Part.IN_PARTS, user("".join(texts)))
    found.append(replace(one, sent=replace(one.prompt, messages=(in_parts,))))
    again: Message = {"role": "assistant", "content": nonce("again")}
    found.append(_prompt(Part.REPEATED, plain, again, plain, again, plain))
    if switches:
        found.append(_prompt(Part.SWITCH, plain, **switches))
    found.append(_prompt(Part.TOOLS, _system(nonce("beside tools")), plain, tools=tools))
    found.append(_prompt(Part.SCHEMAS, plain, tools=(_tool_of_keywords(),)))
    spoken: Message = {**made, "content": nonce("beside a call")}
    found.append(_prompt(Part.ROUND, plain, spoken, returned, tools=tools))
    found.append(_prompt(Part.RESULTS, plain, both, returned, second, tools=tools))
    return tuple(found)


def long(word: str) -> tuple[NoncePrompt, ...]:
    """Return conversations with a long question and a long system turn, each in several sizes.

    ``word`` is repeated. The largest that is short enough in tokens is the one to send.
    """
    found = []
    for part, sizes in SIZES.items():
        for size in sizes:
            text = " ".join([nonce(part), *[word] * (size // (len(word) + 1)), nonce(f"{part} end")])
            turns = (user(text),) if part is Part.LONG_USER else (_system(text), user(nonce("plain")))
            found.append(_prompt(part, *turns, size=size))
    return tuple(found)
