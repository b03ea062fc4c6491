"""Which parsers each version of an engine has: generated files, read without the engine.

``python -m gen_defaults`` writes them from the released sources.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Literal

from importer.errors import Setting, UsageError
from importer.reasons import Reason

Kind = Literal["tool", "reasoning"]
FOLDER = Path(__file__).with_name("registries")
# What 'importer engine install' installs, where it does; else the version whose names are written.
PINNED = {"vllm": "0.32.0", "mlx": "0.32.2", "mlx-vlm": "0.7.10", "vllm-mlx": "0.6.0"}
FAMILY = {
    "vllm-cpu": "vllm",
    "vllm-cuda": "vllm",
    "mlx-lm": "mlx",
}  # other names under which an engine is known
NEAR = 5


class RegistryReason(StrEnum):
    """Why there is no registry."""

    UNKNOWN_VERSION = "unknown-version"


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """A name that the engine's command line accepts, and the class that it loads; ``aliases`` load it too."""

    name: str
    class_name: str
    module: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Registry:
    """The parsers of one version. ``source`` names the released file and its sha256."""

    engine: str
    version: str
    source: Mapping[str, str]
    entries: Mapping[Kind, Mapping[str, RegistryEntry]]

    def names(self, kind: Kind) -> tuple[str, ...]:
        """Return every name, sorted."""
        return tuple(self.entries[kind])

    def has(self, kind: Kind, name: str) -> bool:
        """Return whether the engine knows the name."""
        return name in self.entries[kind]

    def classes(self, kind: Kind) -> dict[str, str]:
        """Return every name and the class it loads: names of one class are interchangeable."""
        return {name: entry.class_name for name, entry in self.entries[kind].items()}

    def class_of(self, kind: Kind, name: str) -> str | None:
        """Return the class that the name loads; ``None`` for a name it lacks."""
        entry = self.entries[kind].get(name)
        return None if entry is None else entry.class_name

    def aliases(self, kind: Kind, name: str) -> tuple[str, ...]:
        """Other names of the same class."""
        entry = self.entries[kind].get(name)
        return () if entry is None else entry.aliases

    def near(self, kind: Kind, name: str) -> tuple[str, ...]:
        """Return names that may have been meant, the nearest first: by letters and digits alone."""
        spelled = {_plain(known): known for known in reversed(self.names(kind))}
        plain = _plain(name)
        inside = [known for text, known in spelled.items() if text in plain or plain in text]
        close = [spelled[text] for text in difflib.get_close_matches(plain, spelled, NEAR, 0.5)]
        return tuple(dict.fromkeys([*close, *sorted(inside)]))[:NEAR] if plain else ()


def versions(engine: str) -> tuple[str, ...]:
    """Return the versions of which a registry is known, the oldest first; none for an engine without
    parsers.
    """
    family = FAMILY.get(engine, engine)
    found = (path.stem.removeprefix(f"{family}-") for path in FOLDER.glob(f"{family}-[0-9]*.json"))
    return tuple(sorted(found, key=_order))


def load(engine: str, version: str | None = None) -> Registry:
    """Return the registry of a version, by default of the one that is installed here.

    ``0.32`` means the newest known 0.32. Raises UsageError("bad-value") for a version without a registry.
    """
    family = FAMILY.get(engine, engine)
    known = versions(family)
    wanted = version or PINNED.get(family, "")
    found = [v for v in known if v == wanted or v.startswith(f"{wanted}.")]
    if not found:
        raise UsageError(
            "bad-value",
            setting=Setting.ENGINE_VERSION,
            value=wanted,
            problem=Reason(RegistryReason.UNKNOWN_VERSION, engine=engine, version=wanted, known=known),
        )
    return _read(family, found[-1])


def parsed(data: Mapping[str, Any]) -> Registry:
    """Return a registry from its file's data."""
    entries: dict[Kind, Mapping[str, RegistryEntry]] = {
        "tool": _entries(data["tool"]),
        "reasoning": _entries(data["reasoning"]),
    }
    return Registry(data["engine"], data["version"], data["source"], entries)


@cache
def _read(family: str, version: str) -> Registry:
    return parsed(json.loads((FOLDER / f"{family}-{version}.json").read_text(encoding="utf-8")))


def _entries(rows: list[Mapping[str, Any]]) -> dict[str, RegistryEntry]:
    return {r["name"]: RegistryEntry(r["name"], r["class"], r["module"], tuple(r["aliases"])) for r in rows}


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
