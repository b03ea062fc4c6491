"""Start an import's sandbox and load its later modules before they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.sandbox import Sandbox

LATER = ("importer.app.target", "importer.memory.parallelism", "importer.app.decide", "jsonschema")
WARM: ContextVar[Sandbox | None] = ContextVar("warm", default=None)


@contextmanager
def sandbox() -> Iterator[Sandbox]:
    """Yield the caller's warm sandbox (``WARM``), else one that ends with the block."""
    warm = WARM.get()
    if warm is not None:
        yield warm
        return
    from importer.sandbox.pool import Sandbox

    with Sandbox() as made:
        yield made


def load() -> None:
    """Load the modules in a thread; an import of one of them meanwhile waits for that module alone."""
    Thread(target=_load, daemon=True).start()


def _load() -> None:
    for name in LATER:
        with suppress(ImportError):  # raised again where it is used
            import_module(name)
