"""Calls in a text that comes in pieces: ``[f(a="x"), g()]`` anywhere, ``f(a="x")`` on a line of its own.

Only functions on offer are called. Text that is no call, or cannot be read, stays text, and the calls beside
it are kept. A piece is returned when no further text can change it, so the split of a text makes no
difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from .arguments import Schema, UnreadableError, read_arguments, read_words
from .parens import Parens, WaitsError

COMMANDS = "tool_code"  # the fence in which a line may be a command: f some/path
FENCE = re.compile(r"```([A-Za-z_]{0,20})[ \t]{0,20}\n[ \t]{0,20}(\[\s{0,20})?")
FENCE_BEGUN = re.compile(r"`{1,3}|```[A-Za-z_]{0,20}[ \t]{0,20}(\n[ \t]{0,20}(\[\s{0,20})?)?")
START = re.compile(r"\n[ \t]*|\[|,")
SPACE = re.compile(r"\s*")
BLANK = re.compile(r"[ \t]*")
SPARE = 20  # spaces that may stand between a name and its parenthesis


@dataclass(frozen=True)
class Call:
    """A call that was read."""

    name: str
    arguments: dict[str, Any]


Piece = str | Call


class Place(Enum):
    """The kind of text at the position: prose, a call in a list, a call on a line, a command."""

    PROSE = 0
    LIST = 1
    LINE = 2
    COMMAND = 3


@dataclass(frozen=True)
class Next:
    """The position to go on at: a function's name, or prose; ``fence`` is the language of the fence there."""

    at: int
    place: Place = Place.PROSE
    name: str = ""
    fence: str | None = None


class Reader:
    """A reader of one answer.

    ``tools`` are the functions on offer, each with the JSON Schema of its parameters.

    ``problems``  why each call that stayed text could not be read.
    """

    def __init__(self, tools: Mapping[str, Schema]) -> None:
        self.problems: list[str] = []
        self._tools = tools
        self._names = sorted(tools, key=len, reverse=True)
        self._text = ""  # text that is not returned yet
        self._here = Next(0)  # the kind of its beginning
        self._line = True  # the text begins where a line does
        self._ticked = False  # a backtick stands before the text
        self._prefix = ""  # removed text that opened a call; text again if the call cannot be read
        self._broken = False  # a call could not be read, so another may stand behind a comma
        self._parens: Parens | None = None

    def feed(self, text: str) -> list[Piece]:
        """Return the pieces that are settled by this much text."""
        self._text += text
        return self._settled(whole=False)

    def finish(self) -> list[Piece]:
        """Return the rest at the end of the text."""
        return self._settled(whole=True)

    def _settled(self, *, whole: bool) -> list[Piece]:
        pieces: list[Piece] = []
        steps = {Place.PROSE: self._prose, Place.COMMAND: self._command}
        try:
            while self._text:
                pieces.append(steps.get(self._here.place, self._call)(whole))
        except WaitsError:
            pass
        return [piece for piece in pieces if piece != ""]

    # In prose: return text up to the next position where a call may begin.

    def _prose(self, whole: bool) -> Piece:
        for at, on_line in self._starts():
            try:
                opened = self._opened(at, whole, on_line=on_line)
            except WaitsError:
                if at == 0:
                    raise
                return self._give(at)
            if opened is not None:
                prose = self._give(at)
                self._prefix = self._text[: opened.at - at] if opened.name else ""
                self._text, self._here = self._text[opened.at - at :], opened
                return prose
        return self._give(len(self._text))

    def _starts(self) -> Iterator[tuple[int, bool]]:
        """Yield positions where a call may open, with whether a line begins there."""
        if self._line:
            yield _skip(BLANK, self._text, 0), True
        for match in START.finditer(self._text):
            sign = match.group()
            if sign[0] == "\n":
                yield match.end(), True
            elif sign == "[" or self._broken:
                yield match.start(), False

    def _opened(self, at: int, whole: bool, *, on_line: bool) -> Next | None:
        char = self._text[at : at + 1]
        if char in ("[", ","):
            start = _skip(SPACE, self._text, at + 1)
            name = None if self._behind_tick(at) else self._name_at(start, whole)
            return Next(start, Place.LIST, name, self._here.fence) if name else None
        if not char or not on_line:
            return None
        if char == "`":
            return self._fenced(at, whole)
        return self._on_line(at, whole, self._here.fence)

    def _behind_tick(self, at: int) -> bool:
        return self._text[at - 1] == "`" if at else self._ticked

    def _on_line(self, at: int, whole: bool, fence: str | None) -> Next | None:
        """Return a call at the beginning of a line; in the fence for commands, a command."""
        name = self._name_at(at, whole)
        if name:
            return Next(at, Place.LINE, name, fence)
        name = self._name_at(at, whole, " \t\n") if fence == COMMANDS else None
        return Next(at, Place.COMMAND, name, fence) if name else None

    def _fenced(self, at: int, whole: bool) -> Next | None:
        """Return a fence that opens on a call, or the end of one whose beginning was removed."""
        rest = self._text[at : at + 5 * SPARE]
        if self._here.fence is not None:
            if rest.startswith("```"):
                return Next(at + 3)
        else:
            match = FENCE.match(self._text, at)
            if match and match[2]:
                name = self._name_at(match.end(), whole)
                return Next(match.end(), Place.LIST, name, match[1]) if name else None
            if match and (match.end() < len(self._text) or whole):
                return self._on_line(match.end(), whole, match[1])
        if FENCE_BEGUN.fullmatch(rest) and not whole:
            raise WaitsError
        return None

    def _name_at(self, at: int, whole: bool, behind: str = "(") -> str | None:
        """Return the function whose name stands at ``at``, with one of ``behind`` after it.

        Raises WaitsError.
        """
        waits = False
        for name in self._names:
            rest = self._text[at : at + len(name) + SPARE]
            after = rest[len(name) :] if behind != "(" else rest[len(name) :].lstrip(" \t")
            if rest.startswith(name) and after and after[0] in behind:
                return name
            waits = waits or (not after and (rest.startswith(name) or name.startswith(rest)))
        if waits and not whole:
            raise WaitsError
        return None

    def _give(self, length: int) -> str:
        prose, self._text = self._text[:length], self._text[length:]
        if prose:
            _, newline, tail = prose.rpartition("\n")
            self._line = not tail.strip(" \t") and (newline != "" or self._line)
            self._ticked = prose.endswith("`")
        return prose

    # At a call: the text begins with the function's name.

    def _call(self, whole: bool) -> Piece:
        name, opening = self._here.name, self._text.index("(")
        self._parens = self._parens or Parens(opening)
        end = self._parens.end(self._text, whole=whole)
        if end is None:
            return self._left(opening + 1, "nothing closes its parentheses")
        following = self._after(end, whole)
        if following is None:
            return self._left(opening + 1)
        try:
            arguments = read_arguments(self._text[opening:end], self._tools[name])
        except UnreadableError as error:
            return self._left(following.at, str(error), following)
        return self._read(Call(name, arguments), following)

    def _command(self, whole: bool) -> Piece:
        name, end = self._here.name, self._text.find("\n")
        if end < 0 and not whole:
            raise WaitsError
        end = end if end >= 0 else len(self._text)
        following = Next(end, fence=self._here.fence)
        try:
            arguments = read_words(self._text[len(name) : end], self._tools[name])
        except UnreadableError as error:
            return self._left(end, str(error), following)
        return self._read(Call(name, arguments), following)

    def _after(self, end: int, whole: bool) -> Next | None:
        """Return the position behind a call; ``None`` where prose goes on in its line, so that it is no
        call.
        """
        in_list, fence = self._here.place is Place.LIST, self._here.fence
        at = _skip(SPACE if in_list else BLANK, self._text, end)
        sign = self._text[at : at + 1]
        if in_list and sign == "]":
            return Next(at + 1, fence=fence)
        if sign == "," or (sign == ";" and not in_list):
            start = _skip(SPACE, self._text, at + 1)
            name = self._name_at(start, whole)
            if name:
                return Next(start, self._here.place, name, fence)
            if in_list and self._text[start : start + 1] == "]":
                return Next(start + 1, fence=fence)
        if not sign and not whole:
            raise WaitsError
        return Next(end, fence=fence) if in_list or sign in ("", "\n") else None

    def _read(self, call: Call, following: Next) -> Call:
        self._prefix, self._broken = "", False
        self._go_on(following)
        return call

    def _left(self, length: int, why: str | None = None, following: Next | None = None) -> str:
        """Leave the text of a failed call in the prose."""
        if why is not None:
            self.problems.append(f"{self._here.name}: {why}")
            self._broken = self._broken or following is None
        prose = self._prefix + self._text[:length]
        fence = None if self._prefix else self._here.fence
        self._prefix = ""
        self._go_on(following or Next(length, fence=fence))
        return prose

    def _go_on(self, following: Next) -> None:
        self._text, self._here, self._parens = self._text[following.at :], following, None
        self._line = self._ticked = False


def _skip(space: re.Pattern[str], text: str, at: int) -> int:
    match = space.match(text, at)
    return match.end() if match else at
