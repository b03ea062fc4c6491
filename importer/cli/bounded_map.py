"""Run tasks side by side and yield their results in order; each mostly waits for the network."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
AT_A_TIME = 8  # tasks under way


def in_order(tasks: Iterable[Task], work: Callable[[Task], Result]) -> Iterator[tuple[Task, Future[Result]]]:
    """Yield each task with its future, in order, with a bounded number under way: memory stays flat.

    ``work`` runs in several threads. They are daemons, so that Ctrl-C need not wait for a server that does
    not answer.
    """
    queue: SimpleQueue[tuple[Future[Result], Task] | None] = SimpleQueue()
    waiting: deque[tuple[Task, Future[Result]]] = deque()
    for _ in range(AT_A_TIME):
        Thread(target=_work, args=(queue, work), daemon=True).start()
    try:
        for task in tasks:
            future: Future[Result] = Future()
            queue.put((future, task))
            waiting.append((task, future))
            if len(waiting) >= 2 * AT_A_TIME:
                yield waiting.popleft()
        while waiting:
            yield waiting.popleft()
    finally:
        for _ in range(AT_A_TIME):
            queue.put(None)


def _work(queue: SimpleQueue[tuple[Future[Result], Task] | None], work: Callable[[Task], Result]) -> None:
    while (assignment := queue.get()) is not None:
        future, task = assignment
        try:
            future.set_result(work(task))
        except BaseException as error:  # carried to the thread that waits for it
            future.set_exception(error)
