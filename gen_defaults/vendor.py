"""A vendor's ``generation_config.json`` beside the row of the sampling table that speaks for the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from importer.evidence import sampling
from importer.evidence.name import normalise
from importer.evidence.tables import SamplingRow, SamplingTable, Table
from importer.hub.snapshot import Snapshot


def values(data: Mapping[str, Any]) -> dict[str, float]:
    """The sampling values that the file states, as the importer reads it, in LocalAI's names."""
    facts = sampling.evidence(Snapshot("", None, None, (), {sampling.FILE: json.dumps(data)}))
    found: dict[str, float] = {}
    for fact in facts:
        if fact.rule == "generation-config":
            found.setdefault(fact.key.removeprefix("parameters."), fact.value)
    return found


def row_for(model_id: str, table: Table, rows: SamplingTable) -> SamplingRow | None:
    """The row of a model that chats; a base model's file says nothing of its family's."""
    name = normalise(model_id)
    found = table.find(name)
    return None if found is not None and found.kind != "chat" else rows.find(name)


def agrees(row: SamplingRow, key: str, value: float) -> bool:
    """Whether the row has the value, by itself or in one of its ways of answering."""
    return value in {row.values.get(key), *(mode.get(key) for mode in row.modes.values())}
