"""Proposed changes to ``parser_defaults.json``, for a person; that table is never written.

Between two versions of vLLM: parsers that are new, removed, renamed, or load another class. Then
recommendations of vLLM's own recipes and docs that differ from the table, or that the table lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from gen_defaults.sources.request import rendered
from importer.engines.registries import Registry
from importer.signals.family import match
from importer.signals.tables import PARSERS, Table
from importer.signals.template_markers import KINDS

Row = Mapping[str, Any]


def proposal(docs: Row, registries: tuple[Registry, ...], table: Table) -> str:
    """Return the proposal as text; ``registries`` are of vLLM, the oldest first."""
    recommended = recommendations(docs)
    steps = {f"{old.version} to {new.version}": dict(step(old, new)) for old, new in pairwise(registries)}
    newest = registries[-1]
    differs = dict(_differing(recommended, newest, table))
    used = {f"{field} {name}": models for field in PARSERS for name, models in _models(recommended, field)}
    lists: dict[str, Mapping[str, Any]] = {
        "versions": steps,
        "differs": differs,
        "models": used,
        "served": _served(docs),
    }
    return rendered({"source": docs.get("source", {})}, lists)


def _served(docs: Row) -> dict[str, list[str]]:
    """Return each way in which recipes serve a model (form of content, template, frontend), with models."""
    ways: dict[str, list[str]] = {}
    for model, row in docs.get("served", {}).items():
        for key in ("content_format", "chat_template", "frontend", "rust"):
            if key in row:
                ways.setdefault(f"{key} {row[key]}", []).append(model)
    return dict(sorted(ways.items()))


def step(old: Registry, new: Registry) -> Iterator[tuple[str, Any]]:
    """Yield what came, went, was renamed or changed between two versions, by kind of parser."""
    for kind in ("tool", "reasoning"):
        before, after = old.classes(kind), new.classes(kind)
        removed, came = sorted(set(before) - set(after)), sorted(set(after) - set(before))
        renamed = {name: to for name in removed if (to := [n for n in came if after[n] == before[name]])}
        fresh = {n for names in renamed.values() for n in names}
        yield f"new {kind}", {name: after[name] for name in came if name not in fresh}
        yield f"vanished {kind}", {name: before[name] for name in removed if name not in renamed}
        yield f"renamed {kind}", renamed
        both = sorted(set(before) & set(after))
        yield f"changed {kind}", {n: [before[n], after[n]] for n in both if before[n] != after[n]}


def recommendations(docs: Row) -> dict[str, dict[str, list[str]]]:
    """Return each recommended parser and its source, by model and field; a recipe precedes a page."""
    recommended: dict[str, dict[str, list[str]]] = {}
    for place in ("recipes", "tools", "reasoning"):
        for model, row in docs.get(place, {}).items():
            for field, name in row.items():
                recommended.setdefault(model, {}).setdefault(field, [name, place])
    for model, row in docs.get("variants", {}).items():
        for field, (name, place) in recommended.get(row["recipe"], {}).items():
            recommended.setdefault(model, {}).setdefault(field, [name, place])
    return recommended


def _differing(
    recommended: Mapping[str, Mapping[str, list[str]]], newest: Registry, table: Table
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield models with a recommendation that differs from the table; names of one class are the same."""
    for model, fields in sorted(recommended.items()):
        matched = match(table, model)
        row: dict[str, Any] = {}
        for field, (name, place) in sorted(fields.items()):
            tabled = matched.parsers.get(field, "not known") if matched else "not known"
            known = newest.class_of(KINDS[field], name)
            if tabled != name and (known is None or newest.class_of(KINDS[field], str(tabled)) != known):
                row[field] = {place: name, "table": tabled}
        if row:
            yield model, {"family": matched.row.family if matched else None, **row}


def _models(
    recommended: Mapping[str, Mapping[str, list[str]]], field: str
) -> Iterator[tuple[str, list[str]]]:
    """Yield each parser with the models that it is recommended for."""
    names = sorted({row[field][0] for row in recommended.values() if field in row})
    for name in names:
        yield name, [model for model, row in sorted(recommended.items()) if row.get(field, [""])[0] == name]
