"""How long a server is silent to everybody: a machine without time holds a stream back, too."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from threading import Event, Thread
from typing import TypeVar

from importer.validation.client import Client
from importer.validation.errors import ExchangeError

T = TypeVar("T")
PATH = "/v1/models"  # which all servers answer without the model; an error is an answer, too
PAUSE = 0.02  # seconds


def listened(client: Client, request: Callable[[], T]) -> tuple[T, float]:
    """Return what ``request`` returns, and the longest time in seconds without an answer to a light question.

    The questions go through this process and through what stands before the engine: each of them may be what
    has no time.
    """
    over, beats = Event(), [time.monotonic()]
    beating = Thread(target=_beat, args=(client, over, beats))
    beating.start()
    try:
        result = request()
        beats.append(time.monotonic())
    finally:
        over.set()
        beating.join()
    return result, max(later - earlier for earlier, later in pairwise(sorted(beats)))


def _beat(client: Client, over: Event, beats: list[float]) -> None:
    while not over.wait(PAUSE):
        with suppress(ExchangeError):
            client.get(PATH, [])
        if not over.is_set():
            beats.append(time.monotonic())
