"""What a child can be asked: one task a line in ``TASKS``, each from a dataclass to a dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from importer.reasons import Reason

Q = TypeVar("Q")
A = TypeVar("A")

MAX_ANSWER = 64 * 2**20  # bytes
# Every task, by the place of its declaration. A child imports all of them, with their functions, before it
# confines itself; whoever asks imports only the declaration.
TASKS = (
    "importer.chat_template.render:RENDER",
    "importer.analysis:ANALYSE",
    "importer.analysis:FOR_ENGINE",
)


@dataclass(frozen=True, slots=True)
class Task(Generic[Q, A]):
    """A function that runs in the child.

    ``name``      its place in ``TASKS``.
    ``function``  ``module:function``, imported in the child alone.
    ``question``, ``answer``  the dataclasses that cross.
    ``seconds``   of processor time for one call.
    ``warm``      ``module:function`` that loads what is loaded late: nothing can be opened afterwards.
    """

    name: str
    function: str
    question: type[Q]
    answer: type[A]
    seconds: float
    warm: str = ""


class SandboxReason(StrEnum):
    """Which limit a text exceeded."""

    TIME = "time"
    MEMORY = "memory"
    OUTPUT = "output"
    DEPTH = "depth"


@dataclass(frozen=True, slots=True)
class OverLimit:
    """The text is too costly: the limit that it exceeded."""

    reason: Reason
