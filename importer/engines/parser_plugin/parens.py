"""The end of the parentheses of a call, in a text that comes in pieces."""

from __future__ import annotations

PAIRS = {")": "(", "]": "[", "}": "{"}


class WaitsError(Exception):
    """The text is not decided before more of it."""


class Parens:
    """The brackets and strings of one call; each call of ``end`` goes on where the last stopped."""

    def __init__(self, at: int) -> None:
        self._at = at
        self._open: list[str] = []
        self._quote = ""
        self._end: int | None = None

    def end(self, text: str, *, whole: bool) -> int | None:
        """Return the position behind the closing bracket; ``None`` where nothing closes it.

        Raises WaitsError.
        """
        while self._end is None:
            char = text[self._at : self._at + 1]
            in_string = self._quote != "" or (char != "" and char in "\"'")
            step = self._string(text) if in_string else len(char)
            if step == 0 and not whole:
                raise WaitsError
            if step == 0 or not (in_string or self._matches(char)):
                return None
            self._at += step
            if not self._open:
                self._end = self._at
        return self._end

    def _matches(self, char: str) -> bool:
        """Count a bracket; return whether it closes its own kind."""
        if char in PAIRS.values():
            self._open.append(char)
        return char not in PAIRS or self._open.pop() == PAIRS[char]

    def _string(self, text: str) -> int:
        """Return how many characters to go on in a string; 0 where more text decides between one quote
        and three.
        """
        here = text[self._at : self._at + 3]
        if here.startswith("\\"):
            return 2 if len(here) > 1 else 0
        if self._quote and not here.startswith(self._quote[0]):
            return min(1, len(here))
        if self._quote[1:] == "" and self._quote:
            self._quote = ""
            return 1
        if len(here) < 3:
            return 0
        if not self._quote:
            self._quote = here if here == here[0] * 3 else here[0]
            return len(self._quote)
        if here != self._quote:
            return 1
        self._quote = ""
        return 3
