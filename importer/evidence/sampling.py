"""Sampling values the vendor published in ``generation_config.json``."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

from importer.evidence.fact import Evidence
from importer.hub.snapshot import Snapshot

FILE = "generation_config.json"

# transformers' name, LocalAI's YAML name, lowest and highest value that makes sense.
KEYS = (
    ("temperature", "temperature", 0.0, 5.0),
    ("top_p", "top_p", 0.0, 1.0),
    ("top_k", "top_k", -1, 1_000_000),
    ("min_p", "min_p", 0.0, 1.0),
    ("repetition_penalty", "repeat_penalty", 0.0, 10.0),
    ("presence_penalty", "presence_penalty", -2.0, 2.0),
    ("frequency_penalty", "frequency_penalty", -2.0, 2.0),
)
WHOLE = ("top_k",)


def evidence(snapshot: Snapshot) -> list[Evidence]:
    """One fact per value that is a number in range; zero is a value, null is not, a count is whole."""
    data = snapshot.json(FILE)
    facts = []
    for theirs, ours, low, high in KEYS:
        value = data.get(theirs)
        if is_number(value) and low <= value <= high and (theirs not in WHOLE or value == int(value)):
            said = int(value) if theirs in WHOLE else value
            facts.append(_fact(f"parameters.{ours}", said, f"{theirs}: {value}"))
    if data.get("do_sample") is False and not is_number(data.get("temperature")):
        facts.insert(0, _fact("parameters.temperature", 0, "do_sample: false"))
    return facts


def is_number(value: Any) -> TypeGuard[float]:
    """A finite number; JSON's true is none."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _fact(key: str, value: float, quote: str) -> Evidence:
    return Evidence("generation-config", key, value, FILE, f"the vendor's {FILE} says {quote}", quote)
