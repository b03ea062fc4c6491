"""``config.json``: its parts, model types and architectures; what else it says has modules of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importer.hub.snapshot import Snapshot, listed, mapping, text

FILE = "config.json"


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part that describes the language model; vision models nest it."""
    for key in ("text_config", "llm_config", "language_config", "thinker_config"):
        inner = config.get(key)
        if isinstance(inner, Mapping) and inner:
            return text_config(inner)
    return config


def model_type(snapshot: Snapshot) -> str | None:
    """``model_type`` at the top, as it is written."""
    return text(config_of(snapshot).get("model_type"))


def model_types(snapshot: Snapshot) -> tuple[str, ...]:
    """``model_type`` at the top and of the language model inside, lower case."""
    config = config_of(snapshot)
    found = (config.get("model_type"), text_config(config).get("model_type"))
    return tuple(dict.fromkeys(t.lower() for t in found if isinstance(t, str) and t))


def config_of(snapshot: Snapshot) -> Mapping[str, Any]:
    """``config.json``, else the part of it that the Hub's own answer carries."""
    config = snapshot.json(FILE)
    if config:
        return config
    return mapping(snapshot.info.get("config"))


def architectures(snapshot: Snapshot) -> tuple[str, ...]:
    """Class names under ``architectures``."""
    return tuple(a for a in listed(config_of(snapshot).get("architectures")) if isinstance(a, str))
