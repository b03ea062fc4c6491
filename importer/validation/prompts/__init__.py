"""What the probes ask: short questions that any chat model can answer, in one place."""

from __future__ import annotations

from importer.validation.prompts.base import Message, Prompt, Tool
from importer.validation.prompts.talk import (
    AGAIN,
    COUNT,
    GREETED,
    GREETING,
    NAME_TOLD,
    NUMBER,
    PERSON,
    PERSON_SCHEMA,
    SUM,
    SUM_SILENT,
    SUM_THINKING,
    SYSTEM,
    SYSTEM_LONGER,
    TWO_USERS,
)
from importer.validation.prompts.tools import (
    ALARMS,
    ALARMS_TOOL,
    BOTH_ANSWERED,
    FORBIDDEN,
    GREETING_WITH_TOOL,
    NAMED,
    NOT_OFFERED,
    REQUIRED,
    ROUNDS,
    TIME_TOOL,
    TRIP,
    TRIP_TOOL,
    TRIP_WANTED,
    TWO_CITIES,
    WEATHER,
    WEATHER_ANSWERED,
    WEATHER_ANSWERED_LONGER,
    WEATHER_CALLED_LONGER,
    WEATHER_TOOL,
    WEATHER_TWO_TOOLS,
)

__all__ = [
    "AGAIN", "ALARMS", "ALARMS_TOOL", "BOTH_ANSWERED", "COUNT", "FORBIDDEN", "GREETED", "GREETING",
    "GREETING_WITH_TOOL", "NAMED", "NAME_TOLD", "NOT_OFFERED", "NUMBER", "PERSON", "PERSON_SCHEMA",
    "REQUIRED", "ROUNDS", "SUM", "SUM_SILENT", "SUM_THINKING", "SYSTEM", "SYSTEM_LONGER", "TIME_TOOL",
    "TRIP", "TRIP_TOOL", "TRIP_WANTED", "TWO_CITIES", "TWO_USERS", "WEATHER", "WEATHER_ANSWERED",
    "WEATHER_ANSWERED_LONGER", "WEATHER_CALLED_LONGER", "WEATHER_TOOL", "WEATHER_TWO_TOOLS", "Message",
    "Prompt", "Tool",
]  # fmt: skip
