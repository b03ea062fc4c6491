"""What a model's name says: its family, the family's parsers and sampling values.

A name only claims. The template, read by the engine's own parsers, is heard before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.architecture import config_of, model_types
from importer.signals.evidence import Evidence, Rule
from importer.signals.name import normalise
from importer.signals.sampling_values import MODES_KEY
from importer.signals.tables import PARSERS, Match, SamplingRow, Table, parser_table, sampling_table

SOURCE = "parser_defaults.json"
SAMPLING_SOURCE = "inference_defaults.json"


class ModelNameReason(StrEnum):
    """What a name or a model type says by the tables."""

    FAMILY = "family"
    PARSER = "parser"
    SAMPLING = "sampling"
    MODEL_TYPE = "model-type"


def match(table: Table, name: str) -> Match | None:
    """Return the table's row for a name in any spelling, or ``None``."""
    return table.find(normalise(name))


def match_names(names: Iterable[str], table: Table | None = None) -> list[dict[str, Any]]:
    """Return what the tables alone say of each name, without files and network."""
    table = table or parser_table()
    return [_line(name, match(table, name)) for name in names]


def evidence(snapshot: Snapshot, ignore_name: bool = False) -> list[Evidence]:
    """Claims from the model's name, from the models it was made from, and from its ``model_type``.

    Each says only what those before it left open. ``ignore_name`` leaves ``model_type`` alone to speak.
    """
    facts: list[Evidence] = []
    if not ignore_name:
        facts += from_name(own_name(snapshot))
        for base in base_models(snapshot):
            facts += _unsaid(facts, from_name(base, Rule.BASE_MODEL_FAMILY))
    return facts + _unsaid(facts, _from_type(snapshot))


def own_name(snapshot: Snapshot) -> str:
    """Return the Hub id, or the folder's name."""
    if snapshot.model_id:
        return snapshot.model_id
    return snapshot.directory.resolve().name if snapshot.directory else ""


def base_models(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the models this one says it was made from: the card's ``base_model``, then ``_name_or_path``."""
    card = snapshot.info.get("card")
    listed = card.get("base_model") if isinstance(card, Mapping) else None
    listed = listed if isinstance(listed, list) else [listed]
    path = config_of(snapshot).get("_name_or_path")
    found = [b for b in (*listed, path) if isinstance(b, str) and b.strip()]
    return tuple(dict.fromkeys(b for b in found if normalise(b) != normalise(own_name(snapshot))))


def from_name(name: str, rule: Rule = Rule.FAMILY_TABLE) -> list[Evidence]:
    """Return what the tables say of one name; ``rule`` tells whose name it is."""
    facts = []
    found = match(parser_table(), name)
    if found is not None and (rule is Rule.FAMILY_TABLE or found.kind == "chat"):
        facts += _claims(found, name, rule)
    sampling = sampling_table().find(normalise(name))
    return facts if sampling is None else facts + _sampling(sampling, name)


def _claims(found: Match, name: str, rule: Rule) -> list[Evidence]:
    base, family = None if rule is Rule.FAMILY_TABLE else name, found.row.label
    reason = Reason(ModelNameReason.FAMILY, base=base, family=family)
    facts = [Evidence(rule, "family", family, SOURCE, reason, found.quote)]
    bare = found.kind == "base" and found.row.kind == "chat"
    note = found.row.notes if not bare and found.row.notes and found.kind == found.row.kind else None
    for key, parser in found.parsers.items():
        reason = Reason(
            ModelNameReason.PARSER, base=base, family=family, field=key, parser=parser, note=note, bare=bare
        )
        facts.append(Evidence(rule, key, parser, SOURCE, reason, found.quote))
    return facts


def _sampling(row: SamplingRow, name: str) -> list[Evidence]:
    facts = [_of_row(row, name, f"parameters.{key}", key, value) for key, value in row.values.items()]
    for mode, values in row.modes.items():
        facts += [
            _of_row(row, name, f"{MODES_KEY}.{mode}.{key}", key, value, mode) for key, value in values.items()
        ]
    return facts


def _of_row(
    row: SamplingRow, name: str, place: str, key: str, value: float, mode: str | None = None
) -> Evidence:
    reason = Reason(
        ModelNameReason.SAMPLING, key=key, value=value, family=row.family, mode=mode, origin=row.source
    )
    return Evidence(Rule.SAMPLING_TABLE, place, value, SAMPLING_SOURCE, reason, name)


def _from_type(snapshot: Snapshot) -> list[Evidence]:
    """Claims from a ``model_type`` that one family has for itself."""
    for model_type in model_types(snapshot):
        row = parser_table().find_type(model_type)
        if row is not None:
            quote = f"model_type: {model_type}"
            reason = Reason(ModelNameReason.MODEL_TYPE, quote=quote, family=row.label)
            return [
                Evidence(Rule.MODEL_TYPE, key, row.parsers[key], "config.json", reason, quote)
                for key in PARSERS
                if key in row.parsers
            ]
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
