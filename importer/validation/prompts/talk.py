"""Questions without tools."""

from __future__ import annotations

from dataclasses import replace

from importer.validation.prompts.base import Prompt, user

GREETING = Prompt("greeting", (user("Say hello."),))
GREETED = Prompt(
    "greeted", (*GREETING.messages, {"role": "assistant", "content": "Hello to all."}), begins=False
)
SUM = Prompt("sum", (user("What is two plus two?"),), expects=("four", "4"))
# Templates know the switch by one of these names; the others ignore what they do not know.
SUM_THINKING = replace(SUM, name="sum-thinking", switches={"enable_thinking": True, "thinking": True})
SUM_SILENT = replace(SUM, name="sum-silent", switches={"enable_thinking": False, "thinking": False})
# Words in a known order, so that a stop string, a limit and a cut have a place where they must fall.
COUNT = Prompt("count", (user("Count from one to ten in words."),), expects=("ten",))
# Many right answers: what is drawn at random shows here.
NUMBER = Prompt("number", (user("Name a random number from one to twenty."),))
# One word over and over: what a penalty changes shows here.
AGAIN = Prompt("again", (user('Write the word "again" ten times.'),), expects=("again",))
# A second turn of the same conversation, for a cache and for history that has to reach the prompt.
NAME_TOLD = Prompt(
    "name-told",
    (
        user("My name is Mira. What is two plus two?"),
        {"role": "assistant", "content": "Two plus two is four."},
        user("What is my name?"),
    ),
    expects=("mira",),
)
SYSTEM = Prompt("system", ({"role": "system", "content": "Be brief."}, *GREETING.messages))
# Longer, if the system's words are shown to the model at all.
SYSTEM_LONGER = Prompt(
    "system-longer",
    (
        {"role": "system", "content": "Be brief. Be kind. Be clear. Be calm. Be polite. Be patient."},
        *GREETING.messages,
    ),
)
# Strictly alternating templates refuse this one.
TWO_USERS = Prompt("two-users", (user("Hello!"), *GREETING.messages))
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
