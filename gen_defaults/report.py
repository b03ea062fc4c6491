"""The changes of a regeneration, as Markdown for a pull request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gen_defaults.job import Result
from gen_defaults.place import load
from gen_defaults.proposal import step
from importer.engines.registries import parsed
from importer.wheels.index import order

Row = Mapping[str, Any]


def markdown(result: Result, fetched: Mapping[str, tuple[int, int]]) -> str:
    """Return sources, sampling rows, registries, the proposal and findings as Markdown."""
    parts = [
        ("Sources", _sources(result, fetched)),
        ("`inference_defaults.json`", _sampling(result)),
        ("Registries", _registries(result)),
        ("For a person: `parser_defaults.json`", _proposal(result)),
        ("Checks", (f"- {'' if f.fails else 'note: '}{_cell(str(f))}" for f in result.findings)),
    ]
    sections = [(title, [*lines]) for title, lines in parts]
    head = "Regenerated from the newest releases." if result.changed else "Nothing changed."
    return "\n\n".join([head, *(f"## {t}\n\n" + "\n".join(lines) for t, lines in sections if lines)]) + "\n"


def _sources(result: Result, fetched: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    yield "| file | source | released | SHA-256 | fetched | its size |"
    yield "|---|---|---|---|---|---|"
    for path in result.files:
        now, before = result.data(path).get("source"), load(path).get("source")
        if now and path != result.place.proposal:
            was = f" (was {before['file']})" if before and before["file"] != now["file"] else ""
            came, size = fetched.get(now["file"], (0, 0))
            amounts = [f"{came / 1e6:.2f} MB", f"{size / 1e6:.1f} MB"] if came else ["", ""]
            cells = (path.name, now["file"] + was, now.get("released", ""), now["sha256"][:12], *amounts)
            yield _row(cells)


def _sampling(result: Result) -> Iterator[str]:
    path = result.place.sampling
    before, after = load(path), result.data(path)
    rows = [*dict.fromkeys([*after["families"], *before.get("families", {})])]
    lines = []
    for family in rows:
        for place in ("families", "modes"):
            old, new = before.get(place, {}).get(family), after[place].get(family)
            if old != new:
                lines.append(
                    _row((family, place, _values(old), _values(new), after["sources"].get(family, "")))
                )
    if lines:
        yield from ("| row | in | before | after | source |", "|---|---|---|---|---|", *lines)


def _registries(result: Result) -> Iterator[str]:
    for path in result.changed:
        if path.parent == result.place.registries:
            earlier = path if path.is_file() else _earlier(path)
            if earlier != path:
                yield f"- `{path.name}` is new" + (f"; against `{earlier.name}`:" if earlier else "")
            if earlier:
                changes = [*_changes(load(earlier), result.data(path))]
                yield from (
                    f"- `{path.name}`: {_cell(line)}" for line in changes or ["only what it was read from"]
                )


def _earlier(path: Path) -> Path | None:
    """Return the registry of the last version before this one, of the same engine."""
    engine, _, version = path.stem.rpartition("-")
    paths = {order(p.stem.rpartition("-")[2]): p for p in path.parent.glob(f"{engine}-[0-9]*.json")}
    return max(((v, p) for v, p in paths.items() if v < order(version)), default=(None, None))[1]


def _changes(before: Row, after: Row) -> Iterator[str]:
    yield from (f"{what}: {_names(names)}" for what, names in step(parsed(before), parsed(after)) if names)
    yield from (f"{what}: {rule}" for what, rule in _rules(before, after))


def _rules(before: Row, after: Row) -> Iterator[tuple[str, str]]:
    """Yield the marks by which the engine newly chooses a parser, and those that it dropped."""
    old, new = ([json.dumps(rule) for rule in data.get("inference", [])] for data in (before, after))
    for what, rules, others in (("chooses by", new, old), ("no longer chooses by", old, new)):
        came = [rule for rule in rules if rule not in others]
        if came:
            yield what, ", ".join(came)
    if old != new and sorted(old) == sorted(new):
        yield "chooses", "in another order"


def _proposal(result: Result) -> Iterator[str]:
    """Yield the new parts of the proposal; its file has all of it."""
    before, after = load(result.place.proposal), result.data(result.place.proposal)
    for versions, changes in after["versions"].items():
        for what, names in changes.items():
            if names and before.get("versions", {}).get(versions) != changes:
                text = _names(names) + _models(after["models"], what, names)
                yield f"- {versions}, {what}: {_cell(text)}"
    for model, row in after["differs"].items():
        if before.get("differs", {}).get(model) != row:
            fields = "; ".join(f"{key}: {_values(value)}" for key, value in row.items() if key != "family")
            yield f"- {_cell(model)} ({_cell(row['family'] or 'no row')}): {_cell(fields)}"


def _models(models: Row, what: str, names: Iterable[str]) -> str:
    """Return the models that vLLM recommends new parsers for, as text."""
    field = f"{what.rpartition(' ')[2]}_parser"
    recommended = [
        f"{name} for {', '.join(recommending)}"
        for name in names
        if (recommending := models.get(f"{field} {name}"))
    ]
    return f"; recommended: {'; '.join(recommended)}" if recommended else ""


def _names(names: Row) -> str:
    return ", ".join(
        f"{name} ({target if isinstance(target, str) else ' → '.join(target)})"
        for name, target in names.items()
    )


def _values(row: Row | None) -> str:
    if row is None:
        return "–"
    return ", ".join(f"{k} {v if isinstance(v, str) else json.dumps(v)}" for k, v in row.items())


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    """Return a foreign text without markup, mentions and links."""
    plain = "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
    return re.sub(r"([\\|`*_\[\]<>@#!])", r"\\\1", plain)
