"""What a hand-written document leaves out, added to its text; everything that it sets stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from importer.document import options
from importer.document.diff import Path
from importer.document.edit import rewrite
from importer.document.hooks import hooks
from importer.document.hooks.draft import Draft
from importer.document.merge import interleaved, remarks


@dataclass(frozen=True, slots=True)
class Filled:
    """The text and its data after the additions; ``added`` by path, and by path the comments that say why."""

    text: str
    data: dict[str, Any]
    added: Mapping[Path, Any]
    why: Mapping[Path, str]


def fill(
    text: str,
    data: Mapping[str, Any],
    plan: str,
    planned: Mapping[str, Any],
    backend: str,
    path: object = "It",
) -> Filled:
    """Add to ``text`` what its ``data`` leave out of an import's ``plan``, with the plan's comments.

    ``backend`` is the one that was planned for. Raises DocumentError("cannot-edit").
    """
    draft = Draft(data, planned)
    for hook in hooks(backend, named=bool(data.get("backend"))):
        hook(draft)
    whole = _with(data, _nested(draft.added), planned)
    comments = remarks(plan)
    why = {place: comments[place] for place in comments if any(place[: len(p)] == p for p in draft.added)}
    return Filled(rewrite(text, whole, why, path), whole, draft.added, why)


def _nested(added: Mapping[Path, Any]) -> dict[str, Any]:
    """Values by path as the maps and the list of options that they make."""
    data: dict[str, Any] = {}
    for path, value in added.items():
        inner = data
        if path[0] == options.KEY:
            data.setdefault(options.KEY, []).append(value)
            continue
        for step in path[:-1]:
            inner = inner.setdefault(str(step), {})
        inner[str(path[-1])] = value
    return data


def _with(mine: Mapping[str, Any], added: Mapping[str, Any], planned: Mapping[str, Any]) -> dict[str, Any]:
    """Both together: the order of ``mine``, and each addition behind the key it follows in the plan."""
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
