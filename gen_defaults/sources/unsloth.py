"""Unsloth's sampling values: by family, and those of single models, both in its wheel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gen_defaults.checks import Upstream
from gen_defaults.place import load
from gen_defaults.sources.outside import from_json, from_yaml
from gen_defaults.sources.request import SourceAnswer, SourceRequest, named, rendered
from importer.wheels.index import IndexFailure

NAME = "unsloth"
CONFIGS = "studio/backend/assets/configs/"
FAMILIES = f"{CONFIGS}inference_defaults.json"
MODELS = f"{CONFIGS}model_defaults/"
FALLBACK = f"{MODELS}default.yaml"  # what it gives a model that it knows nothing of
# Unsloth's names and importer's.
FIELDS = {
    "temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "min_p": "min_p",
    "repetition_penalty": "repeat_penalty", "presence_penalty": "presence_penalty",
}  # fmt: skip
REQUIRED = ("temperature", "top_p", "top_k")
# Sets of their own inside a family, by what they are called there.
MODES = {
    "thinking": "thinking", "non_thinking": "non_thinking", "instruct": "non_thinking",
    "reasoning": "thinking", "non_reasoning": "non_thinking",
}  # fmt: skip
NESTED = "sampling_modes"
STEP = "wait for a release that mends it, or name it under skip in sampling_rows.json and say why"
ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def read(request: SourceRequest) -> SourceAnswer:
    """Return the file of families and every model's file. Raises IndexFailure."""
    path = request.place.upstream(NAME)
    release = request.newest(NAME, load(path).get("source", {}))
    archive = request.index.part(
        release, lambda p: p == FAMILIES or (p.startswith(MODELS) and p[-5:] == ".yaml")
    )
    for needed in (FAMILIES, FALLBACK):
        if needed not in archive.texts:
            raise IndexFailure(f"{release.file} has no {needed}")
    rows = families(archive.texts[FAMILIES], release.file)
    by_file = _files(archive.texts, release.file)
    fallback = by_file.pop(FALLBACK.removeprefix(MODELS), {})
    models = {m: name for name in by_file for m in _ids(name, archive.texts[MODELS + name])}
    about = f"{release.file}: {FAMILIES}"
    modes = {f: _sets(f, row, release.file) for f, row in rows.items()}
    flat = {f: _flat(row) for f, row in rows.items()}
    apart = {f: {f"{f} ({mode})": row for mode, row in sets.items()} for f, sets in modes.items()}
    lists: dict[str, dict[str, Any]] = {
        "families": {f: _values(row) for f, row in flat.items()},
        "modes": {f: {mode: _values(row) for mode, row in sets.items()} for f, sets in modes.items() if sets},
        "models": {m: {"file": name, **_values(by_file[name])} for m, name in sorted(models.items())},
    }
    checked = {*rows, *by_file} - {*load(request.place.rows).get("skip", {})}
    upstream = (
        Upstream(about, _only(flat, checked), FIELDS, required=REQUIRED, step=STEP),
        Upstream(
            f"{about}, sets of its own",
            {name: row for sets in _only(apart, checked).values() for name, row in sets.items()},
            FIELDS,
            step=STEP,
        ),
        Upstream(f"{release.file}: {MODELS}", _only(by_file, checked), FIELDS, step=STEP),
        Upstream(f"{release.file}: {FALLBACK}", {"inference": fallback}, FIELDS, step=STEP),
    )
    head = {"source": named(release, archive.digest), "fallback": _values(fallback)}
    return SourceAnswer({path: rendered(head, lists)}, upstream)


def families(text: str, file: str) -> dict[str, Any]:
    """Return the rows by family, in the order of the patterns. Raises IndexFailure."""
    data = from_json(text, FAMILIES, file)
    rows, patterns = data.get("families"), data.get("patterns")
    if not isinstance(rows, dict) or not isinstance(patterns, list) or not rows:
        raise IndexFailure(f"{file}: {FAMILIES} has no families and patterns where they were looked for")
    names = [str(pattern) for pattern in patterns]
    odd = {*names}.symmetric_difference(rows)
    if odd:
        raise IndexFailure(f"{file}: {FAMILIES} has {', '.join(sorted(odd))} in one of its two lists only")
    if len(names) > len(rows):
        twice = next(name for n, name in enumerate(names) if name in names[:n])
        raise IndexFailure(f"{file}: {FAMILIES} has the pattern {twice} twice")
    other = sorted(set(data) - {"_comment", "families", "patterns"})
    if other:
        raise IndexFailure(f"{file}: {FAMILIES} has {', '.join(other)}, which is not known here")
    return {name: rows[name] for name in names}


def _files(texts: Mapping[str, str], file: str) -> dict[str, Any]:
    """Return each model's file with the values in it."""
    rows = {
        path.removeprefix(MODELS): _inference(text, path, file)
        for path, text in sorted(texts.items())
        if path.startswith(MODELS)
    }
    return {name: row for name, row in rows.items() if row is not None}


def _ids(name: str, text: str) -> list[str]:
    """Return the models of a file: its own, and those of its first comment."""
    first = text.partition("\n")[0]
    own = name.rpartition("/")[2].removesuffix(".yaml").replace("_", "/", 1)
    models = [own, *(ID.findall(first) if first.startswith("# Also applies to") else [])]
    return [model for model in dict.fromkeys(models) if ID.fullmatch(model)]


def _inference(text: str, path: str, file: str) -> Any:
    return from_yaml(text, path, file).get("inference")


def _sets(family: str, row: Any, file: str) -> dict[str, Any]:
    """Return the sets of a family, whether they lie in a map of their own or beside its values.

    Raises IndexFailure where two of them mean the same.
    """
    beside = row if isinstance(row, dict) else {}
    inner = beside.get(NESTED)
    places = (beside, inner if isinstance(inner, dict) else {})
    named_values = [(name, values) for place in places for name, values in place.items() if name in MODES]
    sets = {MODES[name]: values for name, values in named_values if isinstance(values, dict)}
    if len(sets) < sum(isinstance(values, dict) for _, values in named_values):
        raise IndexFailure(f"{file}: {FAMILIES} has two sets of one kind for {family}")
    return sets


def _only(rows: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: row for name, row in rows.items() if name in names}


def _flat(row: Any) -> Any:
    """Return the family's own values; unknown entries stay, for the checks."""
    if not isinstance(row, dict):
        return row
    inner = row.get(NESTED)
    taken = isinstance(inner, dict) and {*inner} <= {*MODES}
    return {
        k: v
        for k, v in row.items()
        if not (k == NESTED and taken) and not (k in MODES and isinstance(v, dict))
    }


def _values(row: Any) -> dict[str, float]:
    """Return the numbers under importer's names; the checks find all other values."""
    values = row if isinstance(row, dict) else {}
    return {
        name: values[source_name]
        for source_name, name in FIELDS.items()
        if isinstance(values.get(source_name), int | float) and not isinstance(values[source_name], bool)
    }
