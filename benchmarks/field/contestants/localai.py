"""LocalAI's tables: the first pattern in the lower-cased name behind the last slash."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.field.model import Entry, Model
from benchmarks.field.released import Released

NAMES_ONLY = True
REPOSITORY, FOLDER = "mudler/LocalAI", "core/config"


def answers(models: Sequence[Model], released: Released) -> Entry:
    """Read both tables of the newest release and match as its Go code does."""
    version, parsers = released.repository(REPOSITORY, f"{FOLDER}/parser_defaults.json")
    _, sampling = released.repository(REPOSITORY, f"{FOLDER}/inference_defaults.json")
    tables = json.loads(parsers), json.loads(sampling)
    return Entry(
        version,
        {
            m.model_id: {**match(m.model_id, tables[0]), "sampling": match(m.model_id, tables[1])}
            for m in models
        },
    )


def match(model_id: str, table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the family of a name; of no family nothing is known."""
    name = model_id.lower().rpartition("/")[2].removesuffix(".gguf").replace("_", "-")
    return next((table["families"][p] for p in table["patterns"] if p in name), {})
