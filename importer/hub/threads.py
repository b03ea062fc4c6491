"""Work on several items at once, each in a thread of its own with the settings of the caller's."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def side_by_side(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return the results of ``work`` on all items at once, in order; the first error is raised at the end.

    The threads are daemons, so Ctrl-C does not wait for a silent server.
    """
    results: dict[int, Result] = {}
    errors: dict[int, BaseException] = {}

    def run(place: int) -> None:
        try:
            results[place] = work(items[place])
        except BaseException as error:
            errors[place] = error

    if len(items) == 1:
        return [work(items[0])]
    around = [contextvars.copy_context() for _ in items]
    threads = [
        threading.Thread(target=one.run, args=(run, place), daemon=True) for place, one in enumerate(around)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return [results[i] for i in range(len(items))]
