"""Unsloth's sampling values: by family, and those of single models, both in its wheel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gen_defaults.checks import Upstream
from gen_defaults.index import IndexFailure
from gen_defaults.place import load
from gen_defaults.sources.request import Answer, Request, from_yaml, named, rendered
from importer.errors import RepositoryError
from importer.hub.snapshot import parse_object

NAME = "unsloth"
CONFIGS = "studio/backend/assets/configs/"
FAMILIES = f"{CONFIGS}inference_defaults.json"
MODELS = f"{CONFIGS}model_defaults/"
FALLBACK = f"{MODELS}default.yaml"  # what it gives a model that it knows nothing of
# Its names and ours.
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
ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def read(request: Request) -> Answer:
    """The file of families and every model's file. Raises IndexFailure."""
    path = request.place.upstream(NAME)
    release = request.newest(NAME, load(path).get("source", {}))
    found = request.index.part(
        release, lambda p: p == FAMILIES or (p.startswith(MODELS) and p[-5:] == ".yaml")
    )
    if FAMILIES not in found.texts:
        raise IndexFailure(f"{release.file} has no {FAMILIES}")
    said = families(found.texts[FAMILIES], release.file)
    by_file = _files(found.texts, release.file)
    models = {m: name for name in by_file for m in _ids(name, found.texts[MODELS + name])}
    about = f"{release.file}: {FAMILIES}"
    modes = {f: dict(sets) for f, row in said.items() if (sets := _modes(row))}
    flat = {f: _flat(row) for f, row in said.items()}
    apart = {f"{f} ({mode})": row for f, sets in modes.items() for mode, row in sets.items()}
    lists: dict[str, dict[str, Any]] = {
        "families": {f: _values(row) for f, row in flat.items()},
        "modes": {f: {mode: _values(row) for mode, row in sets.items()} for f, sets in modes.items()},
        "models": {m: {"file": name, **_values(by_file[name])} for m, name in sorted(models.items())},
    }
    upstream = (
        Upstream(about, flat, FIELDS, required=REQUIRED),
        Upstream(f"{about}, sets of its own", apart, FIELDS),
        Upstream(f"{release.file}: {MODELS}", by_file, FIELDS),
    )
    head = {"source": named(release, found.digest), "fallback": _values(_fallback(found.texts, release.file))}
    return Answer({path: rendered(head, lists)}, upstream)


def families(text: str, file: str) -> dict[str, Any]:
    """The rows by family, in the order of the patterns. Raises IndexFailure."""
    try:
        data = parse_object(text, FAMILIES, file)
    except RepositoryError as error:
        raise IndexFailure(f"{file}: {FAMILIES} cannot be read: {error.details['problem']}") from None
    rows, patterns = data.get("families"), data.get("patterns")
    if not isinstance(rows, dict) or not isinstance(patterns, list) or not rows:
        raise IndexFailure(f"{file}: {FAMILIES} has no families and patterns where they were looked for")
    odd = {str(p) for p in patterns}.symmetric_difference(rows)
    if odd:
        raise IndexFailure(f"{file}: {FAMILIES} has {', '.join(sorted(odd))} in one of its two lists only")
    other = sorted(set(data) - {"_comment", "families", "patterns"})
    if other:
        raise IndexFailure(f"{file}: {FAMILIES} has {', '.join(other)}, which is not known here")
    return {pattern: rows[pattern] for pattern in patterns}


def _files(texts: Mapping[str, str], file: str) -> dict[str, Any]:
    """Each model's file with the values in it."""
    rows = {
        path.removeprefix(MODELS): _inference(text, path, file)
        for path, text in sorted(texts.items())
        if path.startswith(MODELS) and path != FALLBACK
    }
    return {name: row for name, row in rows.items() if row is not None}


def _ids(name: str, text: str) -> list[str]:
    """The models that a file speaks of: its own, and those of its first comment."""
    first = text.partition("\n")[0]
    own = name.rpartition("/")[2].removesuffix(".yaml").replace("_", "/", 1)
    found = [own, *(ID.findall(first) if first.startswith("# Also applies to") else [])]
    return [model for model in dict.fromkeys(found) if ID.fullmatch(model)]


def _fallback(texts: Mapping[str, str], file: str) -> Any:
    return _inference(texts.get(FALLBACK, ""), FALLBACK, file) or {}


def _inference(text: str, path: str, file: str) -> Any:
    return from_yaml(text, path, file).get("inference")


def _modes(row: Any) -> Iterator[tuple[str, Any]]:
    """The sets of a family, whether they lie in a map of their own or beside its values."""
    beside = row if isinstance(row, dict) else {}
    inner = beside.get(NESTED)
    for name, values in {**beside, **(inner if isinstance(inner, dict) else {})}.items():
        if name in MODES and isinstance(values, dict):
            yield MODES[name], values


def _flat(row: Any) -> Any:
    """The family's own values; whatever else is there stays, for the checks to see."""
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
    """Numbers in our names; the checks have the others."""
    held = row if isinstance(row, dict) else {}
    return {
        ours: held[theirs]
        for theirs, ours in FIELDS.items()
        if isinstance(held.get(theirs), int | float) and not isinstance(held[theirs], bool)
    }
