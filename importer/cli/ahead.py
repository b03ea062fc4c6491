"""What an import needs once its snapshot has been read, loaded while the sandbox reads it."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from threading import Thread

LATER = ("importer.app.target", "importer.memory.parallelism", "importer.app.decide", "jsonschema")


def load() -> None:
    """Load it in a thread of its own; whoever needs a part of it meanwhile waits for that part alone."""
    Thread(target=_load, daemon=True).start()


def _load() -> None:
    for name in LATER:
        with suppress(ImportError):  # told where it is used
            import_module(name)
