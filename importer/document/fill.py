"""Add the values that a hand-written document leaves out to its text; its own values stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from importer.document import document_keys
from importer.document.document import Document, document_of
from importer.document.document_keys import KeyPath, keyed
from importer.document.merge import interleaved, remarks
from importer.document.yaml_edit.patch import rewrite
from importer.frozen import frozen


def is_set(document: Mapping[str, object], path: KeyPath) -> bool:
    """Return whether the document has a value at a path; zero, false, null and empty ones count.

    An option's path is ``("options", key)``. An engine's flag among the options (``--max-model-len=4096``) is
    a value of its name.
    """
    if path[0] in ("engine_args", path[-1]) and path[-1] in _flags(document):
        return True
    if path[0] == document_keys.KEY and document_keys.KEY in document:
        entries = keyed((document_keys.KEY,), document.get(document_keys.KEY))
        return not entries or path[1] in entries
    inner: Any = document
    for step in path:
        if not isinstance(inner, Mapping) or not (inner or inner is document):
            return True
        if step not in inner:
            return False
        inner = inner[step]
    return True


def _flags(document: Mapping[str, object]) -> set[str]:
    keys = (option.key for option in document_keys.of(document))
    return {key.lstrip("-").replace("-", "_") for key in keys if key.startswith("--")}


def _leaves(path: KeyPath, value: Any) -> Iterator[tuple[KeyPath, Any]]:
    """Yield values by their paths; maps key by key, options entry by entry, other lists whole."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves((*path, key), inner)
    elif path == (document_keys.KEY,):
        yield from (((document_keys.KEY, document_keys.parse(entry).key), entry) for entry in value)
    else:
        yield path, value


@frozen
class Filled:
    """The text and its data after the additions; ``added`` by path, and by path the comments that say why."""

    text: str
    data: Document
    added: Mapping[KeyPath, Any]
    why: Mapping[KeyPath, str]


def fill(
    text: str,
    data: Document,
    plan: str,
    planned: Document,
    path: object = "It",
) -> Filled:
    """Add to ``text`` what its ``data`` leave out of an import's ``plan``, with the plan's comments.

    Raises DocumentError("cannot-edit").
    """
    offered = (leaf for key, value in planned.items() for leaf in _leaves((key,), value))
    added = {path: value for path, value in offered if not is_set(data, path)}
    whole = document_of(_with(data, _nested(added), planned))
    comments = remarks(plan)
    why = {place: comments[place] for place in comments if any(place[: len(p)] == p for p in added)}
    return Filled(rewrite(text, whole, why, path), whole, added, why)


def _nested(added: Mapping[KeyPath, Any]) -> dict[str, object]:
    """Return values by path as the maps and the list of options that they make."""
    data: dict[str, Any] = {}
    for path, value in added.items():
        inner = data
        if path[0] == document_keys.KEY:
            data.setdefault(document_keys.KEY, []).append(value)
            continue
        for step in path[:-1]:
            inner = inner.setdefault(str(step), {})
        inner[str(path[-1])] = value
    return data


def _with(mine: Mapping[str, Any], added: Mapping[str, Any], planned: Mapping[str, Any]) -> dict[str, object]:
    """Return both together: the order of ``mine``, and each addition behind the key it follows in the
    plan.
    """
    whole: dict[str, Any] = {}
    for key in interleaved(mine, [k for k in (*planned, *added) if k in mine or k in added]):
        if key not in added:
            whole[key] = mine[key]
        elif isinstance(mine.get(key), Mapping):
            inner = planned.get(key)
            whole[key] = _with(mine[key], added[key], inner if isinstance(inner, Mapping) else {})
        else:
            whole[key] = [*mine[key], *added[key]] if key in mine else added[key]
    return whole
