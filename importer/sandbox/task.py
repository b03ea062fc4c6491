"""Tasks of children: one a line in ``TASKS``, each from a dataclass to a dataclass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, Self, TypedDict, TypeVar

from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind

Q = TypeVar("Q")
A = TypeVar("A")

MAX_ANSWER = 64 * 2**20  # bytes
# Every task, by the place of its declaration. A child imports all of them, with their functions, before it
# confines itself; the caller imports only the declaration.
TASKS = (
    "importer.chat_template.render:RENDER",
    "importer.analysis:ANALYSE",
    "importer.chat_template.study:STUDY",
    "importer.analysis:FOR_ENGINE",
)


@frozen
class Task(Generic[Q, A]):
    """A function that runs in the child.

    ``name``      its place in ``TASKS``.
    ``function``  ``module:function``, imported in the child alone.
    ``question``, ``answer``  the dataclasses that cross the pipe.
    ``seconds``   of processor time for one call.
    ``warm``      ``module:function`` that loads lazy modules and data: nothing can be opened afterwards.
    ``kept``      whether answers stay on this disk: they follow from the question and importer's files alone.
    """

    name: str
    function: str
    question: type[Q]
    answer: type[A]
    seconds: float
    warm: str = ""
    kept: bool = False


class SandboxReason(ReasonKind):
    """Reasons with the limit that a text exceeds."""

    TIME = "it takes more than {seconds:g} s of processor time"
    MEMORY = "it needs more than {size:,} MiB of memory"
    OUTPUT = "what is made of it is larger than {size:,} MiB"
    DEPTH = "it is nested too deep"


class Response(TypedDict, total=False):
    """A child's line: one of the first four, and ``spent`` where the next call requires a new process."""

    answer: Any
    over: str
    error: Any
    fault: str
    spent: bool


@frozen
class OverLimit:
    """A text that is too costly, with the exceeded limit."""

    reason: Reason


class Closing(ABC):
    """A context manager that closes itself: a sandbox, a renderer, a parser worker."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """End the processes of the object."""
