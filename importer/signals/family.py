"""Evidence from a model's name and model type: the family, its parsers and its sampling values.

A name is weak evidence. The proof with the template has precedence over it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.architecture import config_of, model_types
from importer.signals.evidence import Evidence, Rule
from importer.signals.name import normalise
from importer.signals.reasons import ModelNameReason
from importer.signals.sampling_values import MODES_KEY
from importer.signals.tables import PARSERS, Match, SamplingRow, Table, parser_table, sampling_table

SOURCE = "parser_defaults.json"
SAMPLING_SOURCE = "inference_defaults.json"


def match(table: Table, name: str) -> Match | None:
    """Return the match of a table's row with a name in any spelling, or ``None``."""
    return table.find(normalise(name))


def match_names(names: Iterable[str], table: Table | None = None) -> list[dict[str, Any]]:
    """Return the tables' values for each name, without files and network."""
    table = table or parser_table()
    return [_line(name, match(table, name)) for name in names]


def evidence(snapshot: Snapshot, ignore_name: bool = False) -> list[Evidence]:
    """Return evidence from the model's name, then from its base models, then from its ``model_type``.

    Each adds only keys that the ones before it lack. With ``ignore_name`` only ``model_type`` counts.
    """
    facts: list[Evidence] = []
    if not ignore_name:
        facts += from_name(own_name(snapshot))
        for base in base_models(snapshot):
            facts += _of_other_keys(facts, from_name(base, Rule.BASE_MODEL_FAMILY))
    return facts + _of_other_keys(facts, _from_type(snapshot))


def own_name(snapshot: Snapshot) -> str:
    """Return the Hub id, or the folder's name."""
    if snapshot.model_id:
        return snapshot.model_id
    return snapshot.directory.resolve().name if snapshot.directory else ""


def base_models(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the declared base models: the card's ``base_model``, then ``_name_or_path``."""
    card = snapshot.info.get("card")
    listed = card.get("base_model") if isinstance(card, Mapping) else None
    listed = listed if isinstance(listed, list) else [listed]
    path = config_of(snapshot).get("_name_or_path")
    names = [b for b in (*listed, path) if isinstance(b, str) and b.strip()]
    return tuple(dict.fromkeys(b for b in names if normalise(b) != normalise(own_name(snapshot))))


def from_name(name: str, rule: Rule = Rule.FAMILY_TABLE) -> list[Evidence]:
    """Return the tables' evidence for one name; ``rule`` distinguishes own name and base model."""
    facts = []
    row_match = match(parser_table(), name)
    if row_match is not None and (rule is Rule.FAMILY_TABLE or row_match.kind == "chat"):
        facts += _claims(row_match, name, rule)
    sampling = sampling_table().find(normalise(name))
    if sampling is not None:
        facts += [_of_row(sampling, name, f"parameters.{key}", key, v) for key, v in sampling.values.items()]
        facts += [
            _of_row(sampling, name, f"{MODES_KEY}.{mode}.{key}", key, value, mode)
            for mode, values in sampling.modes.items()
            for key, value in values.items()
        ]
    return facts


def _claims(row_match: Match, name: str, rule: Rule) -> list[Evidence]:
    base, family = None if rule is Rule.FAMILY_TABLE else name, row_match.row.label
    reason = Reason(ModelNameReason.FAMILY, base=base, family=family)
    facts = [Evidence(rule, "family", family, SOURCE, reason, row_match.quote)]
    bare = row_match.kind == "base" and row_match.row.kind == "chat"
    note = (
        row_match.row.notes
        if not bare and row_match.row.notes and row_match.kind == row_match.row.kind
        else None
    )
    for key, parser in row_match.parsers.items():
        reason = Reason(
            ModelNameReason.PARSER, base=base, family=family, field=key, parser=parser, note=note, bare=bare
        )
        facts.append(Evidence(rule, key, parser, SOURCE, reason, row_match.quote))
    return facts


def _of_row(
    row: SamplingRow, name: str, place: str, key: str, value: float, mode: str | None = None
) -> Evidence:
    reason = Reason(
        ModelNameReason.SAMPLING, key=key, value=value, family=row.family, mode=mode, origin=row.source
    )
    return Evidence(Rule.SAMPLING_TABLE, place, value, SAMPLING_SOURCE, reason, name)


def _from_type(snapshot: Snapshot) -> list[Evidence]:
    """Return evidence from a ``model_type`` that only one family has."""
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


def _of_other_keys(facts: list[Evidence], more: list[Evidence]) -> list[Evidence]:
    keys = {e.key for e in facts}
    return [e for e in more if e.key not in keys]


def _line(name: str, row_match: Match | None) -> dict[str, Any]:
    sampling = sampling_table().find(normalise(name))
    parsers = {} if row_match is None else row_match.parsers
    return {
        "model_id": name,
        "family": None if row_match is None else row_match.row.label,
        "tool_parser": parsers.get("tool_parser"),
        "reasoning_parser": parsers.get("reasoning_parser"),
        "sampling": {} if sampling is None else dict(sampling.values),
    }
