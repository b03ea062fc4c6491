"""A re-import on a person's edits: what two sides changed apart is brought together, data and comments.

``base`` is what the importer wrote last, ``mine`` the file as a person left it, ``theirs`` what the importer
would write now. docs/merge.md shows the cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import Any, Literal

from importer.config_file import build, field_paths
from importer.config_file.build import read
from importer.config_file.diff import ABSENT, KeyPath, dotted, keyed, same, shown
from importer.config_file.yaml_edit.cst import Layout, labels
from importer.config_file.yaml_edit.edit import rewrite
from importer.reasons import Reason

Take = Literal["mine", "theirs"]
TAKES: tuple[Take, ...] = ("mine", "theirs")
# What follows from other values: nobody's word on it counts, and the importer works it out again.
DERIVED: tuple[KeyPath, ...] = (("importer", "client_sampling"),)
BOOKKEEPING = ("importer", "artifacts")  # what every new commit changes


class MergeReason(StrEnum):
    """What a merge meets."""

    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A path that both sides changed, each to another value; ``ABSENT`` where a side has none."""

    path: KeyPath
    base: Any
    mine: Any
    theirs: Any

    @property
    def reason(self) -> Reason:
        """``parameters.temperature: it was 0.6, the file says 0.5, this import says 0.7``."""
        was, mine, theirs = map(shown, (self.base, self.mine, self.theirs))
        return Reason(MergeReason.CONFLICT, path=dotted(self.path), was=was, mine=mine, theirs=theirs)

    def to_json(self) -> dict[str, Any]:
        """Return the path and its values; a side that is not there is left out, for null is a value."""
        sides = {"base": self.base, "mine": self.mine, "theirs": self.theirs}
        return {"path": dotted(self.path)} | {k: v for k, v in sides.items() if v is not ABSENT}


class Merge:
    """The data of three sides. At ``conflicts`` the ``data`` hold ``mine``, unless ``take`` says else."""

    def __init__(
        self,
        base: Mapping[str, Any],
        mine: Mapping[str, Any],
        theirs: Mapping[str, Any],
        take: Take | None = None,
    ) -> None:
        self._take = take
        self.conflicts: list[Conflict] = []
        self.data = self._maps((), base, mine, theirs)

    def _value(self, path: KeyPath, base: Any, mine: Any, theirs: Any) -> Any:
        if path in DERIVED or same(base, mine):
            return theirs
        if same(mine, theirs) or same(base, theirs) or (mine is ABSENT and path[0] in BOOKKEEPING):
            return mine
        sides = _as_maps(path, base, mine, theirs)
        if sides is None:
            self.conflicts.append(Conflict(path, base, mine, theirs))
            return theirs if self._take == "theirs" else mine
        merged = self._maps(path, *sides)
        if not merged and ABSENT in (mine, theirs):
            return ABSENT
        if isinstance(mine, Mapping) or isinstance(theirs, Mapping):
            return merged
        return _entries(merged, mine, theirs) if path == (field_paths.KEY,) else list(merged.values())

    def _maps(
        self, path: KeyPath, base: Mapping[str, Any], mine: Mapping[str, Any], theirs: Mapping[str, Any]
    ) -> dict[str, Any]:
        sides = {
            key: self._value((*path, key), *(side.get(key, ABSENT) for side in (base, mine, theirs)))
            for key in interleaved(mine, theirs)
        }
        return {key: value for key, value in sides.items() if value is not ABSENT}


def _as_maps(path: KeyPath, *sides: Any) -> list[Mapping[str, Any]] | None:
    """Sides that are all maps, or all lists whose entries have keys; one that is absent is empty."""
    there = [side for side in sides if side is not ABSENT]
    maps = (
        there if all(isinstance(side, Mapping) for side in there) else [keyed(path, side) for side in there]
    )
    if None in maps:
        return None
    found = iter(maps)
    return [{} if side is ABSENT else next(found) for side in sides]


def interleaved(mine: Iterable[str], theirs: Iterable[str]) -> list[str]:
    """Return the keys of both in the order of ``mine``; each new one behind the key it follows in
    ``theirs``.
    """
    keys = list(mine)
    after: dict[str | None, str | None] = dict(zip([None, *keys], [*keys, None], strict=True))
    before: str | None = None
    for key in theirs:
        if key not in after:
            after[before], after[key] = key, after[before]
        before = key
    order: list[str] = []
    while (following := after[order[-1] if order else None]) is not None:
        order.append(following)
    return order


def _entries(merged: Mapping[str, Any], mine: Any, theirs: Any) -> list[str]:
    """``options`` as the side writes them that an entry was taken from, in the order of ``mine``."""
    ours, others = (
        [] if side is ABSENT else [field_paths.parse(entry) for entry in side] for side in (mine, theirs)
    )
    said, offered = keyed((field_paths.KEY,), mine) or {}, field_paths.grouped(others)
    unchanged = {key for key in said if key in merged and same(said[key], merged[key])}
    last = {o.key: at for at, o in enumerate(ours)}
    behind: dict[str | None, list[field_paths.Option]] = {}  # what is new, by the key of ``mine`` before it
    before: str | None = None
    for key in merged:
        if key in last:
            before = key
        else:
            behind.setdefault(before, []).extend(offered.get(key, ()))
    done, met = [*behind.get(None, ())], set[str]()
    for at, option in enumerate(ours):
        key = option.key
        if key in unchanged:
            done += [option, *(behind.get(key, ()) if at == last[key] else ())]
        elif key in merged and key not in met:
            done += [*offered.get(key, ()), *behind.get(key, ())]
            met.add(key)
    return [o.text for o in done]


@dataclass(frozen=True, slots=True)
class Written:
    """The merged text, and the comments in it that stand at a person's values and are ours."""

    text: str
    remarks: Mapping[KeyPath, str]


def write(
    mine: str,
    data: Mapping[str, Any],
    base: str | None,
    theirs: str,
    path: object = "It",
    earlier: Mapping[KeyPath, str] | None = None,
) -> Written:
    """Return ``mine`` with merged data; our comments are renewed, also those at a person's values.

    A person's comment is never touched: ours are those of ``base``, and ``earlier`` those that the last merge
    wrote at a person's values. Raises DocumentError("cannot-edit").
    """
    earlier = earlier or {}
    was, has, says = ({} if text is None else remarks(text) for text in (base, mine, theirs))
    held, planned = dict(_labelled(data)), dict(_labelled(read(theirs, path)))
    notes: dict[KeyPath, str | None] = {}
    ours: dict[KeyPath, str] = {}
    for place in {**has, **says}:
        old, new = has.get(place), says.get(place)
        if old is None and place in was:
            continue  # the person took it away
        if old is None or old in (was.get(place), new, earlier.get(place)):
            note = _note(place, old, new, held, planned)
            if note is not None and note != new:
                ours[place] = note
            if note != old:
                notes[place] = note
    return Written(rewrite(_headed(mine, base, theirs), data, notes, path), ours)


def _headed(mine: str, base: str | None, theirs: str) -> str:
    """Return the text under the head that the importer writes now, where a person left its last one alone."""
    last, now = ("" if text is None else head(text) for text in (base, theirs))
    return now + mine.removeprefix(last) if last and mine.startswith(last) else mine


def head(text: str) -> str:
    """Return the comments in front of the first key."""
    return "".join(takewhile(lambda line: line.startswith("#"), text.splitlines(keepends=True)))


def _note(
    place: KeyPath,
    old: str | None,
    new: str | None,
    held: Mapping[KeyPath, Any],
    planned: Mapping[KeyPath, Any],
) -> str | None:
    """Return what our comment at a place says from now on; None for none."""
    if place not in held:
        return None
    theirs = planned.get(place, ABSENT)
    if same(held[place], theirs):
        return new
    return None if old is None else build.edited(None if theirs is ABSENT else shown(theirs))


def remarks(text: str) -> dict[KeyPath, str]:
    """Return the comments on the lines of values, without their signs."""
    return {path: comment.text.lstrip("#").strip() for path, comment in Layout(text).remarks().items()}


def _labelled(data: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield every value with its path; entries of lists under their labels, as comments are found."""
    yield path, data
    entries: Iterable[tuple[KeyPath, Any]] = ()
    if isinstance(data, Mapping):
        entries = (((key,), value) for key, value in data.items())
    elif isinstance(data, list):
        entries = zip(labels(path, data), data, strict=True)
    for step, value in entries:
        yield from _labelled(value, (*path, *step))
