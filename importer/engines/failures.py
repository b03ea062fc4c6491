"""Why a parser made nothing of a sample: by its own fault, or by an accident of the machine's."""

from __future__ import annotations

from enum import StrEnum


class Accident(StrEnum):
    """What a busy or full machine may do to a process, or to what runs in it."""

    HANG = "hang"
    DEATH = "death"
    OVERRUN = "overrun"
    MEMORY = "memory"


class ParserFailure(StrEnum):
    """What no other machine would change."""

    RAISED = "raised"  # in its own words
