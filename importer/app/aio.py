"""The public API for a program on asyncio: ``from importer import aio``; ``await aio.import_model(...)``.

Each function is the one of ``importer`` with the same name, in a thread of the loop's executor. The loop goes
on meanwhile, and ``progress`` is called in the loop. A thread cannot be interrupted: a cancelled call ends at
its next step, a cancelled ``recheck`` after its document. The caller waits for that end, so nothing goes on
behind it, and an engine that was started has exited.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextvars import Context, copy_context
from functools import wraps
from threading import Event
from typing import Any, ParamSpec, TypeVar

from importer.app import api
from importer.progress import Progress

P = ParamSpec("P")
T = TypeVar("T")
END = object()  # of an iterator


class Stopped(BaseException):
    """The caller was cancelled; no ``Exception``, so that nothing takes it for a failure of a step."""


async def _in_thread(context: Context, stop: Event, work: Callable[[], T]) -> T:
    """Return the result of work in a thread; a caller that is cancelled waits for the end of the thread."""
    running = asyncio.get_running_loop().run_in_executor(None, context.run, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.set()
        while not running.done():
            try:
                await asyncio.wait([running])
            except asyncio.CancelledError:
                continue  # the thread ends first
        running.exception()
        raise


def _call(function: Callable[P, T], *, steps: bool) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return a function as a coroutine; one with ``steps`` reports them, and can end at each."""

    @wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        loop, stop, report = asyncio.get_running_loop(), Event(), kwargs.get("progress")

        def step(text: str) -> None:
            if stop.is_set():
                raise Stopped
            if callable(report):
                loop.call_soon_threadsafe(report, text)

        progress: Progress = step
        with_steps: dict[str, Any] = {**kwargs, "progress": progress} if steps else {**kwargs}
        return await _in_thread(copy_context(), stop, lambda: function(*args, **with_steps))

    return call


def _each(function: Callable[P, Iterator[T]]) -> Callable[P, AsyncIterator[T]]:
    """Return an iterator's function as one of an asynchronous iterator."""

    @wraps(function)
    async def each(*args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        context, items = copy_context(), function(*args, **kwargs)
        close: Callable[[], None] = getattr(items, "close", lambda: None)
        try:
            while (one := await _in_thread(context, Event(), lambda: next(items, END))) is not END:
                yield one  # type: ignore[misc]
        finally:
            await _in_thread(context, Event(), close)

    return each


import_model = _call(api.import_model, steps=True)
fill = _call(api.fill, steps=True)
validate = _call(api.validate, steps=True)
export = _call(api.export, steps=False)
why = _call(api.why, steps=False)
recheck = _each(api.recheck)
