"""The one reader of what clusters and other machines answer: bounded, typed, or one kind of failure.

JSON is read into an ``Answer``, the last line of a script by a pattern. Everything else is
LauncherError("cluster-answer") with the printable beginning of what came.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    StrictStr,
    StringConstraints,
    TypeAdapter,
    model_validator,
)

from importer import launcher as processes
from importer.deadline import UNLIMITED, Deadline
from importer.errors import LauncherError, one_line
from importer.launcher import Finished, Purpose
from importer.reasons import Reason, ReasonKind

T = TypeVar("T")
LARGEST = processes.MOST_OUTPUT  # bytes of one answer
MOST_VALUES, MOST_ENTRIES = 1_000_000, 10_000  # of one answer, of one of its lists
SHOWN, SAID = 200, 300  # characters of an answer in an error, of a cluster's own words
# One without an end goes to the last byte: else each of its quotes would be tried as a beginning.
STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
# What kubectl is known to print before its JSON.
KUBECTL_WARNINGS = re.compile(r"(?:(?:Warning: |[EFIW][0-9]{4} )[^\n]*+(?:\n|\Z))*+")


class AnswerReason(ReasonKind):
    """Why an answer that is not shown cannot be used."""

    NOTHING = "nothing", "it is empty"
    TOO_LARGE = "too-large", "it has more than {megabytes} MiB"


class Answer(BaseModel):
    """A JSON object of a cluster: other members do not matter, and null is an absent member."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        return {k: v for k, v in data.items() if v is not None} if isinstance(data, dict) else data


def _said(text: str) -> str:
    return " ".join(text[: 10 * SAID].split())[:SAID]


Said = Annotated[StrictStr, AfterValidator(_said)]  # a cluster's own words, in one short line
Name = Annotated[StrictStr, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$")]
Entries = Annotated[list[T], Field(max_length=MOST_ENTRIES), FailFast()]


def parsed(kind: type[T], data: bytes, largest: int = LARGEST) -> T:
    """Return untrusted JSON as the type ``kind``; raises ValueError, never RecursionError."""
    if len(data) > largest:
        raise ValueError(largest)
    bare = STRINGS.sub(b"", data)
    if bare.count(b",") + bare.count(b"[") + bare.count(b"{") > MOST_VALUES:
        raise ValueError(MOST_VALUES)
    read: T = _adapter(kind).validate_json(data)  # type: ignore[arg-type]
    return read


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def without_warnings(text: str) -> str:
    """Return what kubectl printed behind its warnings."""
    return KUBECTL_WARNINGS.sub("", text, count=1)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of one tool at one place; ``deadline`` is that of the whole wait."""

    where: str
    tool: str
    words: str
    deadline: Deadline = UNLIMITED

    def ask(self, argv: Sequence[str], seconds: float, text: str = "") -> Finished:
        """Run the tool for at most ``seconds``; raises LauncherError, also for an endless answer."""
        try:
            return processes.run(argv, Purpose.REMOTE, seconds=min(seconds, self.deadline.left), text=text)
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise self.too_large() from None
            problem = error.strerror or type(error).__name__
            raise LauncherError("cluster-unreachable", where=self.where, problem=problem) from None

    def read(self, kind: type[T], done: Finished | bytes) -> T:
        """Return the JSON that came as ``kind``; raises LauncherError("cluster-answer")."""
        if isinstance(done, bytes):
            text, data = done[: 10 * SHOWN].decode("utf-8", "replace"), done
        else:
            text = done.output if done.output.strip() else done.errors
            data = without_warnings(done.output).encode()
        try:
            return parsed(kind, data)
        except ValueError:
            raise self.odd(text) from None

    def line(self, form: re.Pattern[str], done: Finished) -> re.Match[str]:
        """Return the last line of a script's answer; a login may print others before.

        Raises LauncherError("cluster-answer") where the line has another form.
        """
        found = form.fullmatch(done.output.rstrip().rpartition("\n")[2].rstrip("\r"))
        if found is None:
            raise self.odd(done.output if done.output.strip() else done.errors)
        return found

    def odd(self, came: str) -> LauncherError:
        """Return the error of an answer that cannot be used."""
        shown = one_line(came[: 10 * SHOWN])[:SHOWN]
        return self._error(shown or Reason(AnswerReason.NOTHING))

    def too_large(self) -> LauncherError:
        """Return the error of an answer beyond the limit."""
        return self._error(Reason(AnswerReason.TOO_LARGE, megabytes=LARGEST >> 20))

    def _error(self, came: object) -> LauncherError:
        return LauncherError(
            "cluster-answer", where=self.where, tool=self.tool, asked=one_line(self.words), came=came
        )
