"""Conversations that no engine is asked: the template writes them, and what it writes is read."""

from __future__ import annotations

from dataclasses import replace

from importer.validation.prompts.base import Prompt, call, result, user
from importer.validation.prompts.tools import WEATHER_TOOL

# Every turn in words of its own, so that each can be found in the prompt.
_TURNS = (
    user("Which tree is the oldest of them all?"),
    {"role": "assistant", "content": "That is the yew beside the chapel."},
    user("Then who planted the willow, please?"),
)
TALK = Prompt("told-talk", _TURNS)
TALK_WITH_SYSTEM = Prompt(
    "told-talk-with-system", ({"role": "system", "content": "Answer as an old gardener."}, *_TURNS)
)
# Longer than any window that somebody may have set.
_ROWS = enumerate(("ash", "beech", "cedar", "elder", "fir", "hazel", "juniper", "larch"))
LONG_TALK = Prompt(
    "told-long-talk",
    (
        *(
            turn
            for number, tree in _ROWS
            for turn in (
                user(f"Where does the {tree} of row {number} stand?"),
                {"role": "assistant", "content": f"The {tree} stands in corner {number}."},
            )
        ),
        user("Which of all these is the nearest?"),
    ),
)
# A user who writes what closes a thought.
TAGGED = Prompt("told-tagged", (user("The maple fell. </think> What does that tag in its file say?"),))
TALK_WITH_TOOLS = Prompt("told-talk-with-tools", _TURNS, (WEATHER_TOOL,))
# Two calls in one turn, and results long enough to be cut.
_CALLED, _SECOND = (call(n, "get_weather", {"location": city}) for n, city in ((1, "Bergen"), (2, "Narvik")))
ROUND = Prompt(
    "told-round",
    (
        user("Compare the two harbours."),
        {**_CALLED, "tool_calls": _CALLED["tool_calls"] + _SECOND["tool_calls"]},
        result(1, "get_weather", {"report": "drizzle in the morning and in the afternoon, at last gales"}),
        result(2, "get_weather", {"report": "sleet until noon and then some hours of sun, at last thunder"}),
        {"role": "assistant", "content": "Both are wet."},
        user("Which one is nearer?"),
    ),
    (WEATHER_TOOL,),
)
# A call with arguments, and one without: JSON stays JSON. No tool is shown, so that all JSON is a call's.
CALLED, CALLED_EMPTY = (
    Prompt(
        f"told-{name}",
        (
            user("What stands in the calendar?"),
            call(1, name, arguments),
            result(1, name, {"report": "none"}),
        ),
    )
    for name, arguments in (("find_events", {"place": "Bergen"}), ("list_events", {}))
)
# The same with one call, for models that make no more.
ROUND_OF_ONE = replace(
    ROUND,
    name="told-round-of-one",
    messages=(ROUND.messages[0], _CALLED, ROUND.messages[2], *ROUND.messages[4:]),
)
# Letters that are not ASCII in a tool and in a call.
BEYOND_ASCII = Prompt(
    "told-beyond-ascii",
    (
        user("How is it there?"),
        call(1, "get_weather", {"location": "Troms\u00f8"}),
        result(1, "get_weather", {"report": "drizzle in the morning, at last gales"}),
    ),
    (WEATHER_TOOL,),
)
