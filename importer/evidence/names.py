"""What a model's name says: its family, the family's parsers and sampling values.

A name only claims. The template, read by the engine's own parsers, is heard before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from importer.evidence.architecture import config_of, model_types
from importer.evidence.fact import Evidence
from importer.evidence.name import normalise
from importer.evidence.tables import (
    PARSERS,
    Match,
    SamplingRow,
    Table,
    parser_table,
    sampling_table,
)
from importer.evidence.values import MODES_KEY
from importer.hub.snapshot import Snapshot

SOURCE = "parser_defaults.json"
SAMPLING_SOURCE = "inference_defaults.json"
WORDS = {"tool_parser": "tool parser", "reasoning_parser": "reasoning parser"}


def match(table: Table, name: str) -> Match | None:
    """The table's row for a name in any spelling, or ``None``."""
    return table.find(normalise(name))


def match_names(names: Iterable[str], table: Table | None = None) -> list[dict[str, Any]]:
    """What the tables alone say of each name, without files and network."""
    table = table or parser_table()
    return [_line(name, match(table, name)) for name in names]


def evidence(snapshot: Snapshot, ignore_name: bool = False) -> list[Evidence]:
    """Claims from the model's name, from the models it was made from, and from its ``model_type``.

    Each says only what those before it left open. ``ignore_name`` leaves ``model_type`` alone to speak.
    """
    facts: list[Evidence] = []
    if not ignore_name:
        facts += from_name(own_name(snapshot), "family-table")
        for base in base_models(snapshot):
            facts += _unsaid(facts, from_name(base, "base-model-family"))
    return facts + _unsaid(facts, _from_type(snapshot))


def own_name(snapshot: Snapshot) -> str:
    """The Hub id, or the folder's name."""
    if snapshot.model_id:
        return snapshot.model_id
    return snapshot.directory.resolve().name if snapshot.directory else ""


def base_models(snapshot: Snapshot) -> tuple[str, ...]:
    """The models this one says it was made from: the card's ``base_model``, then ``_name_or_path``."""
    card = snapshot.info.get("card")
    listed = card.get("base_model") if isinstance(card, Mapping) else None
    listed = listed if isinstance(listed, list) else [listed]
    path = config_of(snapshot).get("_name_or_path")
    found = [b for b in (*listed, path) if isinstance(b, str) and b.strip()]
    return tuple(dict.fromkeys(b for b in found if normalise(b) != normalise(own_name(snapshot))))


def from_name(name: str, rule: str = "family-table") -> list[Evidence]:
    """What the tables say of one name; ``rule`` tells whose name it is."""
    facts = []
    found = match(parser_table(), name)
    if found is not None and (rule == "family-table" or found.kind == "chat"):
        facts += _claims(found, name, rule)
    sampling = sampling_table().find(normalise(name))
    return facts if sampling is None else facts + _sampling(sampling, name)


def _claims(found: Match, name: str, rule: str) -> list[Evidence]:
    whose = "its name" if rule == "family-table" else f"the model it was made from, {name},"
    family = found.row.label
    facts = [Evidence(rule, "family", family, SOURCE, f"{whose} belongs to the family {family}", found.quote)]
    about = f" ({found.row.notes})" if found.row.notes and found.kind == found.row.kind else ""
    if found.kind == "base" and found.row.kind == "chat":
        about = " (a bare name is the base model's)"
    for key, parser in found.parsers.items():
        says = f"{whose} says {family}, known to need the {WORDS[key]} {parser}{about}"
        if parser is None:
            says = f"{whose} says {family}, known to have no {WORDS[key]}{about}"
        facts.append(Evidence(rule, key, parser, SOURCE, says, found.quote))
    return facts


def _sampling(row: SamplingRow, name: str) -> list[Evidence]:
    origin = f", from {row.source}" if row.source else ""
    facts = []
    for key, value in row.values.items():
        says = f"the sampling table has {key} {value} for {row.family}{origin}"
        facts.append(Evidence("sampling-table", f"parameters.{key}", value, SAMPLING_SOURCE, says, name))
    for mode, values in row.modes.items():
        way = mode.replace("_", "-")
        for key, value in values.items():
            says = f"the sampling table has {key} {value} for {row.family} when {way}{origin}"
            place = f"{MODES_KEY}.{mode}.{key}"
            facts.append(Evidence("sampling-table", place, value, SAMPLING_SOURCE, says, name))
    return facts


def _from_type(snapshot: Snapshot) -> list[Evidence]:
    """Claims from a ``model_type`` that one family has for itself."""
    for model_type in model_types(snapshot):
        row = parser_table().find_type(model_type)
        if row is not None:
            quote = f"model_type: {model_type}"
            return [
                Evidence("model-type", key, row.parsers[key], "config.json",
                         f"config.json says {quote}, which is {row.label}", quote)
                for key in PARSERS if key in row.parsers
            ]  # fmt: skip
    return []


def _unsaid(heard: list[Evidence], more: list[Evidence]) -> list[Evidence]:
    keys = {e.key for e in heard}
    return [e for e in more if e.key not in keys]


def _line(name: str, found: Match | None) -> dict[str, Any]:
    sampling = sampling_table().find(normalise(name))
    parsers = {} if found is None else found.parsers
    return {
        "model_id": name,
        "family": None if found is None else found.row.label,
        "tool_parser": parsers.get("tool_parser"),
        "reasoning_parser": parsers.get("reasoning_parser"),
        "sampling": {} if sampling is None else dict(sampling.values),
    }
