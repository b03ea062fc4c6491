"""Server-sent events from outside: bytes in any cut, the data of whole events out."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from importer.reasons import Reason
from importer.validation.errors import ReplyError


class EventReason(StrEnum):
    """What is found."""

    TOO_LARGE = "too-large"
    NOT_UTF8 = "not-utf8"


MAX_EVENT = 4 * 1024 * 1024  # bytes; real events stay under a few kB
_BOM = b"\xef\xbb\xbf"


class EventParser:
    """Feed it bytes as they come; it yields the data of each event as soon as it is complete.

    Follows the WHATWG rules for lines (LF, CR, CRLF), comments and fields; only ``data`` matters here.
    Raises ReplyError for what is not UTF-8 or larger than ``MAX_EVENT``.
    """

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[str] = []
        self._size = 0
        self._after_cr = False
        self._first = True

    def feed(self, chunk: bytes) -> Iterator[str]:
        """The events that ``chunk`` completes."""
        for piece in chunk.splitlines(keepends=True) if chunk else ():
            yield from self._piece(piece)

    def close(self) -> Iterator[str]:
        """The event that the end of the stream completes, if one was begun."""
        if self._line:
            yield from self._end_line()
        yield from self._dispatch()

    def _piece(self, piece: bytes) -> Iterator[str]:
        if self._after_cr and piece == b"\n" and not self._line:  # the second half of a CRLF cut in two
            self._after_cr = False
            return
        self._after_cr = piece.endswith(b"\r")
        body = piece.rstrip(b"\r\n")
        self._line += body
        self._size += len(body)
        if self._size > MAX_EVENT:
            raise ReplyError(Reason(EventReason.TOO_LARGE, limit=MAX_EVENT))
        if len(body) != len(piece):
            yield from self._end_line()

    def _end_line(self) -> Iterator[str]:
        raw = bytes(self._line)
        self._line.clear()
        if self._first:
            raw, self._first = raw.removeprefix(_BOM), False
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise ReplyError(Reason(EventReason.NOT_UTF8)) from None
        if not line:
            yield from self._dispatch()
            return
        name, _, value = line.partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))

    def _dispatch(self) -> Iterator[str]:
        data, self._data, self._size = self._data, [], 0
        if data:
            yield "\n".join(data)
