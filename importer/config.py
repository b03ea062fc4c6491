"""Configuration from the environment: the home folder, switches; numbers as text; and the clock."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# The settings of the project in the current folder, by their names in its file.
PROJECT: ContextVar[Mapping[str, str]] = ContextVar("project", default={})  # noqa: B039 - never written to

FILE = "importer.toml"  # of the project

# Whether an engine's parsers are fetched, used where they are, or not used: ``prove`` there.
PROVE = ("auto", "installed", "off")
# Variables that may hold the Hub's token.
TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN", "HF_TOKEN_PATH")
DIGITS = 20  # of a number that a person or a client writes


def data(name: str) -> Path:
    """Return the place of a table or a schema, as shipped."""
    from pathlib import Path

    return Path(__file__).with_name("data") / name


def home() -> Path:
    """Return the folder of engines and approvals: ``IMPORTER_HOME``, else the system's for a user's data."""
    return _folder("", "data")


def cache() -> Path:
    """Return the folder of what can be made again; below ``IMPORTER_HOME``, else the system's for caches."""
    return _folder("cache", "cache")


def logs() -> Path:
    """Return the folder of engines' logs; below ``IMPORTER_HOME``, else the system's for logs."""
    return _folder("logs", "log")


def _folder(name: str, kind: str) -> Path:
    from pathlib import Path

    override = os.environ.get("IMPORTER_HOME")
    if override:
        return Path(override).expanduser() / name
    import platformdirs

    found: Path = getattr(platformdirs, f"user_{kind}_path")("importer", appauthor=False)
    return found


def default(name: str) -> str | None:
    """Return what holds where a command leaves it open: its variable's value, else the project's.

    The names are ``backend``, ``device`` and ``dir``, the folder of documents: ``IMPORTER_DIR`` and so on.
    """
    return os.environ.get(f"IMPORTER_{name.upper()}", "").strip() or PROJECT.get().get(name)


def origin(name: str) -> str:
    """Return where the value of ``default`` comes from: the variable, or the project's file."""
    variable = f"IMPORTER_{name.upper()}"
    return variable if os.environ.get(variable, "").strip() else FILE


def flag(name: str) -> bool:
    """Return whether an environment variable is switched on, by huggingface_hub's rule."""
    return os.environ.get(name, "").strip().upper() in {"1", "ON", "YES", "TRUE"}


def number(text: str, most: int, least: int = 1) -> int | None:
    """Return the whole number that ASCII digits write, from ``least`` to ``most``; else ``None``."""
    if not (text.isascii() and text.isdecimal()) or len(text) > DIGITS:
        return None
    return int(text) if least <= int(text) <= most else None


def now() -> str:
    """Return the time for receipts and tables: ISO 8601 in UTC, whole seconds."""
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds")
