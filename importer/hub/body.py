"""The body of an answer, counted as it arrives and as it unpacks."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from enum import StrEnum

from importer.hub.deadline import Clock
from importer.reasons import Reason

SLACK = 64 * 1024  # bytes: what gzip may add to what cannot be packed
GZIP = ("gzip", "x-gzip")
PLAIN = ("", "identity")


class BodyReason(StrEnum):
    """Why a body cannot be used."""

    CODING = "coding"
    DAMAGED = "damaged"
    CUT = "cut"


class TooLarge(Exception):
    """The body is longer than the limit."""


class Unreadable(Exception):
    """The body is not what its headers say; ``cut`` where it ends too early."""

    def __init__(self, kind: BodyReason, **fields: object) -> None:
        super().__init__()
        self.reason, self.cut = Reason(kind, **fields), kind is BodyReason.CUT


def read(chunks: Iterable[bytes], coding: str, limit: int, clock: Clock) -> bytes:
    """Return the decoded body of at most ``limit`` bytes; ``chunks`` are as they came over the wire.

    Raises TooLarge, Unreadable, and TimeoutError where the clock has run out.
    """
    if coding not in (*PLAIN, *GZIP):
        raise Unreadable(BodyReason.CODING, coding=coding[:40])
    unpack = zlib.decompressobj(wbits=31) if coding in GZIP else None
    body, arrived = bytearray(), 0
    for chunk in chunks:
        clock.read()
        arrived += len(chunk)
        if arrived > limit + SLACK:
            raise TooLarge
        try:
            body += chunk if unpack is None else unpack.decompress(chunk, limit + 1 - len(body))
        except zlib.error:
            raise Unreadable(BodyReason.DAMAGED) from None
        if len(body) > limit:
            raise TooLarge
    if unpack is not None and not unpack.eof:
        raise Unreadable(BodyReason.CUT)
    return bytes(body)
