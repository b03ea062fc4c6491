"""Calls in a text that comes in pieces: ``[f(a="x"), g()]`` anywhere, ``f(a="x")`` on a line of its own.

Only functions on offer are called. What is no call, or one that cannot be read, stays text, and the calls
beside it are kept. A piece is given away when nothing that may follow could change it, so a text gives the
same however it is cut.
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
    """Where the text goes on: in prose, at a call in a list, at a call on a line, at a command."""

    PROSE = 0
    LIST = 1
    LINE = 2
    COMMAND = 3


@dataclass(frozen=True)
class Next:
    """Where to go on: at a function's name, or in prose; ``fence`` is the fence's language there."""

    at: int
    place: Place = Place.PROSE
    name: str = ""
    fence: str | None = None


class Reader:
    """Reads one answer. ``tools`` are the functions on offer, each with the JSON Schema of its parameters.

    ``problems`` says of each call that stayed text why it could not be read.
    """

    def __init__(self, tools: Mapping[str, Schema]) -> None:
        self.problems: list[str] = []
        self._tools = tools
        self._names = sorted(tools, key=len, reverse=True)
        self._text = ""  # what is not given away yet
        self._here = Next(0)  # what the text begins with
        self._line = True  # the text begins where a line does
        self._ticked = False  # a backtick stands before the text
        self._prefix = ""  # what opened a call and was taken away; text again if the call cannot be read
        self._broken = False  # a call could not be read, so another may stand behind a comma
        self._parens: Parens | None = None

    def feed(self, text: str) -> list[Piece]:
        """Return what is settled by this much."""
        self._text += text
        return self._settled(whole=False)

    def finish(self) -> list[Piece]:
        """Return the rest: nothing more comes."""
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

    # In prose: give text away up to where a call may begin.

    def _prose(self, whole: bool) -> Piece:
        for at, on_line in self._starts():
            try:
                opened = self._opened(at, whole, on_line=on_line)
            except WaitsError:
                if at == 0:
                    raise
                return self._give(at)
            if opened is not None:
                given = self._give(at)
                self._prefix = self._text[: opened.at - at] if opened.name else ""
                self._text, self._here = self._text[opened.at - at :], opened
                return given
        return self._give(len(self._text))

    def _starts(self) -> Iterator[tuple[int, bool]]:
        """Positions where something may open, and whether a line begins there."""
        if self._line:
            yield _skip(BLANK, self._text, 0), True
        for found in START.finditer(self._text):
            sign = found.group()
            if sign[0] == "\n":
                yield found.end(), True
            elif sign == "[" or self._broken:
                yield found.start(), False

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
        """Return a call that begins where a line does; in the fence for it, a command."""
        name = self._name_at(at, whole)
        if name:
            return Next(at, Place.LINE, name, fence)
        name = self._name_at(at, whole, " \t\n") if fence == COMMANDS else None
        return Next(at, Place.COMMAND, name, fence) if name else None

    def _fenced(self, at: int, whole: bool) -> Next | None:
        """Return a fence that opens on a call, or the end of one whose beginning was taken away."""
        rest = self._text[at : at + 5 * SPARE]
        if self._here.fence is not None:
            if rest.startswith("```"):
                return Next(at + 3)
        else:
            found = FENCE.match(self._text, at)
            if found and found[2]:
                name = self._name_at(found.end(), whole)
                return Next(found.end(), Place.LIST, name, found[1]) if name else None
            if found and (found.end() < len(self._text) or whole):
                return self._on_line(found.end(), whole, found[1])
        if FENCE_BEGUN.fullmatch(rest) and not whole:
            raise WaitsError
        return None

    def _name_at(self, at: int, whole: bool, behind: str = "(") -> str | None:
        """Return the function whose name stands there, with one of ``behind`` after it. Raises WaitsError."""
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
        given, self._text = self._text[:length], self._text[length:]
        if given:
            _, newline, tail = given.rpartition("\n")
            self._line = not tail.strip(" \t") and (newline != "" or self._line)
            self._ticked = given.endswith("`")
        return given

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
        """Return where to go on behind a call; ``None`` where prose goes on in its line, so that it is
        none.
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
        """Leave what looked like a call in the text."""
        if why is not None:
            self.problems.append(f"{self._here.name}: {why}")
            self._broken = self._broken or following is None
        given = self._prefix + self._text[:length]
        fence = None if self._prefix else self._here.fence
        self._prefix = ""
        self._go_on(following or Next(length, fence=fence))
        return given

    def _go_on(self, following: Next) -> None:
        self._text, self._here, self._parens = self._text[following.at :], following, None
        self._line = self._ticked = False


def _skip(space: re.Pattern[str], text: str, at: int) -> int:
    found = space.match(text, at)
    return found.end() if found else at
